//! The full-text index, in a separate file (`cache/search.db`), so that indexing never delays an append.
//!
//! It contains only data from the journal. A search first indexes the new records of the streams (`update`), then
//! runs the query (`query`). An index that is missing, damaged or of another version is rebuilt from the journal.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `cursor` | how far each stream is indexed |
//! | `chunk` | what is known of each record beside its words |
//! | `update` | indexing new records |
//! | `query` | searching |
//! | `erasure` | taking words out of the index |

mod chunk;
mod cursor;
mod erasure;
mod query;
mod update;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cursor::{cursor, cursors};
use erasure::Erased;
pub(crate) use erasure::WordsToErase;
use longhaul_protocol::{Seq, StreamName};
use query::{SearchedStream, run_query, streams_with_words};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use update::update_stream;

use crate::home::{Home, create_once, with_suffix};
use crate::search::{SearchQuery, SearchScope};
use crate::sqlite::rows;
use crate::sqlite::{failure, open};
use crate::{Error, Result, SearchAnswer};

/// The version of the tables and of the stems in them. An index of another version is rebuilt.
const FORMAT: u32 = 4;
/// How long a search indexes before it answers from what is indexed, and says so. A million records take longer, and a
/// search of a few new ones never does.
const MAX_INDEXING: Duration = Duration::from_secs(20);
/// Records that one search indexes before it merges the segments of the index. Many segments make every later search
/// slower; a few new records cost little.
const MERGE_AFTER: u64 = 5_000;
/// The most streams whose heads are read one by one.
const MAX_SINGLE_HEADS: usize = 16;

const TABLES: &str = "
    CREATE TABLE cursors (
        id      INTEGER PRIMARY KEY AUTOINCREMENT,  -- a number is never used again
        stream  TEXT NOT NULL UNIQUE,
        seq     INTEGER NOT NULL,                   -- the last indexed record …
        hash    BLOB NOT NULL,                      -- … and its hash
        records INTEGER NOT NULL,                   -- how many of them have words
        person  TEXT NOT NULL                       -- who speaks as the user
    ) STRICT;
    CREATE TABLE chunks (                           -- what is known of records beside their words
        stream  INTEGER NOT NULL,
        chunk   INTEGER NOT NULL,
        weights BLOB NOT NULL,
        places  BLOB NOT NULL,
        PRIMARY KEY (stream, chunk)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE erasing (                          -- records whose words are being erased
        stream  TEXT NOT NULL,
        seq     INTEGER NOT NULL,
        PRIMARY KEY (stream, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE VIRTUAL TABLE postings USING fts5 (      -- which records have a stem, and nothing else
        stems, content = '', detail = none, columnsize = 0, tokenize = 'ascii'
    );
";
/// Also those of earlier versions.
const DROP_TABLES: &str = "
    DROP TABLE IF EXISTS cursors; DROP TABLE IF EXISTS chunks; DROP TABLE IF EXISTS erasing;
    DROP TABLE IF EXISTS postings; DROP TABLE IF EXISTS entries; DROP TABLE IF EXISTS gists;
";

/// An error of SQLite, by the file that caused it: a damaged index is rebuilt, a damaged journal is an error.
enum IndexError {
    Index(rusqlite::Error),
    Journal(rusqlite::Error),
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error)
    }
}

type IndexResult<T> = std::result::Result<T, IndexError>;

pub(crate) struct SearchIndex {
    path: PathBuf,
    home: Home,
    db: Mutex<Option<Connection>>,
    max_indexing: Duration,
}

impl SearchIndex {
    pub(crate) fn new(home: &Home) -> Self {
        let path = home.folder().join("cache").join("search.db");
        Self { path, home: home.clone(), db: Mutex::default(), max_indexing: MAX_INDEXING }
    }

    /// Updates the index for the streams of the search, then runs the query.
    pub(crate) fn search(&self, journal: &Connection, search: &SearchQuery) -> Result<SearchAnswer> {
        self.finish_erasures(journal)?;
        self.with_rebuild(|db| {
            let (streams, unindexed) = self.update(db, journal, &search.scope)?;
            Ok(SearchAnswer { unindexed, ..run_query(db, journal, search, &streams)? })
        })
    }

    /// The streams that have a record with all of the words.
    pub(crate) fn streams_with_words(&self, journal: &Connection, words: &str) -> Result<Vec<StreamName>> {
        self.finish_erasures(journal)?;
        self.with_rebuild(|db| {
            let (streams, _) = self.update(db, journal, &SearchScope::All)?;
            streams_with_words(db, words, &streams)
        })
    }

    /// Indexes the new records of the streams of a search. Returns these streams, and how many records are left.
    fn update(
        &self,
        db: &mut Connection,
        journal: &Connection,
        scope: &SearchScope,
    ) -> IndexResult<(Vec<SearchedStream>, u64)> {
        let deadline = Instant::now() + self.max_indexing;
        let heads = scoped_heads(journal, scope).map_err(IndexError::Journal)?;
        let mut known = cursors(db, heads.iter().map(|(_, name, _)| name))?;
        let (mut searched, mut unindexed, mut indexed) = (Vec::new(), 0, 0);
        for (number, name, head) in heads {
            let known = known.remove(name.as_str()).map(|cursor| cursor.at);
            let left = update_stream(db, journal, (number, &name, head), known, deadline)?;
            let from = known.map_or(0, |known| known.seq);
            (unindexed, indexed) = (unindexed + left, indexed + head.seq.saturating_sub(from + left));
            searched.push((number, name));
        }
        if indexed >= MERGE_AFTER {
            erasure::merge_segments(db)?;
        }
        Ok((searched, unindexed))
    }

    /// Reads the words of records that are going to be erased, and marks the records.
    pub(crate) fn prepare_erasure(
        &self,
        journal: &Connection,
        places: &[(StreamName, Seq)],
    ) -> Result<Vec<WordsToErase>> {
        let read = |(stream, seq): &(StreamName, Seq)| WordsToErase::read(journal, stream, *seq);
        let words =
            places.iter().map(read).collect::<IndexResult<Vec<_>>>().map_err(|error| self.said(&error))?;
        if self.path.exists() {
            self.with_rebuild(|db| erasure::mark(db, &words))?;
        }
        Ok(words)
    }

    /// Takes the words of erased records out of the index and its file.
    pub(crate) fn erase(&self, words: &[WordsToErase]) -> Result<()> {
        if !self.reopen() {
            return Ok(());
        }
        match self.with_rebuild(|db| erasure::erase_words(db, words))? {
            Erased::Completely => self.scrub(),
            Erased::WordsUnknown => self.clear(),
        }
    }

    /// Clears the index if an erasure was cut short, because the words that it left are unknown by now.
    fn finish_erasures(&self, journal: &Connection) -> Result<()> {
        if self.path.exists() && self.with_rebuild(|db| erasure::has_unknown_words(db, journal))? {
            self.clear()?;
        }
        Ok(())
    }

    /// Takes a stream out of the index, before it is removed from the journal.
    pub(crate) fn erase_stream(&self, journal: &Connection, stream: &StreamName) -> Result<()> {
        if self.reopen() && self.with_rebuild(|db| Ok(cursor(db, stream)?))?.is_some() {
            self.with_rebuild(|db| erasure::erase_stream(db, journal, stream))?;
            self.scrub()?;
        }
        Ok(())
    }

    /// Clears the index if it has a stream that was removed.
    pub(crate) fn forget(&self, stream: &StreamName) -> Result<()> {
        if self.reopen() && self.with_rebuild(|db| Ok(cursor(db, stream)?))?.is_some() {
            return self.clear();
        }
        Ok(())
    }

    /// Empties the index. The next search rebuilds it. The file is not deleted, because another process may have it open.
    fn clear(&self) -> Result<()> {
        self.with_rebuild(|db| {
            let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            change.execute_batch(DROP_TABLES)?;
            change.execute_batch(TABLES)?;
            Ok(change.commit()?)
        })?;
        self.scrub()
    }

    /// Rewrites the file, so that no unused bytes keep what was deleted, and empties the log.
    fn scrub(&self) -> Result<()> {
        let is_busy: bool = self.with_rebuild(|db| {
            db.execute_batch("VACUUM")?;
            Ok(db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?)
        })?;
        if is_busy {
            let by = "another process that searches".to_owned();
            return Err(Error::Locked { path: self.path.clone(), by });
        }
        Ok(())
    }

    /// Closes the file, because it may have been deleted, and then other processes use a new one. Returns whether there
    /// is one.
    fn reopen(&self) -> bool {
        drop(self.db.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.path.exists()
    }

    /// Runs an operation on the index. If the index is damaged, deletes it and retries once with a new one, which
    /// rebuilds it.
    fn with_rebuild<T>(&self, act: impl Fn(&mut Connection) -> IndexResult<T>) -> Result<T> {
        let mut slot = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        match self.attempt(&mut slot, &act) {
            Err(Error::Corrupt { path, .. }) if path == self.path => {
                *slot = None;
                self.delete_files();
                self.attempt(&mut slot, &act)
            }
            answer => answer,
        }
    }

    fn attempt<T>(
        &self,
        slot: &mut Option<Connection>,
        act: impl Fn(&mut Connection) -> IndexResult<T>,
    ) -> Result<T> {
        let db = match slot {
            Some(db) => db,
            empty => empty.insert(self.connect()?),
        };
        act(db).map_err(|error| self.said(&error))
    }

    fn said(&self, error: &IndexError) -> Error {
        match error {
            IndexError::Index(error) => failure(&self.path, error),
            IndexError::Journal(error) => failure(&self.home.journal_file(), error),
        }
    }

    fn delete_files(&self) {
        for ending in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(with_suffix(&self.path, ending));
        }
    }

    fn connect(&self) -> Result<Connection> {
        self.home.subfolder("cache")?;
        create_once(&self.path, b"")?;
        let said = |error| failure(&self.path, &error);
        let mut db = open(&self.path, None, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        // The index is a cache, so it may lose its newest content in a power cut.
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8192;",
        )
        .map_err(said)?;
        let create_tables = |db: &mut Connection| {
            let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let format: u32 = change.pragma_query_value(None, "user_version", |row| row.get(0))?;
            if format != FORMAT {
                change.execute_batch(DROP_TABLES)?;
                change.execute_batch(TABLES)?;
                change.pragma_update(None, "user_version", FORMAT)?;
            }
            change.commit()?;
            // An index of an earlier version was many times as large.
            if format != FORMAT && format != 0 { db.execute_batch("VACUUM") } else { Ok(()) }
        };
        create_tables(&mut db).map_err(said)?;
        Ok(db)
    }
}

/// The streams of a search with their heads.
fn scoped_heads(
    journal: &Connection,
    scope: &SearchScope,
) -> rusqlite::Result<Vec<(rows::StreamNumber, StreamName, crate::Head)>> {
    match scope {
        SearchScope::All => rows::heads(journal, ""),
        SearchScope::Streams(streams) if streams.len() > MAX_SINGLE_HEADS => {
            let wanted: HashSet<&StreamName> = streams.iter().collect();
            let family =
                |stream: &StreamName| stream.as_str().split_inclusive('/').next().unwrap_or("").to_owned();
            let first = streams.first().map_or_else(String::new, family);
            let prefix =
                if streams.iter().all(|stream| stream.as_str().starts_with(&first)) { &*first } else { "" };
            Ok(rows::heads(journal, prefix)?
                .into_iter()
                .filter(|(_, name, _)| wanted.contains(name))
                .collect())
        }
        SearchScope::Streams(streams) => {
            let wanted: HashSet<&StreamName> = streams.iter().collect();
            let mut heads = Vec::new();
            for stream in wanted {
                if let Some(number) = rows::stream_number(journal, stream)? {
                    heads.push((number, stream.clone(), rows::head(journal, number)?));
                }
            }
            Ok(heads)
        }
    }
}

#[cfg(test)]
#[path = "search_index_tests.rs"]
mod tests;
