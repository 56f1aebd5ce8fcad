//! The search index: a file of its own under `cache`, so that catching up never holds up an append. It can be
//! deleted at any time and is made again from the journal.

mod filling;
mod looking;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use filling::{catch_up, cursor, cursors};
use longhaul_protocol::StreamName;
use looking::{Looked, frequencies, look};
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use crate::home::{Home, beside, create_once};
use crate::search::Search;
use crate::sqlite::rows;
use crate::sqlite::{failure, open};
use crate::{Error, Frequencies, Hit, Result};

/// Another number makes the index anew.
const FORMAT: u32 = 3;

const TABLES: &str = "
    CREATE TABLE cursors (
        id     INTEGER PRIMARY KEY,
        stream TEXT NOT NULL UNIQUE,
        seq    INTEGER NOT NULL,                 -- indexed up to here …
        hash   BLOB NOT NULL,                    -- … and this is the hash of the record there
        speech TEXT NOT NULL                     -- the places of what was said last
    ) STRICT;
    CREATE VIRTUAL TABLE entries USING fts5 (    -- what a record says
        text, content = '', tokenize = \"unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\"
    );
    CREATE VIRTUAL TABLE gists USING fts5 (      -- what it is about: its own words, and those around it, some of which come later
        own, around, content = '', contentless_delete = 1,
        tokenize = \"unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'\"
    );
";
const DROP_TABLES: &str =
    "DROP TABLE IF EXISTS cursors; DROP TABLE IF EXISTS entries; DROP TABLE IF EXISTS gists;";

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
            let named: HashSet<&StreamName> = search.streams.iter().collect();
            let wanted = |name: &StreamName| named.is_empty() || named.contains(name);
            let mut known = cursors(db)?;
            let mut looked = Vec::new();
            for (number, name) in streams.into_iter().filter(|(_, name)| wanted(name)) {
                let known = known.remove(&name);
                looked.push(Looked { id: catch_up(db, journal, (number, &name), known)?, number, name });
            }
            look(db, journal, search, &looked)
        })
    }

    /// In how many records words stand, as far as they are indexed.
    pub(crate) fn frequencies(&self, words: &[String]) -> Result<Frequencies> {
        self.with(|db| frequencies(db, words))
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
