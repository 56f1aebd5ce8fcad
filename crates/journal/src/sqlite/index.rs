//! The search index: a file of its own under `cache`, so that catching up never holds up an append. It can be
//! deleted at any time and is made again from the journal.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use longhaul_protocol::{Hash, Record, Seq, StreamName};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::home::{Home, beside, create_once};
use crate::search::{self, Findable, Match, Search};
use crate::sqlite::rows::{self, Found, StreamNumber};
use crate::sqlite::{check, failure, heads, open};
use crate::{Error, Head, Hit, Page, Result};

/// Another number makes the index anew.
const FORMAT: u32 = 2;

/// How much is indexed before others get a turn.
const BATCH: Page = Page { records: 2_000, bytes: 4 << 20 };

const TABLES: &str = "
    CREATE TABLE cursors (
        id     INTEGER PRIMARY KEY,
        stream TEXT NOT NULL UNIQUE,
        seq    INTEGER NOT NULL,                 -- indexed up to here …
        hash   BLOB NOT NULL                     -- … and this is the hash of the record there
    ) STRICT;
    CREATE VIRTUAL TABLE entries USING fts5 (
        text, content = '', tokenize = \"unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\"
    );
";
const DROP_TABLES: &str = "DROP TABLE IF EXISTS cursors; DROP TABLE IF EXISTS entries;";

/// Whose fault it is that something could not be done.
enum Trouble {
    Index(rusqlite::Error),
    Journal(rusqlite::Error),
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error)
    }
}

type Tried<T> = std::result::Result<T, Trouble>;

/// The index of one journal.
pub(crate) struct Index {
    path: PathBuf,
    home: Home,
    db: Mutex<Option<Connection>>,
}

impl Index {
    pub(crate) fn new(home: &Home) -> Self {
        let path = home.folder().join("cache").join("search.db");
        Self { path, home: home.clone(), db: Mutex::default() }
    }

    /// Catches up with the streams that are asked for, then looks.
    pub(crate) fn search(&self, journal: &Connection, search: &Search) -> Result<Vec<Hit>> {
        self.with(|db| {
            let streams = rows::streams(journal).map_err(Trouble::Journal)?;
            let wanted = |name: &StreamName| search.streams.is_empty() || search.streams.contains(name);
            let mut cursors = Vec::new();
            for (number, name) in streams.into_iter().filter(|(_, name)| wanted(name)) {
                cursors.push((catch_up(db, journal, (number, &name))?, number, name));
            }
            let found = look(db, search, &cursors)?;
            let hit = |(number, name, seq)| hit(journal, (number, name), seq, &search.words);
            Ok(found.into_iter().map(hit).collect())
        })
    }

    /// Forgets everything and leaves no trace of it in the file. The next search makes the index again. It is
    /// emptied rather than deleted, since another process may have it open.
    pub(crate) fn reset(&self) -> Result<()> {
        // Opened anew: somebody may have deleted the file that was open, and others fill another one by now.
        drop(self.db.lock().unwrap_or_else(PoisonError::into_inner).take());
        if !self.path.exists() {
            return Ok(());
        }
        let held_up: bool = self.with(|db| {
            let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            change.execute_batch(DROP_TABLES)?;
            change.execute_batch(TABLES)?;
            change.commit()?;
            db.execute_batch("VACUUM")?;
            Ok(db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?)
        })?;
        if held_up {
            let by = "another process that searches".to_owned();
            return Err(Error::Locked { path: self.path.clone(), by });
        }
        Ok(())
    }

    /// Forgets a stream that was removed, if it knows it.
    pub(crate) fn forget(&self, stream: &StreamName) -> Result<()> {
        if self.path.exists() && self.with(|db| Ok(cursor(db, stream)?))?.is_some() {
            return self.reset();
        }
        Ok(())
    }

    /// Works on the index; if that shows damage of the index, makes it anew and tries once more.
    fn with<T>(&self, act: impl Fn(&mut Connection) -> Tried<T>) -> Result<T> {
        let mut slot = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        match self.attempt(&mut slot, &act) {
            Err(Error::Corrupt { path, .. }) if path == self.path => {
                *slot = None;
                self.discard();
                self.attempt(&mut slot, &act)
            }
            answer => answer,
        }
    }

    fn attempt<T>(
        &self,
        slot: &mut Option<Connection>,
        act: impl Fn(&mut Connection) -> Tried<T>,
    ) -> Result<T> {
        let db = match slot {
            Some(db) => db,
            empty => empty.insert(self.connect()?),
        };
        act(db).map_err(|trouble| match trouble {
            Trouble::Index(error) => failure(&self.path, &error),
            Trouble::Journal(error) => failure(&self.home.journal_file(), &error),
        })
    }

    fn discard(&self) {
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(beside(&self.path, ending));
        }
    }

    fn connect(&self) -> Result<Connection> {
        self.home.subfolder("cache")?;
        create_once(&self.path, b"")?;
        let said = |error| failure(&self.path, &error);
        let mut db = open(&self.path, None, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // A cache need not survive a power cut, only be whole or absent after it.
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -4096;",
        )
        .map_err(said)?;
        let make = |db: &mut Connection| {
            let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let format: u32 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
            if format != FORMAT {
                change.execute_batch(DROP_TABLES)?;
                change.execute_batch(TABLES)?;
                change.pragma_update(None, "user_version", FORMAT)?;
            }
            change.commit()
        };
        make(&mut db).map_err(said)?;
        Ok(db)
    }
}

/// Where a stream's indexing has come to: its number in the index, the last seq, the hash of that record.
fn cursor(db: &Connection, stream: &StreamName) -> rusqlite::Result<Option<(StreamNumber, Seq, Hash)>> {
    db.prepare_cached("SELECT id, seq, hash FROM cursors WHERE stream = ?1")?
        .query_row([stream.as_str()], |row| {
            Ok((StreamNumber(row.get(0)?), row.get::<_, i64>(1)?.unsigned_abs(), rows::hash(row, 2)?))
        })
        .optional()
}

/// Indexes what a stream has gained. Returns the stream's number in the index.
fn catch_up(
    db: &mut Connection,
    journal: &Connection,
    (number, name): (StreamNumber, &StreamName),
) -> Tried<StreamNumber> {
    let head = rows::head(journal, number).map_err(Trouble::Journal)?;
    loop {
        if let Some((cursor, seq, hash)) = cursor(db, name)?
            && seq >= head.seq
            && stands_on(journal, number, Head { seq, hash })?
        {
            return Ok(cursor);
        }
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Looked at again now that nobody else can move it.
        let (cursor, from) = match cursor(&change, name)? {
            Some((cursor, seq, hash)) if stands_on(journal, number, Head { seq, hash })? => (cursor, seq + 1),
            known => (renew_cursor(&change, name, known.map(|(cursor, ..)| cursor))?, 1),
        };
        let next = index_batch(&change, journal, (number, name), cursor, from)?;
        change.commit()?;
        if next == from {
            // Nothing more can be read: the rest is damaged, and `verify` names it.
            return Ok(cursor);
        }
    }
}

/// Whether the journal still has the record that a cursor stands on: the stream may have been removed, or a backup
/// restored.
fn stands_on(journal: &Connection, number: StreamNumber, cursor: Head) -> Tried<bool> {
    Ok(cursor == Head::EMPTY || heads::has_record(journal, number, cursor).map_err(Trouble::Journal)?)
}

/// A cursor at the beginning, under a new number: entries under an old one are of a stream that is no more.
fn renew_cursor(
    change: &Transaction<'_>,
    stream: &StreamName,
    old: Option<StreamNumber>,
) -> rusqlite::Result<StreamNumber> {
    if let Some(old) = old {
        change.execute("DELETE FROM cursors WHERE id = ?1", [old.0])?;
    }
    let last: i64 = change.query_row("SELECT coalesce(max(id), 0) FROM cursors", [], |row| row.get(0))?;
    let fresh = StreamNumber(last.max(old.map_or(0, |old| old.0)) + 1);
    change.execute(
        "INSERT INTO cursors (id, stream, seq, hash) VALUES (?1, ?2, 0, ?3)",
        params![fresh.0, stream.as_str(), Hash::ZERO.as_bytes()],
    )?;
    Ok(fresh)
}

/// Indexes some records and moves the cursor after them. Returns the next seq.
fn index_batch(
    change: &Transaction<'_>,
    journal: &Connection,
    stream: (StreamNumber, &StreamName),
    cursor: StreamNumber,
    from: Seq,
) -> Tried<Seq> {
    let batch = match rows::page(journal, stream, from, BATCH) {
        Ok(batch) => batch,
        // What can't be read has nothing to find; what comes after it may.
        Err(_) => match check::next_readable(journal, stream.0, from) {
            Some(next) => rows::page(journal, stream, next, BATCH).map_err(Trouble::Journal)?,
            None => return Ok(from),
        },
    };
    let mut last = None;
    for found in batch {
        // A record that can't be read is passed over: it has nothing to find.
        let Found::Record(record) = found else { continue };
        if let Some(text) = whole_text(journal, &record) {
            change
                .prepare_cached("INSERT INTO entries (rowid, text) VALUES (?1, ?2)")?
                .execute(params![cursor.row(record.seq), text])?;
        }
        last = Some((record.seq, record.hash));
    }
    let Some((seq, hash)) = last else { return Ok(from) };
    change.execute(
        "UPDATE cursors SET seq = ?2, hash = ?3 WHERE id = ?1",
        params![cursor.0, i64::try_from(seq).unwrap_or(i64::MAX), hash.as_bytes()],
    )?;
    Ok(seq + 1)
}

/// Everything in a record that can be found, its blobs' text too, set apart for the index.
fn whole_text(journal: &Connection, record: &Record) -> Option<String> {
    let Findable { mut text, blobs } = Findable::of(record)?;
    for blob in blobs {
        // A blob that can't be read has nothing to find.
        if let Ok(Some(bytes)) = rows::blob(journal, blob.hash) {
            text.push('\n');
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
    Some(search::set_apart(&text))
}

type Cursors = [(StreamNumber, StreamNumber, StreamName)];

/// The best hits. One stream is looked at in its own range of rows; all of them, in one go.
fn look(db: &Connection, search: &Search, cursors: &Cursors) -> Tried<Vec<(StreamNumber, StreamName, Seq)>> {
    let terms: Vec<String> =
        search::terms(&search.words).map(|term| format!("\"{}\"", term.replace('"', " "))).collect();
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let query = match search.matching {
        Match::All => terms.join(" "),
        Match::Any => terms.join(" OR "),
    };
    let moment = db.unchecked_transaction()?;
    let everywhere = [(0, i64::MAX)];
    let ranges: Vec<(i64, i64)> = if search.streams.is_empty() {
        everywhere.to_vec()
    } else {
        cursors.iter().map(|(cursor, ..)| (cursor.row(0), cursor.end())).collect()
    };
    let mut statement = moment.prepare_cached(
        "SELECT rowid, rank FROM entries WHERE entries MATCH ?1 AND rowid >= ?2 AND rowid < ?3 ORDER BY rank LIMIT ?4",
    )?;
    let mut ranked: Vec<(f64, i64)> = Vec::new();
    for (from, before) in ranges {
        let limit = i64::try_from(search.limit).unwrap_or(i64::MAX);
        let rows =
            statement.query_map(params![query, from, before, limit], |row| Ok((row.get(1)?, row.get(0)?)))?;
        ranked.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    ranked.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let known = |(_, row)| {
        let (cursor, seq) = StreamNumber::of_row(row);
        let (_, number, name) = cursors.iter().find(|(known, ..)| *known == cursor)?;
        // Another process may have begun the index anew meanwhile, and numbered the streams otherwise.
        let still = self::cursor(&moment, name).ok()??;
        (still.0 == cursor).then(|| (*number, name.clone(), seq))
    };
    Ok(ranked.into_iter().filter_map(known).take(search.limit).collect())
}

fn hit(journal: &Connection, stream: (StreamNumber, StreamName), seq: Seq, words: &str) -> Hit {
    let (number, name) = stream;
    let one = rows::page(journal, (number, &name), seq, Page { records: 1, bytes: 0 });
    let text = match one.unwrap_or_default().first() {
        Some(Found::Record(record)) => found_text(journal, record, words),
        _ => String::new(),
    };
    Hit { excerpt: search::excerpt(&text, words), stream: name, seq }
}

/// The text of a record that has one of the words: its own, or else that of a blob.
fn found_text(journal: &Connection, record: &Record, words: &str) -> String {
    let Some(Findable { text, blobs }) = Findable::of(record) else { return String::new() };
    if search::has_a_word(&text, words) {
        return text;
    }
    let whole = blobs.into_iter().filter_map(|blob| rows::blob(journal, blob.hash).ok()?);
    let mut whole = whole.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    whole.find(|whole| search::has_a_word(whole, words)).unwrap_or(text)
}
