//! Salvage: what can still be read of a damaged journal, written elsewhere.
//!
//! The file is searched page by page for rows that look like ours, whatever its trees say about them, and a record's
//! own hash decides whether it is one. So a record is brought out as it was committed or not at all. What is
//! found goes into a new journal, and `mend` makes that one whole.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::Path;

use longhaul_protocol::{Body, Hash, Record, Seq, StreamName, blob_refs};
use rusqlite::{Connection, OpenFlags};

use crate::home::{Partial, beside, create_new, io_error, private, publish};
use crate::sqlite::finds::{Row, Source, Streams};
use crate::sqlite::presence::Presence;
use crate::sqlite::readers::connect_to_read;
use crate::sqlite::rows::{self, StreamNumber};
use crate::sqlite::{append, check, connect, failure, heads, mend, schema};
use crate::{Damage, Error, Head, Home, Report, Result};

/// What a salvage has brought out.
#[derive(Debug, Clone)]
pub struct Salvaged {
    /// What the new file holds.
    pub report: Report,
    /// What could not be brought out. What an earlier salvage had lost is not listed again.
    pub lost: Vec<Damage>,
}

/// Writes every sound record of a home's journal, with the blobs that they refer to, to a new journal in `file`. The
/// original is only read. Where a record is lost, a stub stands in its place, so that the new journal is sound.
///
/// While this works it needs room beside `file` for the journal twice.
pub fn salvage(home: &Home, file: &Path) -> Result<Salvaged> {
    if file.exists() {
        return Err(Error::Exists { path: file.to_owned() });
    }
    let journal = home.journal_file();
    if Presence::is_open(&journal) {
        let (home, why, by) = (home.folder().to_owned(), "a salvage", "this process itself".to_owned());
        return Err(Error::InUse { home, why, by });
    }
    // So that no restore puts another journal in its place meanwhile.
    let _together = home.lock_shared()?;
    let (noted, unread) = match heads::load(home) {
        Ok(noted) => (noted.heads, None),
        Err(error) => (BTreeMap::new(), Some(Damage::of_file(error.to_string()))),
    };
    let folder = Partial::of(file);
    DirBuilder::new().mode(0o700).create(folder.path()).map_err(|error| io_error(folder.path(), &error))?;
    let copy = folder.path().join("journal.db");
    copy_journal(&home.journal_file(), &copy)?;
    play_log(&copy);

    let target = folder.path().join("salvaged.db");
    drop(create_new(&target)?);
    schema::fill(&target, None)?;
    let mut lost = build(&Source::open(&copy)?, &target, &noted)?;
    lost.extend(unread);
    let report = check::verify(&connect_to_read(&target, None)?, None);
    if report.streams == 0 && report.blobs == 0 {
        let reason = "nothing in it can be recognised as a journal".to_owned();
        return Err(Error::BadFile { path: home.journal_file(), reason });
    }
    publish(&target, file)?;
    Ok(Salvaged { report, lost })
}

/// How often copying begins anew because others go on writing.
const ATTEMPTS_TO_COPY: u32 = 3;

/// Copies a journal and its log. Whoever still writes may only add to the log meanwhile: if the log began anew, the
/// copies may each lack what has moved from one to the other.
fn copy_journal(journal: &Path, copy: &Path) -> Result<()> {
    let log = beside(journal, "-wal");
    let beginning = || {
        let mut header = [0; 32];
        File::open(&log).and_then(|log| log.read_exact_at(&mut header, 0)).ok().map(|()| header)
    };
    let copied_log = beside(copy, "-wal");
    for _ in 0..ATTEMPTS_TO_COPY {
        // The log of an attempt that came to nothing would be played over a newer copy.
        let _ = std::fs::remove_file(&copied_log);
        let before = beginning();
        copy_blocks(journal, copy)?;
        if before.is_none() && beginning().is_none() {
            break;
        }
        // A log that has just gone has been moved to the file.
        if log.exists() {
            copy_blocks(&log, &copied_log)?;
        }
        if before == beginning() {
            break;
        }
    }
    Ok(())
}

/// Copies a file. A block that the disk does not give any more stays empty; it is damage like any other.
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

/// Moves what was committed to the log into the file. Where that fails, what is only in the log is lost.
fn play_log(copy: &Path) {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(db) = Connection::open_with_flags(copy, flags) else { return };
    // This needs the schema, which may be what is damaged; but once SQLite has looked at the log, it moves it when it
    // closes the file, whatever it thinks of the schema.
    let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    let _ = db.close();
}

/// Brings what is found into an empty journal and makes it whole; returns what is missing.
fn build(source: &Source, target: &Path, noted: &BTreeMap<StreamName, Head>) -> Result<Vec<Damage>> {
    let said = |error| failure(target, &error);
    let mut streams = Streams::survey(source, noted.keys().cloned().collect())?;
    let db = connect(target, None)?;
    // Should this fail, the file goes away as a whole; nothing needs to be durable before the end.
    db.execute_batch(
        "PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA cache_size = -65536; BEGIN;",
    )
    .and_then(|()| mend::prepare(&db))
    .map_err(said)?;
    source.each_row(usize::MAX, |row| bring(&db, &mut streams, &row).map_err(said))?;
    let finish = || {
        for name in streams.empty() {
            place_of(&db, name)?;
        }
        let mut lost = mend::mend(&db)?;
        lost.extend(tails(&db, &streams, noted)?);
        db.execute_batch("COMMIT; PRAGMA journal_mode = wal;")?;
        Ok(lost)
    };
    let mut lost = finish().map_err(said)?;
    lost.sort_by(|one, other| (&one.stream, one.seq).cmp(&(&other.stream, other.seq)));
    db.close().map_err(|(_, error)| said(error))?;
    Ok(lost)
}

/// Inserts what a row of the old journal holds, if that is sound.
fn bring(db: &Connection, streams: &mut Streams, row: &Row<'_>) -> rusqlite::Result<()> {
    match row {
        Row::Stream(..) => Ok(()),
        Row::Blob(hash, Some(bytes)) if Hash::of(bytes) != *hash => Ok(()),
        Row::Blob(hash, bytes) => append::write_blob(db, *hash, *bytes),
        Row::Record(row) => {
            let Some(record) = row.decode() else {
                streams.miss(row.number, row.seq);
                return Ok(());
            };
            if let Some(gone) = mend::stand_in(&record) {
                return match streams.likely(row.number) {
                    Some(stream) => {
                        mend::remember(db, place_of(db, stream)?.row(record.seq), record.at, gone)
                    }
                    None => Ok(()),
                };
            }
            match streams.settle(row.number, record) {
                Some(record) => insert_record(db, &record),
                None => Ok(()),
            }
        }
    }
}

/// Inserts a record, unless it was found before.
fn insert_record(db: &Connection, record: &Record) -> rusqlite::Result<()> {
    let number = place_of(db, &record.stream)?;
    let row = number.row(record.seq);
    if matches!(record.body, Body::Gone(_)) {
        // A body that is found beside its stub is a remnant: erasing came later.
        mend::delete_records(db, row, row)?;
    }
    let found = db.prepare_cached("SELECT 1 FROM records WHERE id = ?1")?.exists([row])?;
    let taken = match record.key {
        Some(key) => rows::with_key(db, number, key)?.is_some(),
        None => false,
    };
    if found || taken {
        return Ok(());
    }
    append::write_record(db, row, record)?;
    for blob in record.text().map(blob_refs).unwrap_or_default() {
        append::write_use(db, blob.hash, row)?;
    }
    Ok(())
}

/// The number of a stream in the new journal, given now if it has none.
fn place_of(db: &Connection, stream: &StreamName) -> rusqlite::Result<StreamNumber> {
    if let Some(number) = rows::number_of(db, stream)? {
        return Ok(number);
    }
    db.prepare_cached("INSERT INTO streams (name) VALUES (?1)")?.insert([stream.as_str()]).map(StreamNumber)
}

/// What is known to have stood after the last record that was found: it was noted, or a row of it is left.
fn tails(
    db: &Connection,
    streams: &Streams,
    noted: &BTreeMap<StreamName, Head>,
) -> rusqlite::Result<Vec<Damage>> {
    let last = |stream: &StreamName| match rows::number_of(db, stream)? {
        Some(number) => rows::head(db, number).map(|head| head.seq),
        None => Ok(0),
    };
    let mut lost = Vec::new();
    let mut ends: BTreeMap<&StreamName, Seq> =
        noted.iter().map(|(stream, head)| (stream, head.seq)).collect();
    for (stream, places) in streams.unfit() {
        let Some(stream) = stream else {
            let reason = format!("{} records are of a stream whose name is lost", places.len());
            lost.push(Damage::of_file(reason));
            continue;
        };
        // The place of a damaged row may be wrong, but there was one.
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
