//! Bringing the index up to date with a stream.

use std::collections::{HashMap, VecDeque};

use longhaul_protocol::{Hash, Seq, StreamName};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::{Tried, Trouble};
use crate::search::{self, Findable};
use crate::sqlite::rows::{self, Found, StreamNumber};
use crate::sqlite::{check, heads};
use crate::{Head, Page};

/// How much is indexed before others get a turn.
const BATCH: Page = Page { records: 2_000, bytes: 4 << 20 };

/// So much of what was said before a record, and after it, says what it is about.
const NEAR: usize = 2;

/// Where a stream's indexing has come to.
pub(super) struct Cursor {
    /// The stream's number in the index.
    pub(super) id: StreamNumber,
    /// The last record that is indexed.
    at: Head,
    /// The places of what was said last, the oldest first: what is said next is still to be added to the last [`NEAR`] of them, and
    /// the others stand around those.
    speech: Vec<Seq>,
}

/// The cursor of a stream, if it has one.
pub(super) fn cursor(db: &Connection, stream: &StreamName) -> rusqlite::Result<Option<Cursor>> {
    db.prepare_cached("SELECT id, seq, hash, speech FROM cursors WHERE stream = ?1")?
        .query_row([stream.as_str()], read)
        .optional()
}

/// All cursors.
pub(super) fn cursors(db: &Connection) -> rusqlite::Result<HashMap<StreamName, Cursor>> {
    let mut statement = db.prepare_cached("SELECT id, seq, hash, speech, stream FROM cursors")?;
    let rows = statement.query_map([], |row| {
        let name = rows::text(row, 4)?.and_then(|name| name.parse().ok());
        Ok(name.zip(Some(read(row)?)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Cursor> {
    let places: String = row.get(3)?;
    Ok(Cursor {
        id: StreamNumber(row.get(0)?),
        at: Head { seq: row.get::<_, i64>(1)?.unsigned_abs(), hash: rows::hash(row, 2)? },
        speech: places.split(' ').filter_map(|place| place.parse().ok()).collect(),
    })
}

/// Indexes what a stream has gained since its cursor, as far as that is known. Returns the stream's number in the index.
pub(super) fn catch_up(
    db: &mut Connection,
    journal: &Connection,
    (number, name): (StreamNumber, &StreamName),
    known: Option<Cursor>,
) -> Tried<StreamNumber> {
    let head = rows::head(journal, number).map_err(Trouble::Journal)?;
    if let Some(known) = known.filter(|known| known.at == head) {
        return Ok(known.id);
    }
    loop {
        if let Some(Cursor { id, at, .. }) = cursor(db, name)?
            && at.seq >= head.seq
            && stands_on(journal, number, at)?
        {
            return Ok(id);
        }
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Looked at again now that nobody else can move it.
        let cursor = match cursor(&change, name)? {
            Some(cursor) if stands_on(journal, number, cursor.at)? => cursor,
            known => renew_cursor(&change, name, known.map(|cursor| cursor.id))?,
        };
        let moved = index_batch(&change, journal, (number, name), &cursor)?;
        change.commit()?;
        if moved.is_none() {
            // Nothing more can be read: the rest is damaged, and `verify` names it.
            return Ok(cursor.id);
        }
    }
}

/// Whether the journal still has the record that a cursor stands on: the stream may have been removed, or a backup
/// restored.
fn stands_on(journal: &Connection, number: StreamNumber, at: Head) -> Tried<bool> {
    Ok(at == Head::EMPTY || heads::has_record(journal, number, at).map_err(Trouble::Journal)?)
}

/// A cursor at the beginning, under a new number: entries under an old one are of a stream that is no more.
fn renew_cursor(
    change: &Transaction<'_>,
    stream: &StreamName,
    old: Option<StreamNumber>,
) -> rusqlite::Result<Cursor> {
    if let Some(old) = old {
        change.execute("DELETE FROM cursors WHERE id = ?1", [old.0])?;
    }
    let last: i64 = change.query_row("SELECT coalesce(max(id), 0) FROM cursors", [], |row| row.get(0))?;
    let fresh = StreamNumber(last.max(old.map_or(0, |old| old.0)) + 1);
    change.execute(
        "INSERT INTO cursors (id, stream, seq, hash, speech) VALUES (?1, ?2, 0, ?3, '')",
        params![fresh.0, stream.as_str(), Hash::ZERO.as_bytes()],
    )?;
    Ok(Cursor { id: fresh, at: Head::EMPTY, speech: Vec::new() })
}

/// Indexes some records and moves the cursor after them. Returns the last of them; nothing, if there is none to be read.
fn index_batch(
    change: &Transaction<'_>,
    journal: &Connection,
    stream: (StreamNumber, &StreamName),
    cursor: &Cursor,
) -> Tried<Option<Seq>> {
    let from = cursor.at.seq + 1;
    let batch = match rows::page(journal, stream, from, BATCH) {
        Ok(batch) => batch,
        // What can't be read has nothing to find; what comes after it may.
        Err(_) => match check::next_readable(journal, stream.0, from) {
            Some(next) => rows::page(journal, stream, next, BATCH).map_err(Trouble::Journal)?,
            None => return Ok(None),
        },
    };
    let mut talk = Talk::before(journal, stream, cursor);
    let mut last = None;
    for found in batch {
        // A record that can't be read is passed over: it has nothing to find.
        let Found::Record(record) = found else { continue };
        last = Some((record.seq, record.hash));
        let Some(findable) = Findable::of(&record) else { continue };
        let (row, gist) = (cursor.id.row(record.seq), findable.gist());
        if findable.is_speech {
            let near = findable.for_neighbours();
            talk.goes_on(change, cursor.id, Said { seq: record.seq, gist, near })?;
        } else {
            insert_gist(change, row, &gist, talk.last())?;
        }
        change
            .prepare_cached("INSERT INTO entries (rowid, text) VALUES (?1, ?2)")?
            .execute(params![row, whole_text(journal, findable)])?;
    }
    let Some((seq, hash)) = last else { return Ok(None) };
    let speech = talk.ends(change, cursor.id)?;
    change.execute(
        "UPDATE cursors SET seq = ?2, hash = ?3, speech = ?4 WHERE id = ?1",
        params![cursor.id.0, i64::try_from(seq).unwrap_or(i64::MAX), hash.as_bytes(), speech],
    )?;
    Ok(Some(seq))
}

/// Something that was said.
#[derive(Default)]
struct Said {
    seq: Seq,
    /// Its words.
    gist: String,
    /// Those of them by which its neighbours are found.
    near: String,
}

/// What was said last. Each thing is indexed with what stands around it once enough has followed, and as far as it has when a batch
/// ends; the next batch does that again.
struct Talk {
    /// At most twice [`NEAR`] and one, of which the one in the middle has all its neighbours.
    last: VecDeque<Said>,
    /// Of these the last so many are not indexed as they should be.
    unfinished: usize,
}

impl Talk {
    /// What was said before a batch.
    fn before(journal: &Connection, stream: (StreamNumber, &StreamName), cursor: &Cursor) -> Self {
        let said =
            |seq: &Seq| said_at(journal, stream, *seq).unwrap_or(Said { seq: *seq, ..Said::default() });
        let last: VecDeque<Said> = cursor.speech.iter().map(said).collect();
        Self { unfinished: 0, last }
    }

    /// What was said last, as it stands around what follows.
    fn last(&self) -> impl Iterator<Item = &Said> {
        self.last.iter().rev().take(NEAR)
    }

    fn goes_on(&mut self, change: &Transaction<'_>, id: StreamNumber, said: Said) -> Tried<()> {
        self.last.push_back(said);
        self.unfinished = self.last.len().min(NEAR + 1);
        if self.unfinished > NEAR {
            self.index(change, id, self.last.len() - self.unfinished)?;
            self.unfinished -= 1;
        }
        if self.last.len() > 2 * NEAR {
            self.last.pop_front();
        }
        Ok(())
    }

    /// Indexes what is left with what there is. Returns the places from which the next batch goes on.
    fn ends(self, change: &Transaction<'_>, id: StreamNumber) -> Tried<String> {
        for index in self.last.len() - self.unfinished..self.last.len() {
            self.index(change, id, index)?;
        }
        let places: Vec<String> = self.last.iter().map(|said| said.seq.to_string()).collect();
        Ok(places.join(" "))
    }

    fn index(&self, change: &Transaction<'_>, id: StreamNumber, index: usize) -> Tried<()> {
        let near = index.saturating_sub(NEAR)..self.last.len().min(index + NEAR + 1);
        let neighbours = near.filter(|near| *near != index).map(|near| &self.last[near]);
        let Said { seq, gist, .. } = &self.last[index];
        insert_gist(change, id.row(*seq), gist, neighbours)
    }
}

fn insert_gist<'a>(
    change: &Transaction<'_>,
    row: i64,
    own: &str,
    neighbours: impl Iterator<Item = &'a Said>,
) -> Tried<()> {
    let around: Vec<&str> = neighbours.map(|said| said.near.as_str()).collect();
    change
        .prepare_cached("INSERT OR REPLACE INTO gists (rowid, own, around) VALUES (?1, ?2, ?3)")?
        .execute(params![row, own, around.join(" ")])?;
    Ok(())
}

/// What was said in a record, if it can be read.
fn said_at(journal: &Connection, stream: (StreamNumber, &StreamName), seq: Seq) -> Option<Said> {
    let one = rows::page(journal, stream, seq, Page { records: 1, bytes: 0 }).ok()?;
    match one.first()? {
        Found::Record(record) if record.seq == seq => {
            let findable = Findable::of(record)?;
            Some(Said { seq, gist: findable.gist(), near: findable.for_neighbours() })
        }
        _ => None,
    }
}

/// Everything in a record that can be found, its blobs' text too, set apart for the index.
fn whole_text(journal: &Connection, findable: Findable) -> String {
    let Findable { mut text, blobs, .. } = findable;
    for blob in blobs {
        // A blob that can't be read has nothing to find.
        if let Ok(Some(bytes)) = rows::blob(journal, blob.hash) {
            text.push('\n');
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    search::set_apart(&text)
}
