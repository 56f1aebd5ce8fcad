//! The full-text index, in a separate file (`cache/search.db`), so that indexing never delays an append.
//!
//! It contains only data from the journal. A search first indexes the new records of the streams (`update`), then
//! runs the query (`query`). An index that is missing, damaged or of another version is rebuilt from the journal.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `cursor` | how far each stream is indexed |
//! | `chunk`, `chunk_store` | what is known of each record beside its words |
//! | `posting_list`, `postings` | which records have a stem |
//! | `update` | indexing new records |
//! | `searched_records`, `query` | searching |
//! | `vectors` | vectors of an embedding model, if there is one |
//! | `source` | what it reads of the journal, whatever its engine |
//! | `erasure` | taking records out of the index |

mod chunk;
mod chunk_store;
mod cursor;
mod erasure;
mod posting_list;
mod postings;
mod query;
mod searched_records;
mod source;
mod update;
mod varint;
mod vectors;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cursor::{IndexCursor, cursors};
pub use erasure::ErasedPlace;
use longhaul_protocol::StreamName;
use query::{answer_without_records, run_query, streams_with_words};
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use searched_records::{SearchedRecords, SearchedStream};
pub use source::IndexSource;
use update::IndexUpdate;

use crate::home::{Home, create_once, io_error, private, with_suffix};
use crate::search::{SearchQuery, SearchScope};
use crate::sqlite::rows::StreamNumber;
use crate::sqlite::{failure, open};
use crate::{Error, FoundStreams, Head, RecordVector, Result, SearchAnswer, SearchHit, UnembeddedRecord};

/// The version of the tables and of the stems in them. An index of another version is rebuilt.
const FORMAT: u32 = 7;
/// How long a search indexes before it answers from what is indexed, and says so. A million records take longer, and a
/// search of a few new ones never does.
const MAX_INDEXING: Duration = Duration::from_secs(20);
/// How long a process that needs the lock of the index sleeps between two tries to get it, and how often it tries: for five seconds.
const LOCK_POLL: Duration = Duration::from_millis(2);
const LOCK_TRIES: i32 = 2_500;
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
    CREATE TABLE chunks (                           -- what is known of up to 256 records of a stream beside their words
        chunk   INTEGER PRIMARY KEY AUTOINCREMENT,  -- a number is never used again
        stream  INTEGER NOT NULL,
        number  INTEGER NOT NULL,                   -- the stream's first chunk is 0
        weights BLOB NOT NULL,
        places  BLOB NOT NULL,
        embedded INTEGER NOT NULL DEFAULT 0         -- how many of its records need no vector any more
    ) STRICT;
    CREATE UNIQUE INDEX chunks_of_stream ON chunks (stream, number);
    CREATE TABLE erasing (                          -- records whose words are being erased
        stream  TEXT NOT NULL,
        seq     INTEGER NOT NULL,
        PRIMARY KEY (stream, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE postings (                         -- which records of a block of chunks have a stem
        stem    TEXT NOT NULL,
        block   INTEGER NOT NULL,
        slots   BLOB NOT NULL,
        PRIMARY KEY (stem, block)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE vectors (                          -- what an embedding model makes of records
        chunk   INTEGER NOT NULL,
        place   INTEGER NOT NULL,
        vector  BLOB NOT NULL,
        PRIMARY KEY (chunk, place)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE vector_space (                     -- of which model, and how long they are
        model   TEXT NOT NULL,
        length  INTEGER NOT NULL
    ) STRICT;
";
/// Also those of earlier versions.
const DROP_TABLES: &str = "
    DROP TABLE IF EXISTS cursors; DROP TABLE IF EXISTS chunks; DROP TABLE IF EXISTS erasing;
    DROP TABLE IF EXISTS postings; DROP TABLE IF EXISTS entries; DROP TABLE IF EXISTS gists;
    DROP TABLE IF EXISTS vectors; DROP TABLE IF EXISTS vector_space;
";

/// An error of SQLite, by the file that caused it: a damaged index is rebuilt, a damaged journal is an error.
enum IndexError {
    Index(rusqlite::Error),
    Journal(Error),
    /// A process of another version has put its own tables there.
    OtherFormat,
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error)
    }
}

/// What SQLite would say of a file that contradicts itself, so that the index is rebuilt.
fn damaged() -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT), None)
}

/// Begins a change of the index.
fn begin_change(db: &Connection) -> IndexResult<Transaction<'_>> {
    let change = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    check_format(&change)?;
    Ok(change)
}

fn check_format(db: &Connection) -> IndexResult<()> {
    if stored_format(db)? == FORMAT { Ok(()) } else { Err(IndexError::OtherFormat) }
}

fn stored_format(db: &Connection) -> rusqlite::Result<u32> {
    db.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))
}

type IndexResult<T> = std::result::Result<T, IndexError>;

/// The index of a home, in `cache/search.db`. Its methods wait for files and for the journal.
pub struct SearchIndex {
    path: PathBuf,
    home: Home,
    db: Mutex<Option<OpenIndex>>,
    max_indexing: Duration,
}

/// The index, while it is open.
struct OpenIndex {
    db: Connection,
    /// The number of the file. The path has another one when another process has replaced a damaged index.
    inode: Option<u64>,
}

impl SearchIndex {
    pub fn new(home: &Home) -> Self {
        let path = home.folder().join("cache").join("search.db");
        Self { path, home: home.clone(), db: Mutex::default(), max_indexing: MAX_INDEXING }
    }

    /// Updates the index for the streams of the search, then runs the query.
    pub fn search(&self, journal: &dyn IndexSource, search: &SearchQuery) -> Result<SearchAnswer> {
        self.finish_erasures(journal)?;
        self.with_rebuild(|db| {
            let (found, unindexed) =
                self.query(db, journal, &search.scope, |searched| run_query(searched, journal, search))?;
            Ok(SearchAnswer { unindexed, ..found.unwrap_or_else(|| answer_without_records(search)) })
        })
    }

    /// The streams that have a record with all of the words.
    pub fn streams_with_words(&self, journal: &dyn IndexSource, words: &str) -> Result<FoundStreams> {
        self.finish_erasures(journal)?;
        self.with_rebuild(|db| {
            let (found, unindexed) =
                self.query(db, journal, &SearchScope::All, |searched| streams_with_words(searched, words))?;
            Ok(FoundStreams { streams: found.unwrap_or_default(), unindexed })
        })
    }

    /// The records of a stream without a vector of this model, at most `limit`.
    pub fn unembedded(
        &self,
        journal: &dyn IndexSource,
        stream: &StreamName,
        model: &str,
        limit: usize,
    ) -> Result<Vec<UnembeddedRecord>> {
        self.finish_erasures(journal)?;
        let scope = SearchScope::Streams(vec![stream.clone()]);
        self.with_rebuild(|db| {
            let (indexed, _) = self.query(db, journal, &scope, |_| Ok(()))?;
            let head = journal.head(stream).map_err(IndexError::Journal)?;
            match (indexed, head) {
                (Some(()), Some((number, _))) => {
                    vectors::unembedded(db, journal, &(number, stream.clone()), model, limit)
                }
                _ => Ok(Vec::new()),
            }
        })
    }

    /// Stores vectors of records.
    pub fn put_vectors(&self, model: &str, vectors: &[RecordVector]) -> Result<()> {
        self.with_rebuild(|db| vectors::put_vectors(db, model, vectors))
    }

    /// The records whose vectors are nearest to this one.
    pub fn search_vectors(
        &self,
        journal: &dyn IndexSource,
        search: &SearchQuery,
        model: &str,
        vector: &[f32],
    ) -> Result<Vec<SearchHit>> {
        self.finish_erasures(journal)?;
        self.with_rebuild(|db| {
            let (found, _) = self.query(db, journal, &search.scope, |searched| {
                let near = vectors::nearest(db, searched, model, vector, search.limit)?;
                query::show_hits(searched, journal, search, near)
            })?;
            Ok(found.unwrap_or_default())
        })
    }

    /// Indexes the new records of a scope, and runs a query on one snapshot of the index. Returns its result, `None` if the scope is
    /// empty, and how many records are not indexed yet.
    fn query<T>(
        &self,
        db: &Connection,
        journal: &dyn IndexSource,
        scope: &SearchScope,
        run: impl FnOnce(&SearchedRecords<'_>) -> IndexResult<T>,
    ) -> IndexResult<(Option<T>, u64)> {
        let (streams, heads): (Vec<SearchedStream>, Vec<Head>) = scoped_heads(journal, scope)
            .map_err(IndexError::Journal)?
            .into_iter()
            .map(|(number, name, head)| ((number, name), head))
            .unzip();
        if streams.is_empty() {
            return Ok((None, 0));
        }
        let mut snapshot = IndexSnapshot::open(db, &streams)?;
        let is_current = |((_, name), head): (&SearchedStream, &Head)| {
            *head == Head::EMPTY || snapshot.cursors.get(name.as_str()).is_some_and(|known| known.at == *head)
        };
        let mut unindexed = 0;
        if !streams.iter().zip(&heads).all(is_current) {
            let IndexSnapshot { cursors, transaction } = snapshot;
            drop(transaction);
            let mut update = IndexUpdate::new(db, journal, Instant::now() + self.max_indexing);
            for ((number, name), head) in streams.iter().zip(heads) {
                let known = cursors.get(name.as_str()).map(|known| known.at);
                unindexed += update.index_stream((*number, name, head), known)?;
            }
            update.commit()?;
            snapshot = IndexSnapshot::open(db, &streams)?;
        }
        let IndexSnapshot { mut cursors, transaction } = snapshot;
        let indexed =
            streams.iter().filter_map(|stream| Some((stream, cursors.remove(stream.1.as_str())?))).collect();
        let searched = SearchedRecords::new(&transaction, indexed);
        Ok((Some(run(&searched)?), unindexed))
    }

    /// Marks records that are going to be erased. Without an index, too: another process may make one before they are.
    pub fn prepare_erasure(&self, places: &[ErasedPlace]) -> Result<()> {
        self.reopen();
        self.with_rebuild(|db| erasure::mark(db, places))
    }

    /// Marks a stream that is going to be removed.
    pub fn prepare_removal(&self, stream: &StreamName) -> Result<()> {
        self.prepare_erasure(&[erasure::whole_stream(stream)])
    }

    /// Takes erased records out of the index and its file.
    pub fn erase(&self, places: &[ErasedPlace]) -> Result<()> {
        if !self.reopen() {
            return Ok(());
        }
        self.erase_and_scrub(places)
    }

    /// Takes records out, and drops their marks when their words are in no byte of the files.
    fn erase_and_scrub(&self, places: &[ErasedPlace]) -> Result<()> {
        self.with_rebuild(|db| erasure::erase_records(db, places))?;
        self.scrub()?;
        self.with_rebuild(|db| erasure::unmark(db, places))
    }

    /// Erases what an erasure left that was cut short after the journal had erased it.
    fn finish_erasures(&self, journal: &dyn IndexSource) -> Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        let left = self.with_rebuild(|db| erasure::interrupted_erasures(db, journal))?;
        if left.is_empty() {
            return Ok(());
        }
        match self.erase_and_scrub(&left) {
            // Another process reads the log now, which is no reason to fail a search. The marks stay, and the next search tries again.
            Err(Error::Locked { .. }) => Ok(()),
            done => done,
        }
    }

    /// Takes a stream out of the index and its file.
    pub fn erase_stream(&self, stream: &StreamName) -> Result<()> {
        if !self.reopen() {
            return Ok(());
        }
        match self.with_rebuild(|db| erasure::erase_stream(db, stream))? {
            Some(erased) => {
                self.scrub()?;
                self.with_rebuild(|db| erasure::unmark(db, std::slice::from_ref(&erased)))
            }
            None => Ok(()),
        }
    }

    /// Empties the index, if there is one. The next search rebuilds it. The file is not deleted, because another process may have
    /// it open.
    pub fn clear_existing(&self) -> Result<()> {
        if !self.reopen() {
            return Ok(());
        }
        self.with_rebuild(|db| {
            let change = begin_change(db)?;
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
    fn with_rebuild<T>(&self, act: impl Fn(&Connection) -> IndexResult<T>) -> Result<T> {
        let mut slot = self.db.lock().unwrap_or_else(PoisonError::into_inner);
        match self.attempt(&mut slot, &act) {
            Err(Error::Corrupt { path, .. }) if path == self.path => {
                self.delete_damaged(slot.take())?;
                self.attempt(&mut slot, &act)
            }
            answer => answer,
        }
    }

    fn attempt<T>(
        &self,
        slot: &mut Option<OpenIndex>,
        act: impl Fn(&Connection) -> IndexResult<T>,
    ) -> Result<T> {
        // Twice, if it has to be opened again.
        for _ in 0..2 {
            let index = match &mut *slot {
                Some(index) => index,
                empty => empty.insert(self.connect()?),
            };
            match act(&index.db) {
                Ok(done) => return Ok(done),
                Err(IndexError::Index(error)) => return Err(failure(&self.path, &error)),
                Err(IndexError::Journal(error)) => return Err(error),
                Err(IndexError::OtherFormat) => *slot = None,
            }
        }
        let by = "a process of another version".to_owned();
        Err(Error::Locked { path: self.path.clone(), by })
    }

    /// Deletes a damaged index, unless another process has replaced it meanwhile. `index` is `None` if it could not be opened.
    fn delete_damaged(&self, index: Option<OpenIndex>) -> Result<()> {
        let files = self.lock_file()?;
        files.lock().map_err(|error| io_error(&self.path, &error))?;
        let is_replaced = match &index {
            Some(index) => index.inode != self.inode(),
            None => !matches!(self.open_files(), Err(Error::Corrupt { .. })),
        };
        drop(index);
        if !is_replaced {
            for ending in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(with_suffix(&self.path, ending));
            }
        }
        Ok(())
    }

    /// The file whose lock a process shares while it opens the files of the index, and has for itself while it deletes them. Otherwise
    /// one could open a new file with the log of an old one.
    fn lock_file(&self) -> Result<File> {
        self.home.subfolder("cache")?;
        let path = self.path.with_extension("lock");
        let file = private(File::options().write(true).create(true)).open(&path);
        file.map_err(|error| io_error(&path, &error))
    }

    fn inode(&self) -> Option<u64> {
        std::fs::metadata(&self.path).ok().map(|file| file.ino())
    }

    fn connect(&self) -> Result<OpenIndex> {
        let files = self.lock_file()?;
        files.lock_shared().map_err(|error| io_error(&self.path, &error))?;
        self.open_files()
    }

    /// Opens the index, and makes a new one if there is none, or one of another version.
    fn open_files(&self) -> Result<OpenIndex> {
        create_once(&self.path, b"")?;
        let inode = self.inode();
        let index_failure = |error: &rusqlite::Error| failure(&self.path, error);
        let mut db = open(&self.path, None, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        db.busy_handler(Some(wait_for_lock)).map_err(|error| index_failure(&error))?;
        // The index is a cache, so it may lose its newest content in a power cut.
        let settings = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -8192;";
        let create_tables = || {
            db.execute_batch(settings)?;
            // Most have their tables, and then nothing waits for a process that indexes.
            if stored_format(&db)? == FORMAT {
                return Ok(());
            }
            let change = Transaction::new_unchecked(&db, TransactionBehavior::Immediate)?;
            let format = stored_format(&change)?;
            if format != FORMAT {
                change.execute_batch(DROP_TABLES)?;
                change.execute_batch(TABLES)?;
                change.pragma_update(None, "user_version", FORMAT)?;
            }
            change.commit()?;
            // An index of an earlier version was many times as large.
            if format != FORMAT && format != 0 { db.execute_batch("VACUUM") } else { Ok(()) }
        };
        create_tables().map_err(|error| index_failure(&error))?;
        Ok(OpenIndex { db, inode })
    }
}

/// Sleeps until the next try to get the lock of the index; false to give up.
fn wait_for_lock(tries: i32) -> bool {
    std::thread::sleep(LOCK_POLL);
    tries < LOCK_TRIES
}

/// The cursors of streams, and the transaction in which they were read.
struct IndexSnapshot<'a> {
    transaction: Transaction<'a>,
    cursors: HashMap<String, IndexCursor>,
}

impl<'a> IndexSnapshot<'a> {
    fn open(db: &'a Connection, streams: &[SearchedStream]) -> IndexResult<Self> {
        let transaction = db.unchecked_transaction()?;
        check_format(&transaction)?;
        let cursors = cursors(&transaction, streams.iter().map(|(_, name)| name))?;
        Ok(Self { transaction, cursors })
    }
}

/// The streams of a search with their heads.
fn scoped_heads(
    journal: &dyn IndexSource,
    scope: &SearchScope,
) -> Result<Vec<(StreamNumber, StreamName, Head)>> {
    match scope {
        SearchScope::All => journal.heads(""),
        SearchScope::Streams(streams) if streams.len() > MAX_SINGLE_HEADS => {
            let wanted: HashSet<&StreamName> = streams.iter().collect();
            let family =
                |stream: &StreamName| stream.as_str().split_inclusive('/').next().unwrap_or("").to_owned();
            let first = streams.first().map_or_else(String::new, family);
            let prefix =
                if streams.iter().all(|stream| stream.as_str().starts_with(&first)) { &*first } else { "" };
            Ok(journal.heads(prefix)?.into_iter().filter(|(_, name, _)| wanted.contains(name)).collect())
        }
        SearchScope::Streams(streams) => {
            let wanted: HashSet<&StreamName> = streams.iter().collect();
            let mut heads = Vec::new();
            for stream in wanted {
                if let Some((number, head)) = journal.head(stream)? {
                    heads.push((number, stream.clone(), head));
                }
            }
            Ok(heads)
        }
    }
}

#[cfg(test)]
#[path = "search_index_tests.rs"]
mod tests;
