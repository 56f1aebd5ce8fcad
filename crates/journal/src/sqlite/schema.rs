//! The tables, their formats, and how one format becomes the next.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::Connection;

use crate::home::{Home, PartialFile, create_new, io_error, path_str, publish_once};
use crate::sqlite::{connect, failure};
use crate::{Error, Result};

/// `LHJL`, in the header of every journal. It distinguishes a journal from another program's database.
const APPLICATION_ID: u32 = 0x4c48_4a4c;

/// The SQL that creates each format from the previous one. The first one starts with an empty file. Formats only
/// grow.
const MIGRATIONS: &[&str] = &[FORMAT_1, FORMAT_2, FORMAT_3];

/// The format that this version writes.
pub(crate) const FORMAT: u32 = MIGRATIONS.len() as u32;

/// A record's row id contains its stream and its position: `stream << 36 | seq`. So all records are in one tree, the
/// records of a stream are adjacent and in order, an append touches one page, and the head of a stream is one
/// look-up.
pub(crate) const SEQ_BITS: u32 = 36;

/// The hash chain protects `records` and `blobs`. The other tables are derived from them, except for `leases`.
const FORMAT_1: &str = "
    CREATE TABLE streams (
        id   INTEGER PRIMARY KEY AUTOINCREMENT,  -- a number is never used again
        name TEXT NOT NULL UNIQUE
    ) STRICT;

    CREATE TABLE records (
        id   INTEGER PRIMARY KEY,                -- stream << 36 | seq
        at   INTEGER NOT NULL,
        kind TEXT NOT NULL,
        key  BLOB,                               -- the hash of a key that is unique in the stream
        prev BLOB NOT NULL,
        hash BLOB NOT NULL,
        gone BLOB,                               -- what stands where a body was: a checksum, then JSON
        body TEXT
    ) STRICT;
    CREATE UNIQUE INDEX record_keys ON records (id >> 36, key) WHERE key IS NOT NULL;

    CREATE TABLE blobs (
        id    INTEGER PRIMARY KEY,
        hash  BLOB NOT NULL UNIQUE,
        bytes BLOB                               -- null: lost to damage, and stood in for by a salvage
    ) STRICT;
    CREATE TABLE blob_uses (                     -- made from the bodies
        blob   BLOB NOT NULL,
        record INTEGER NOT NULL,
        PRIMARY KEY (blob, record)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX blob_uses_by_record ON blob_uses (record);

    CREATE TABLE sessions (                      -- made from the stream `names`
        id      TEXT PRIMARY KEY,
        key     TEXT NOT NULL UNIQUE,
        trashed INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE leases (
        stream     INTEGER PRIMARY KEY,
        token      INTEGER NOT NULL,
        holder     TEXT,                         -- null: free
        expires_at INTEGER NOT NULL
    ) STRICT;
";

/// An index of epochs, because loading a session begins at its newest one.
const FORMAT_2: &str = "
    CREATE INDEX IF NOT EXISTS epochs ON records (id) WHERE kind = 'epoch_started';
";

/// Pinned sessions.
const FORMAT_3: &str = "
    CREATE TABLE IF NOT EXISTS pinned (          -- made from the stream `names`
        id TEXT PRIMARY KEY
    ) STRICT, WITHOUT ROWID;
";

/// The kind of a file, from its header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Missing,
    Journal { format: u32 },
}

/// Reads a file's header without opening it as a database, which could change it. `open_files` says when this is allowed.
pub(crate) fn file_kind(path: &Path) -> Result<FileKind> {
    let foreign = |reason: &str| Error::Foreign { path: path.to_owned(), reason: reason.to_owned() };
    if path.is_dir() {
        return Err(foreign("it is a folder"));
    }
    let mut header = [0; 100];
    match File::open(path) {
        Ok(mut file) => file.read_exact(&mut header).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => foreign("the file is too short"),
            _ => io_error(path, &error),
        })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(FileKind::Missing),
        Err(error) => return Err(io_error(path, &error)),
    }
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if &header[..16] != b"SQLite format 3\0" {
        return Err(foreign("not an SQLite database"));
    }
    match (number(68), number(60)) {
        (APPLICATION_ID, 0) => Err(foreign("no format number")),
        (APPLICATION_ID, format) => Ok(FileKind::Journal { format }),
        _ => Err(foreign("the database of another program")),
    }
}

/// The result of opening a journal to write.
pub(crate) enum Access {
    /// A journal of the format that this version writes.
    Current(Connection),
    /// A journal of an earlier format, to be migrated first.
    Older,
}

/// Opens a journal to write. Its header may be older than its log, so only this tells the format with certainty.
pub(crate) fn connect_to_write(path: &Path, vfs: Option<&str>) -> Result<Access> {
    let db = connect(path, vfs)?;
    match format_of(&db).map_err(|error| failure(path, &error))? {
        FORMAT => Ok(Access::Current(db)),
        format if format < FORMAT => Ok(Access::Older),
        format => Err(Error::Newer { path: path.to_owned(), format, known: FORMAT }),
    }
}

fn format_of(db: &Connection) -> rusqlite::Result<u32> {
    db.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0).map(i32::cast_unsigned))
}

/// Differences between the tables and what the file's format should have. For a newer format there are none, because
/// its tables are unknown.
pub(crate) fn schema_differences(db: &Connection) -> rusqlite::Result<Vec<String>> {
    let format = format_of(db)?;
    let Some(steps) = MIGRATIONS.get(..format as usize) else { return Ok(Vec::new()) };
    let expected = Connection::open_in_memory()?;
    expected.execute_batch(&steps.concat())?;
    let tables = |db: &Connection| -> rusqlite::Result<BTreeMap<String, Option<String>>> {
        db.prepare("SELECT type || ' ' || name, sql FROM sqlite_schema")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    };
    let (found, expected) = (tables(db)?, tables(&expected)?);
    let surplus = found.iter().filter(|(name, sql)| expected.get(*name) != Some(sql));
    let missing = expected.keys().filter(|name| !found.contains_key(*name));
    let surplus = surplus.map(|(name, _)| format!("unexpected {name}"));
    Ok(surplus.chain(missing.map(|name| format!("missing {name}"))).collect())
}

/// Creates an empty journal atomically: a crash leaves either none or a complete one. If two processes do this at the
/// same time, one wins and both use its file.
pub(crate) fn create(path: &Path, vfs: Option<&str>) -> Result<()> {
    let partial = PartialFile::next_to(path);
    drop(create_new(partial.path())?);
    create_tables(partial.path(), vfs)?;
    publish_once(partial.path(), path)
}

/// Creates the tables of the newest format in an empty file, and leaves no log beside it.
pub(crate) fn create_tables(path: &Path, vfs: Option<&str>) -> Result<()> {
    let said = |error| failure(path, &error);
    let db = connect(path, vfs)?;
    db.pragma_update(None, "application_id", APPLICATION_ID).map_err(said)?;
    migrate_from(&db, 0).map_err(said)?;
    db.pragma_update(None, "journal_mode", "wal").map_err(said)?;
    db.close().map_err(|(_, error)| failure(path, &error))
}

/// Migrates an older journal to the newest format: under the exclusive lock and in one transaction. A copy beside it
/// is kept until the commit.
pub(crate) fn migrate(home: &Home, vfs: Option<&str>) -> Result<()> {
    let path = home.journal_file();
    let said = |error| failure(&path, &error);
    let _alone = home.lock_exclusive("upgrading the journal")?;
    let db = connect(&path, vfs)?;
    let format = format_of(&db).map_err(said)?;
    if format >= FORMAT {
        // Another process has already migrated it.
        return Ok(());
    }
    let copy = home.folder().join(format!("journal.format-{format}.db"));
    let _ = std::fs::remove_file(&copy);
    drop(create_new(&copy)?);
    db.execute("VACUUM INTO ?1", [path_str(&copy)?]).map_err(said)?;
    File::open(&copy).and_then(|file| file.sync_all()).map_err(|error| io_error(&copy, &error))?;
    migrate_from(&db, format).map_err(said)?;
    db.close().map_err(|(_, error)| failure(&path, &error))?;
    std::fs::remove_file(&copy).map_err(|error| io_error(&copy, &error))
}

fn migrate_from(db: &Connection, format: u32) -> rusqlite::Result<()> {
    let steps = MIGRATIONS[format as usize..].concat();
    db.execute_batch(&format!("BEGIN EXCLUSIVE; {steps} PRAGMA user_version = {FORMAT}; COMMIT;"))
}
