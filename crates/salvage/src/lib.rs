//! Salvage: recovers the readable records of a damaged journal into a new one.
//!
//! # What this crate promises
//!
//! - **The original is only read.**
//! - **A record is recovered as it was committed, or not at all**: its own hash decides whether a row is one.
//! - **What is lost is named.** A stub replaces each lost record, so that the new journal verifies and can be restored.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `file_format` | SQLite's file format: pages, cells, varints; trusts nothing |
//! | `scan` | finds rows by their shape on every page, whatever the trees say, and the streams that they belong to |
//!
//! `longhaul_journal::rebuild` writes the new journal. Only `longhaul verify --salvage` uses this crate.

mod file_format;
mod scan;

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use longhaul_journal::rebuild::{JournalRebuild, io_error};
use longhaul_journal::{Damage, Error, Home, Result, VerifyReport};
use longhaul_protocol::{Body, Gone, Hash, Record};
use rusqlite::{Connection, OpenFlags};

use scan::{FileScan, RawRow, StreamNames};

/// The result of a salvage.
#[derive(Debug, Clone)]
pub struct SalvageReport {
    /// What the new file holds.
    pub report: VerifyReport,
    /// What could not be recovered. Losses of an earlier salvage are not listed again.
    pub lost: Vec<Damage>,
}

/// Writes every sound record of a home's journal, with its blobs, to a new journal in `file`. The original is only read.
/// A stub replaces each lost record, so that the new journal verifies.
///
/// This needs disk space beside `file` for two copies of the journal.
pub fn salvage(home: &Home, file: &Path) -> Result<SalvageReport> {
    let journal = home.journal_file();
    let mut rebuild = JournalRebuild::begin(home, file)?;
    let copy = rebuild.folder().join("journal.db");
    copy_journal(&journal, &copy)?;
    checkpoint_log(&copy);

    let source = FileScan::open(&copy)?;
    let mut streams = StreamNames::survey(&source, rebuild.known_streams().cloned().collect())?;
    source.each_row(usize::MAX, |row| add_row(&mut rebuild, &mut streams, &row))?;
    for name in streams.empty() {
        rebuild.add_stream(name)?;
    }
    let (named, unnamed) = streams.into_unusable();
    let (report, lost) = rebuild.finish(&named)?;
    if report.streams == 0 && report.blobs == 0 {
        let reason = "nothing in it can be recognised as a journal".to_owned();
        return Err(Error::BadFile { path: journal, reason });
    }
    let unnamed = unnamed
        .into_iter()
        .map(|count| Damage::of_file(format!("{count} entries of a stream whose name is lost")));
    Ok(SalvageReport { report, lost: unnamed.chain(lost).collect() })
}

/// Adds a row of the old journal to the new one, if its hash is right.
fn add_row(rebuild: &mut JournalRebuild, streams: &mut StreamNames, row: &RawRow<'_>) -> Result<()> {
    match row {
        RawRow::Stream(..) => Ok(()),
        RawRow::Blob(hash, Some(bytes)) if Hash::of(bytes) != *hash => Ok(()),
        RawRow::Blob(hash, bytes) => rebuild.add_blob(*hash, *bytes),
        RawRow::Record(row) => {
            let Some(record) = row.decode() else {
                streams.add_unusable(row.number, row.seq);
                return Ok(());
            };
            if let Some(gone) = lost_stub(&record) {
                return match streams.likely(row.number) {
                    Some(stream) => rebuild.add_stub(stream, record.seq, record.at, gone),
                    None => Ok(()),
                };
            }
            match streams.assign_stream(row.number, record) {
                Some(record) => rebuild.add_record(&record),
                None => Ok(()),
            }
        }
    }
}

/// The stub that an earlier salvage put in place of a lost record. Its hash can't be checked, so it is only used where
/// the record is missing anyway.
fn lost_stub(record: &Record) -> Option<&Gone> {
    match &record.body {
        Body::Gone(gone) if gone.body_hash.is_none() => Some(gone),
        _ => None,
    }
}

/// Attempts to copy a journal that other processes go on writing.
const MAX_COPY_ATTEMPTS: u32 = 3;

/// Copies a journal and its log. Writers may append to the log meanwhile. If the log started over, each copy may lack
/// what moved from one to the other, and this tries again.
fn copy_journal(journal: &Path, copy: &Path) -> Result<()> {
    let log = log_of(journal);
    let beginning = || {
        let mut header = [0; 32];
        File::open(&log).and_then(|log| log.read_exact_at(&mut header, 0)).ok().map(|()| header)
    };
    let copied_log = log_of(copy);
    for _ in 0..MAX_COPY_ATTEMPTS {
        // SQLite would play the log of a failed attempt into the newer copy.
        let _ = std::fs::remove_file(&copied_log);
        let before = beginning();
        copy_blocks(journal, copy)?;
        if before.is_none() && beginning().is_none() {
            break;
        }
        // A log that has just disappeared was moved to the file.
        if log.exists() {
            copy_blocks(&log, &copied_log)?;
        }
        if before == beginning() {
            break;
        }
    }
    Ok(())
}

/// The write-ahead log beside a database.
fn log_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

/// Copies a file. A block that can't be read is left zero; it is damage like any other.
fn copy_blocks(from: &Path, to: &Path) -> Result<()> {
    const BLOCK: usize = 4096;
    let source = File::open(from).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::BadFile { path: from.to_owned(), reason: "no such file".to_owned() }
        }
        _ => io_error(from, &error),
    })?;
    let length = source.metadata().map_err(|error| io_error(from, &error))?.len();
    let write = || {
        let target = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
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
    // whatever the state of the schema.
    let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    let _ = db.close();
}
