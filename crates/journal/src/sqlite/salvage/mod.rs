//! Salvage: recovers the readable records of a damaged journal into a new one.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `file_format` | SQLite's file format: pages, cells, varints; trusts nothing |
//! | `scan` | finds rows by their shape on every page, whatever the trees say, and the streams that they belong to |
//! | `repair` | completes the new journal: stubs for lost records, derived tables rebuilt |
//!
//! A record's own hash decides whether a row is valid. So a record is recovered exactly as it was committed, or not
//! at all.

mod file_format;
mod repair;
mod scan;

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;

use longhaul_protocol::{Body, Hash, Record, Seq, StreamName, blob_refs};
use rusqlite::{Connection, OpenFlags};

use crate::home::{PartialFile, create_new, io_error, private, publish, with_suffix};
use crate::sqlite::open_files::OpenFile;
use crate::sqlite::readers::connect_to_read;
use crate::sqlite::rows::{self, StreamNumber};
use crate::sqlite::{append, connect, failure, known_heads, schema, verify};
use crate::{Damage, Error, Head, Home, Result, VerifyReport};
use scan::{FileScan, RawRow, StreamNames};

/// The result of a salvage.
#[derive(Debug, Clone)]
pub struct SalvageReport {
    /// The contents of the new file.
    pub report: VerifyReport,
    /// What could not be recovered. Losses of an earlier salvage are not listed again.
    pub lost: Vec<Damage>,
}

/// Writes every sound record of a home's journal, with its blobs, to a new journal in `file`. The original is only
/// read. A stub replaces each lost record, so that the new journal verifies.
///
/// This needs disk space for two copies of the journal in the folder of `file`.
pub fn salvage(home: &Home, file: &Path) -> Result<SalvageReport> {
    if file.exists() {
        return Err(Error::Exists { path: file.to_owned() });
    }
    let journal = home.journal_file();
    if OpenFile::is_open(&journal) {
        let (home, why, by) = (home.folder().to_owned(), "a salvage", "this process itself".to_owned());
        return Err(Error::InUse { home, why, by });
    }
    // Prevents a restore from replacing the journal meanwhile.
    let _home_lock = home.lock_shared()?;
    let (known, unread) = match known_heads::load(home) {
        Ok(known) => (known.heads, None),
        Err(error) => (BTreeMap::new(), Some(Damage::of_file(error.to_string()))),
    };
    let folder = PartialFile::next_to(file);
    DirBuilder::new().mode(0o700).create(folder.path()).map_err(|error| io_error(folder.path(), &error))?;
    let copy = folder.path().join("journal.db");
    copy_journal(&home.journal_file(), &copy)?;
    checkpoint_log(&copy);

    let target = folder.path().join("salvaged.db");
    drop(create_new(&target)?);
    schema::create_tables(&target, None)?;
    let mut lost = rebuild_journal(&FileScan::open(&copy)?, &target, &known)?;
    lost.extend(unread);
    let report = verify::verify_connection(&connect_to_read(&target, None)?, None);
    if report.streams == 0 && report.blobs == 0 {
        let reason = "nothing in it can be recognised as a journal".to_owned();
        return Err(Error::BadFile { path: home.journal_file(), reason });
    }
    publish(&target, file)?;
    Ok(SalvageReport { report, lost })
}

/// Attempts to copy a journal that other processes are still writing.
const MAX_COPY_ATTEMPTS: u32 = 3;

/// Copies a journal and its log. Writers may append to the log meanwhile. If the log starts over, pages that moved
/// from the log to the file may be missing in both copies, so this tries again.
fn copy_journal(journal: &Path, copy: &Path) -> Result<()> {
    let log = with_suffix(journal, "-wal");
    let beginning = || {
        let mut header = [0; 32];
        File::open(&log).and_then(|log| log.read_exact_at(&mut header, 0)).ok().map(|()| header)
    };
    let copied_log = with_suffix(copy, "-wal");
    for _ in 0..MAX_COPY_ATTEMPTS {
        // SQLite would apply the log of a failed attempt to the newer copy.
        let _ = std::fs::remove_file(&copied_log);
        let before = beginning();
        copy_blocks(journal, copy)?;
        if before.is_none() && beginning().is_none() {
            break;
        }
        // A log that has just disappeared was moved into the file.
        if log.exists() {
            copy_blocks(&log, &copied_log)?;
        }
        if before == beginning() {
            break;
        }
    }
    Ok(())
}

/// Copies a file. A block that can't be read becomes zeros, and counts as damage like any other.
fn copy_blocks(from: &Path, to: &Path) -> Result<()> {
    const BLOCK: usize = 4096;
    let source = File::open(from).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::BadFile { path: from.to_owned(), reason: "there is no such file".to_owned() }
        }
        _ => io_error(from, &error),
    })?;
    let length = source.metadata().map_err(|error| io_error(from, &error))?.len();
    let write = || {
        let target = private(OpenOptions::new().write(true).create(true).truncate(true)).open(to)?;
        let mut block = [0; BLOCK];
        for offset in (0..length).step_by(BLOCK) {
            let wanted = usize::try_from(length - offset).map_or(BLOCK, |left| left.min(BLOCK));
            if source.read_exact_at(&mut block[..wanted], offset).is_ok() {
                target.write_all_at(&block[..wanted], offset)?;
            }
        }
        target.set_len(length)
    };
    write().map_err(|error| io_error(to, &error))
}

/// Moves the log into the file. If that fails, records that are only in the log are lost.
fn checkpoint_log(copy: &Path) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(db) = Connection::open_with_flags(copy, flags) else { return };
    // The pragma needs the schema, which may be damaged. But once SQLite has read the log, closing the file moves it,
    // even if the schema is damaged.
    let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    let _ = db.close();
}

/// Inserts the rows found into an empty journal and repairs it; returns what is missing.
fn rebuild_journal(
    source: &FileScan,
    target: &Path,
    known: &BTreeMap<StreamName, Head>,
) -> Result<Vec<Damage>> {
    let said = |error| failure(target, &error);
    let mut streams = StreamNames::survey(source, known.keys().cloned().collect())?;
    let db = connect(target, None)?;
    // Nothing has to be durable before the end, because the whole file is deleted after a failure.
    db.execute_batch(
        "PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA cache_size = -65536; BEGIN;",
    )
    .and_then(|()| repair::prepare(&db))
    .map_err(said)?;
    source.each_row(usize::MAX, |row| insert_row(&db, &mut streams, &row).map_err(said))?;
    let finish = || {
        for name in streams.empty() {
            stream_number(&db, name)?;
        }
        let mut lost = repair::repair_journal(&db)?;
        lost.extend(lost_tails(&db, &streams, known)?);
        db.execute_batch("COMMIT; PRAGMA journal_mode = wal;")?;
        Ok(lost)
    };
    let mut lost = finish().map_err(said)?;
    lost.sort_by(|one, other| (&one.stream, one.seq).cmp(&(&other.stream, other.seq)));
    db.close().map_err(|(_, error)| said(error))?;
    Ok(lost)
}

/// Inserts a row of the old journal, if its hash is correct.
fn insert_row(db: &Connection, streams: &mut StreamNames, row: &RawRow<'_>) -> rusqlite::Result<()> {
    match row {
        RawRow::Stream(..) => Ok(()),
        RawRow::Blob(hash, Some(bytes)) if Hash::of(bytes) != *hash => Ok(()),
        RawRow::Blob(hash, bytes) => append::write_blob(db, *hash, *bytes),
        RawRow::Record(row) => {
            let Some(record) = row.decode() else {
                streams.add_unusable(row.number, row.seq);
                return Ok(());
            };
            if let Some(gone) = repair::lost_stub(&record) {
                return match streams.likely(row.number) {
                    Some(stream) => {
                        repair::save_stub(db, stream_number(db, stream)?.row_id(record.seq), record.at, gone)
                    }
                    None => Ok(()),
                };
            }
            match streams.assign_stream(row.number, record) {
                Some(record) => insert_record(db, &record),
                None => Ok(()),
            }
        }
    }
}

/// Inserts a record, unless it was found before.
fn insert_record(db: &Connection, record: &Record) -> rusqlite::Result<()> {
    let number = stream_number(db, &record.stream)?;
    let row = number.row_id(record.seq);
    if matches!(record.body, Body::Gone(_)) {
        // The erasure is newer than the body, so a row with the body is a remnant.
        repair::delete_records(db, row, row)?;
    }
    let found = db.prepare_cached("SELECT 1 FROM records WHERE id = ?1")?.exists([row])?;
    let taken = match record.key {
        Some(key) => rows::seq_with_key(db, number, key)?.is_some(),
        None => false,
    };
    if found || taken {
        return Ok(());
    }
    append::write_record(db, row, record)?;
    for blob in record.text().map(blob_refs).unwrap_or_default() {
        append::write_blob_use(db, blob.hash, row)?;
    }
    Ok(())
}

/// The number of a stream in the new journal, assigned now if it has none.
fn stream_number(db: &Connection, stream: &StreamName) -> rusqlite::Result<StreamNumber> {
    if let Some(number) = rows::stream_number(db, stream)? {
        return Ok(number);
    }
    db.prepare_cached("INSERT INTO streams (name) VALUES (?1)")?.insert([stream.as_str()]).map(StreamNumber)
}

/// Records after the last one found. The known heads or a damaged row prove that they existed.
fn lost_tails(
    db: &Connection,
    streams: &StreamNames,
    known: &BTreeMap<StreamName, Head>,
) -> rusqlite::Result<Vec<Damage>> {
    let last = |stream: &StreamName| match rows::stream_number(db, stream)? {
        Some(number) => rows::head(db, number).map(|head| head.seq),
        None => Ok(0),
    };
    let mut lost = Vec::new();
    let mut ends: BTreeMap<&StreamName, Seq> =
        known.iter().map(|(stream, head)| (stream, head.seq)).collect();
    for (stream, places) in streams.unusable() {
        let Some(stream) = stream else {
            let reason = format!("{} records are of a stream whose name is lost", places.len());
            lost.push(Damage::of_file(reason));
            continue;
        };
        // The position in a damaged row may be wrong, but it proves that there was a record.
        let last = last(stream)?;
        let after = places.iter().filter(|seq| **seq > last).count() as u64;
        let end = ends.entry(stream).or_default();
        *end = (*end).max(last + after);
    }
    for (stream, end) in ends {
        let last = last(stream)?;
        if last < end {
            lost.push(Damage::between(stream, last + 1, end, "the tail is lost"));
        }
    }
    Ok(lost)
}
