//! The full-text index, in a separate file (`cache/search.db`), so that indexing never delays an append.
//!
//! It contains only data from the journal. A search first indexes the new records of the streams (`update`), then
//! runs the query (`query`). An index that is missing, damaged or of another version is rebuilt from the journal.

mod query;
mod update;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use longhaul_protocol::StreamName;
use query::{IndexedStream, count_records, run_query};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use update::{cursor, cursors, update_stream};

use crate::home::{Home, create_once, with_suffix};
use crate::search::SearchQuery;
use crate::sqlite::rows;
use crate::sqlite::{failure, open};
use crate::{Error, Result, SearchHit, WordFrequencies};

/// The version of the tables. An index of another version is rebuilt.
const FORMAT: u32 = 3;

const TABLES: &str = "
    CREATE TABLE cursors (
        id     INTEGER PRIMARY KEY,
        stream TEXT NOT NULL UNIQUE,
        seq    INTEGER NOT NULL,                 -- the last indexed record …
        hash   BLOB NOT NULL,                    -- … and its hash
        speech TEXT NOT NULL                     -- the places of the last utterances
    ) STRICT;
    CREATE VIRTUAL TABLE entries USING fts5 (    -- the whole text of a record
        text, content = '', tokenize = \"unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\"
    );
    CREATE VIRTUAL TABLE gists USING fts5 (      -- its topic: the stems of its own words, and of the utterances around it
        own, around, content = '', contentless_delete = 1,
        tokenize = \"unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\"
    );
";
const DROP_TABLES: &str =
    "DROP TABLE IF EXISTS cursors; DROP TABLE IF EXISTS entries; DROP TABLE IF EXISTS gists;";

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
}

impl SearchIndex {
    pub(crate) fn new(home: &Home) -> Self {
        let path = home.folder().join("cache").join("search.db");
        Self { path, home: home.clone(), db: Mutex::default() }
    }

    /// Updates the index for the streams of the search, then runs the query.
    pub(crate) fn search(&self, journal: &Connection, search: &SearchQuery) -> Result<Vec<SearchHit>> {
        self.with_rebuild(|db| {
            let streams = rows::streams(journal).map_err(IndexError::Journal)?;
            let named: HashSet<&StreamName> = search.streams.iter().collect();
            let wanted = |name: &StreamName| named.is_empty() || named.contains(name);
            let mut known = cursors(db)?;
            let mut indexed = Vec::new();
            for (number, name) in streams.into_iter().filter(|(_, name)| wanted(name)) {
                let known = known.remove(&name);
                let id = update_stream(db, journal, (number, &name), known)?;
                indexed.push(IndexedStream { id, number, name });
            }
            run_query(db, journal, search, &indexed)
        })
    }

    /// Counts the indexed records that contain each of the words.
    pub(crate) fn frequencies(&self, words: &[String]) -> Result<WordFrequencies> {
        self.with_rebuild(|db| count_records(db, words, "own :"))
    }

    /// Empties the index and overwrites its text in the file. The next search rebuilds it. The file is not deleted,
    /// because another process may have it open.
    pub(crate) fn clear(&self) -> Result<()> {
        // Opened again, because the file may have been deleted, and then other processes use a new one.
        drop(self.db.lock().unwrap_or_else(PoisonError::into_inner).take());
        if !self.path.exists() {
            return Ok(());
        }
        let is_busy: bool = self.with_rebuild(|db| {
            let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            change.execute_batch(DROP_TABLES)?;
            change.execute_batch(TABLES)?;
            change.commit()?;
            db.execute_batch("VACUUM")?;
            Ok(db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?)
        })?;
        if is_busy {
            let by = "another process that searches".to_owned();
            return Err(Error::Locked { path: self.path.clone(), by });
        }
        Ok(())
    }

    /// Clears the index if it has a stream that was removed.
    pub(crate) fn forget(&self, stream: &StreamName) -> Result<()> {
        if self.path.exists() && self.with_rebuild(|db| Ok(cursor(db, stream)?))?.is_some() {
            return self.clear();
        }
        Ok(())
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
        act(db).map_err(|trouble| match trouble {
            IndexError::Index(error) => failure(&self.path, &error),
            IndexError::Journal(error) => failure(&self.home.journal_file(), &error),
        })
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
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -4096;",
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
            change.commit()
        };
        create_tables(&mut db).map_err(said)?;
        Ok(db)
    }
}
