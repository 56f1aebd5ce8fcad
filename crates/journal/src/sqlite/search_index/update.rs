//! Incremental indexing: updates the index for a stream, or rebuilds the stream's part of it.

use std::collections::{HashMap, VecDeque};

use longhaul_protocol::{Hash, Seq, StreamName};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use super::{IndexError, IndexResult};
use crate::search::{self, SearchableText};
use crate::sqlite::rows::{self, ScannedRow, StreamNumber};
use crate::sqlite::{known_heads, verify};
use crate::{Head, Page};

/// Records to index in one transaction. The limit lets other processes use the index in between.
const BATCH: Page = Page { records: 2_000, bytes: 4 << 20 };

/// How many utterances before a record, and after it, count for its topic.
const NEIGHBOURS: usize = 2;

/// How far a stream is indexed.
pub(super) struct IndexCursor {
    /// The stream's number in the index.
    pub(super) id: StreamNumber,
    /// The last indexed record.
    at: Head,
    /// The positions of the last utterances, the oldest first. The next utterance is a neighbour of the last
    /// [`NEIGHBOURS`] of them, and those need the earlier ones as neighbours.
    speech: Vec<Seq>,
}

pub(super) fn cursor(db: &Connection, stream: &StreamName) -> rusqlite::Result<Option<IndexCursor>> {
    db.prepare_cached("SELECT id, seq, hash, speech FROM cursors WHERE stream = ?1")?
        .query_row([stream.as_str()], read)
        .optional()
}

pub(super) fn cursors(db: &Connection) -> rusqlite::Result<HashMap<StreamName, IndexCursor>> {
    let mut statement = db.prepare_cached("SELECT id, seq, hash, speech, stream FROM cursors")?;
    let rows = statement.query_map([], |row| {
        let name = rows::text(row, 4)?.and_then(|name| name.parse().ok());
        Ok(name.zip(Some(read(row)?)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<IndexCursor> {
    let places: String = row.get(3)?;
    Ok(IndexCursor {
        id: StreamNumber(row.get(0)?),
        at: Head { seq: row.get::<_, i64>(1)?.unsigned_abs(), hash: rows::hash(row, 2)? },
        speech: places.split(' ').filter_map(|place| place.parse().ok()).collect(),
    })
}

/// Indexes the new records of a stream. Returns the stream's number in the index.
pub(super) fn update_stream(
    db: &mut Connection,
    journal: &Connection,
    (number, name): (StreamNumber, &StreamName),
    known: Option<IndexCursor>,
) -> IndexResult<StreamNumber> {
    let head = rows::head(journal, number).map_err(IndexError::Journal)?;
    if let Some(known) = known.filter(|known| known.at == head) {
        return Ok(known.id);
    }
    loop {
        if let Some(IndexCursor { id, at, .. }) = cursor(db, name)?
            && at.seq >= head.seq
            && stands_on(journal, number, at)?
        {
            return Ok(id);
        }
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Read again under the lock, because another process may have moved the cursor.
        let cursor = match cursor(&change, name)? {
            Some(cursor) if stands_on(journal, number, cursor.at)? => cursor,
            stale => restart_cursor(&change, name, stale.map(|cursor| cursor.id))?,
        };
        let moved = index_batch(&change, journal, (number, name), &cursor)?;
        change.commit()?;
        if moved.is_none() {
            // The rest can't be read; `verify` reports it.
            return Ok(cursor.id);
        }
    }
}

/// Whether the journal still has the record at the cursor. It does not after the stream was removed or a backup
/// restored. Then the stream's part of the index is rebuilt.
fn stands_on(journal: &Connection, number: StreamNumber, at: Head) -> IndexResult<bool> {
    Ok(at == Head::EMPTY || known_heads::has_record(journal, number, at).map_err(IndexError::Journal)?)
}

/// Creates a cursor at the beginning of a stream, under a new number, because entries under the old number belong to
/// a stream that no longer exists.
fn restart_cursor(
    change: &Transaction<'_>,
    stream: &StreamName,
    old: Option<StreamNumber>,
) -> rusqlite::Result<IndexCursor> {
    if let Some(old) = old {
        change.execute("DELETE FROM cursors WHERE id = ?1", [old.0])?;
    }
    let last: i64 = change.query_row("SELECT coalesce(max(id), 0) FROM cursors", [], |row| row.get(0))?;
    let fresh = StreamNumber(last.max(old.map_or(0, |old| old.0)) + 1);
    change.execute(
        "INSERT INTO cursors (id, stream, seq, hash, speech) VALUES (?1, ?2, 0, ?3, '')",
        params![fresh.0, stream.as_str(), Hash::ZERO.as_bytes()],
    )?;
    Ok(IndexCursor { id: fresh, at: Head::EMPTY, speech: Vec::new() })
}

/// Indexes a batch of records and moves the cursor. Returns the last indexed record; `None` if none could be read.
fn index_batch(
    change: &Transaction<'_>,
    journal: &Connection,
    stream: (StreamNumber, &StreamName),
    cursor: &IndexCursor,
) -> IndexResult<Option<Seq>> {
    let from = cursor.at.seq + 1;
    let batch = match rows::page(journal, stream, from, BATCH) {
        Ok(batch) => batch,
        // Records after the unreadable ones can still be indexed.
        Err(_) => match verify::next_readable(journal, stream.0, from) {
            Some(next) => rows::page(journal, stream, next, BATCH).map_err(IndexError::Journal)?,
            None => return Ok(None),
        },
    };
    let mut window = SpeechWindow::before(journal, stream, cursor);
    let mut last = None;
    for found in batch {
        // Damaged records are not searchable.
        let ScannedRow::Record(record) = found else { continue };
        last = Some((record.seq, record.hash));
        let Some(searchable) = SearchableText::from_record(&record) else { continue };
        let (row, gist) = (cursor.id.row_id(record.seq), searchable.gist());
        if searchable.is_speech {
            let near = searchable.for_neighbours();
            window.push(change, cursor.id, Utterance { seq: record.seq, gist, near })?;
        } else {
            insert_gist(change, row, &gist, window.last())?;
        }
        change
            .prepare_cached("INSERT INTO entries (rowid, text) VALUES (?1, ?2)")?
            .execute(params![row, whole_text(journal, searchable)])?;
    }
    let Some((seq, hash)) = last else { return Ok(None) };
    let speech = window.finish(change, cursor.id)?;
    change.execute(
        "UPDATE cursors SET seq = ?2, hash = ?3, speech = ?4 WHERE id = ?1",
        params![cursor.id.0, i64::try_from(seq).unwrap_or(i64::MAX), hash.as_bytes(), speech],
    )?;
    Ok(Some(seq))
}

/// A message between a person and a model.
#[derive(Default)]
struct Utterance {
    seq: Seq,
    /// The stems of its words.
    gist: String,
    /// The stems that count for the topic of its neighbours.
    near: String,
}

/// The last utterances. An utterance is indexed when all its neighbours are known. At the end of a batch it is
/// indexed with the known neighbours, and the next batch indexes it again.
struct SpeechWindow {
    /// At most `2 * NEIGHBOURS + 1`. The middle one has all its neighbours.
    last: VecDeque<Utterance>,
    /// How many at the end are indexed with too few neighbours.
    unfinished: usize,
}

impl SpeechWindow {
    /// The utterances before a batch.
    fn before(journal: &Connection, stream: (StreamNumber, &StreamName), cursor: &IndexCursor) -> Self {
        let load = |seq: &Seq| {
            utterance_at(journal, stream, *seq).unwrap_or(Utterance { seq: *seq, ..Utterance::default() })
        };
        Self { unfinished: 0, last: cursor.speech.iter().map(load).collect() }
    }

    /// The neighbours of the record that comes next.
    fn last(&self) -> impl Iterator<Item = &Utterance> {
        self.last.iter().rev().take(NEIGHBOURS)
    }

    fn push(&mut self, change: &Transaction<'_>, id: StreamNumber, utterance: Utterance) -> IndexResult<()> {
        self.last.push_back(utterance);
        self.unfinished = self.last.len().min(NEIGHBOURS + 1);
        if self.unfinished > NEIGHBOURS {
            self.index(change, id, self.last.len() - self.unfinished)?;
            self.unfinished -= 1;
        }
        if self.last.len() > 2 * NEIGHBOURS {
            self.last.pop_front();
        }
        Ok(())
    }

    /// Indexes the unfinished utterances with the neighbours that they have. Returns the positions for the cursor.
    fn finish(self, change: &Transaction<'_>, id: StreamNumber) -> IndexResult<String> {
        for index in self.last.len() - self.unfinished..self.last.len() {
            self.index(change, id, index)?;
        }
        let places: Vec<String> = self.last.iter().map(|said| said.seq.to_string()).collect();
        Ok(places.join(" "))
    }

    fn index(&self, change: &Transaction<'_>, id: StreamNumber, index: usize) -> IndexResult<()> {
        let near = index.saturating_sub(NEIGHBOURS)..self.last.len().min(index + NEIGHBOURS + 1);
        let neighbours = near.filter(|near| *near != index).map(|near| &self.last[near]);
        let Utterance { seq, gist, .. } = &self.last[index];
        insert_gist(change, id.row_id(*seq), gist, neighbours)
    }
}

fn insert_gist<'a>(
    change: &Transaction<'_>,
    row: i64,
    own: &str,
    neighbours: impl Iterator<Item = &'a Utterance>,
) -> IndexResult<()> {
    let around: Vec<&str> = neighbours.map(|said| said.near.as_str()).collect();
    change
        .prepare_cached("INSERT OR REPLACE INTO gists (rowid, own, around) VALUES (?1, ?2, ?3)")?
        .execute(params![row, own, around.join(" ")])?;
    Ok(())
}

fn utterance_at(journal: &Connection, stream: (StreamNumber, &StreamName), seq: Seq) -> Option<Utterance> {
    let one = rows::page(journal, stream, seq, Page { records: 1, bytes: 0 }).ok()?;
    match one.first()? {
        ScannedRow::Record(record) if record.seq == seq => {
            let searchable = SearchableText::from_record(record)?;
            Some(Utterance { seq, gist: searchable.gist(), near: searchable.for_neighbours() })
        }
        _ => None,
    }
}

/// The whole text of a record with that of its blobs, tokenised for the index.
fn whole_text(journal: &Connection, searchable: SearchableText) -> String {
    let SearchableText { mut text, blobs, .. } = searchable;
    for blob in blobs {
        // A damaged blob is not searchable.
        if let Ok(Some(bytes)) = rows::blob(journal, blob.hash) {
            text.push('\n');
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    search::space_out(&text)
}
