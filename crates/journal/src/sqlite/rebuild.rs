//! A new journal from the records of a damaged one: a stub in place of each missing record, and derived tables rebuilt.
//!
//! The crate `longhaul-salvage` finds the records.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use longhaul_protocol::{At, Body, Gone, Hash, Record, Seq, StreamName, blob_refs};
use rusqlite::{Connection, OptionalExtension, params};

use crate::home::{HomeLock, PartialFile, create_new, io_error, publish};
use crate::names::NameChange;
use crate::sqlite::open_files::OpenFile;
use crate::sqlite::readers::connect_to_read;
use crate::sqlite::rows::{self, ScannedRow, StreamNumber};
use crate::sqlite::{append, connect, failure, known_heads, schema, verify, writer};
use crate::{Damage, Error, Head, Home, Result, VerifyReport};

type Sql<T> = rusqlite::Result<T>;

/// A new journal that is filled with the records of a home's damaged one. Dropped before it is finished, it leaves nothing.
pub struct JournalRebuild {
    db: Connection,
    /// Where the new journal is written, in `folder`.
    target: PathBuf,
    folder: PartialFile,
    /// Where the new journal is put when it is finished.
    file: PathBuf,
    known: BTreeMap<StreamName, Head>,
    /// Why the known heads could not be read.
    unread: Option<Damage>,
    /// Keeps a restore from replacing the damaged journal meanwhile.
    _home_lock: Option<HomeLock>,
}

impl JournalRebuild {
    /// Begins a new journal, which [`Self::finish`] puts into `file`.
    pub fn begin(home: &Home, file: &Path) -> Result<Self> {
        if file.exists() {
            return Err(Error::Exists { path: file.to_owned() });
        }
        if OpenFile::is_open(&home.journal_file()) {
            let (home, why, by) = (home.folder().to_owned(), "a salvage", "this process itself".to_owned());
            return Err(Error::InUse { home, why, by });
        }
        let home_lock = home.lock_shared()?;
        let (known, unread) = match known_heads::load(home) {
            Ok(known) => (known.heads, None),
            Err(error) => (BTreeMap::new(), Some(Damage::of_file(error.to_string()))),
        };
        Ok(Self { known, unread, _home_lock: home_lock, ..Self::begin_copy(file)? })
    }

    /// Begins a new journal for the records of another engine.
    pub fn begin_copy(file: &Path) -> Result<Self> {
        if file.exists() {
            return Err(Error::Exists { path: file.to_owned() });
        }
        let folder = PartialFile::next_to(file);
        DirBuilder::new()
            .mode(0o700)
            .create(folder.path())
            .map_err(|error| io_error(folder.path(), &error))?;
        let target = folder.path().join("salvaged.db");
        drop(create_new(&target)?);
        schema::create_tables(&target, None)?;
        let db = connect(&target, None)?;
        // Nothing needs to be durable before the end: after a failure, the whole file is deleted.
        db.execute_batch(
            "PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA cache_size = -65536; BEGIN;
             CREATE TEMP TABLE earlier (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, gone BLOB NOT NULL)",
        )
        .map_err(|error| failure(&target, &error))?;
        let (file, known) = (file.to_owned(), BTreeMap::new());
        Ok(Self { db, target, folder, file, known, unread: None, _home_lock: None })
    }

    /// A private folder for copies of the damaged journal. It is deleted with everything in it.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The streams whose heads were noted outside of the journal.
    pub fn known_streams(&self) -> impl Iterator<Item = &StreamName> {
        self.known.keys()
    }

    /// Adds a stream, which may stay empty.
    pub fn add_stream(&mut self, stream: &StreamName) -> Result<()> {
        self.sql(ensure_stream(&self.db, stream)).map(drop)
    }

    /// Adds a blob; without bytes, as one that an earlier salvage lost.
    pub fn add_blob(&mut self, hash: Hash, bytes: Option<&[u8]>) -> Result<()> {
        self.sql(append::write_blob(&self.db, hash, bytes))
    }

    /// Adds a record, whose hash the caller has checked, unless it was added before.
    pub fn add_record(&mut self, record: &Record) -> Result<()> {
        self.sql(insert_record(&self.db, record))
    }

    /// Adds the stub of a record that an earlier salvage lost. It is used if the record is missing in the end.
    pub fn add_stub(&mut self, stream: &StreamName, seq: Seq, at: At, gone: &Gone) -> Result<()> {
        self.sql(
            ensure_stream(&self.db, stream)
                .and_then(|number| save_stub(&self.db, number.row_id(seq), at, gone)),
        )
    }

    /// Completes the journal and puts it into its place; returns what it holds, and what is newly missing. `unusable`:
    /// places of records that were found and can't be used. A journal without any content is not put into its place.
    pub fn finish(self, unusable: &[(StreamName, BTreeSet<Seq>)]) -> Result<(VerifyReport, Vec<Damage>)> {
        let complete = || {
            let mut lost = repair_journal(&self.db)?;
            lost.extend(lost_tails(&self.db, unusable, &self.known)?);
            self.db.execute_batch("COMMIT; PRAGMA journal_mode = wal;")?;
            Ok(lost)
        };
        let mut lost = self.sql(complete())?;
        lost.sort_by(|one, other| (&one.stream, one.seq).cmp(&(&other.stream, other.seq)));
        lost.extend(self.unread);
        self.db.close().map_err(|(_, error)| failure(&self.target, &error))?;
        let report = verify::verify_connection(&connect_to_read(&self.target, None)?, None);
        if report.streams > 0 || report.blobs > 0 {
            publish(&self.target, &self.file)?;
        }
        Ok((report, lost))
    }

    fn sql<T>(&self, result: Sql<T>) -> Result<T> {
        result.map_err(|error| failure(&self.target, &error))
    }
}

/// Inserts a record, unless it was found before.
fn insert_record(db: &Connection, record: &Record) -> Sql<()> {
    let number = ensure_stream(db, &record.stream)?;
    let row = number.row_id(record.seq);
    if matches!(record.body, Body::Gone(_)) {
        // The erasure came after the body: a row with the body is a remnant.
        delete_records(db, row, row)?;
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
fn ensure_stream(db: &Connection, stream: &StreamName) -> Sql<StreamNumber> {
    if let Some(number) = rows::stream_number(db, stream)? {
        return Ok(number);
    }
    db.prepare_cached("INSERT INTO streams (name) VALUES (?1)")?.insert([stream.as_str()]).map(StreamNumber)
}

/// Records that are known to have stood after the last one found, by the known heads or by a damaged row.
fn lost_tails(
    db: &Connection,
    unusable: &[(StreamName, BTreeSet<Seq>)],
    known: &BTreeMap<StreamName, Head>,
) -> Sql<Vec<Damage>> {
    let last = |stream: &StreamName| match rows::stream_number(db, stream)? {
        Some(number) => rows::head(db, number).map(|head| head.seq),
        None => Ok(0),
    };
    let mut ends: BTreeMap<&StreamName, Seq> =
        known.iter().map(|(stream, head)| (stream, head.seq)).collect();
    for (stream, places) in unusable {
        // The place in a damaged row may be wrong, but there was a record.
        let last = last(stream)?;
        let after = places.iter().filter(|seq| **seq > last).count() as u64;
        let end = ends.entry(stream).or_default();
        *end = (*end).max(last + after);
    }
    let mut lost = Vec::new();
    for (stream, end) in ends {
        let last = last(stream)?;
        if last < end {
            lost.push(Damage::between(stream, last + 1, end, "the end is lost"));
        }
    }
    Ok(lost)
}

/// The kind of the stub of a lost record.
const LOST: &str = "lost";

/// Saves the stub of an earlier salvage until the gaps are filled.
fn save_stub(db: &Connection, row: i64, At(at): At, gone: &Gone) -> Sql<()> {
    db.prepare_cached("INSERT OR IGNORE INTO earlier (id, at, gone) VALUES (?1, ?2, ?3)")?
        .execute(params![row, at, rows::encode_gone(gone)])
        .map(drop)
}

fn saved_stub(db: &Connection, row: i64) -> Sql<Option<(At, Gone)>> {
    let found = db
        .prepare_cached("SELECT at, gone FROM earlier WHERE id = ?1")?
        .query_row([row], |row| Ok((row.get(0).map(At)?, row.get::<_, Vec<u8>>(1)?)))
        .optional()?;
    Ok(found.and_then(|(at, gone)| Some((at, rows::decode_gone(&gone)?))))
}

fn delete_records(db: &Connection, from: i64, through: i64) -> Sql<()> {
    db.prepare_cached("DELETE FROM blob_uses WHERE record BETWEEN ?1 AND ?2")?.execute([from, through])?;
    db.prepare_cached("DELETE FROM records WHERE id BETWEEN ?1 AND ?2")?.execute([from, through]).map(drop)
}

/// Fills every gap and rebuilds the derived tables. Returns what is newly missing.
fn repair_journal(db: &Connection) -> Sql<Vec<Damage>> {
    let names: BTreeMap<StreamNumber, StreamName> = rows::streams(db)?.into_iter().collect();
    let now = writer::now();
    let mut lost = Vec::new();
    for gap in gaps(db)? {
        if let Some(stream) = names.get(&gap.number) {
            lost.extend(fill_gap(db, stream, &gap, now)?);
        }
    }
    lost.extend(repair_blobs(db, &names)?);
    rebuild_session_index(db)?;
    Ok(lost)
}

/// A range of places in a stream without a record, or with one that contradicts its neighbour.
struct Gap {
    number: StreamNumber,
    from: Seq,
    through: Seq,
    reason: &'static str,
    /// The time of the nearest record.
    at: At,
    /// The hash of the record before.
    prev: Hash,
    /// The hash that the record after names.
    hash: Hash,
}

/// The record before the next one of a stream.
struct PreviousRecord {
    number: StreamNumber,
    seq: Seq,
    hash: Hash,
    at: Option<At>,
}

/// The gaps of all streams.
fn gaps(db: &Connection) -> Sql<Vec<Gap>> {
    let none_of = |number| PreviousRecord { number, seq: 0, hash: Hash::ZERO, at: None };
    let mut gaps = Vec::new();
    let mut last = none_of(StreamNumber(0));
    let mut statement = db.prepare("SELECT id, at, prev, hash FROM records ORDER BY id")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (number, seq) = StreamNumber::from_row_id(row.get(0)?);
        let (at, prev, hash) = (At(row.get(1)?), rows::hash(row, 2)?, rows::hash(row, 3)?);
        if last.number != number {
            last = none_of(number);
        }
        let (from, at_before, before) = (last.seq + 1, last.at.unwrap_or(at), last.hash);
        let gap =
            |through, hash, reason| Gap { number, from, through, reason, at: at_before, prev: before, hash };
        if seq > from {
            gaps.push(gap(seq - 1, prev, "lost to damage"));
        } else if prev != before {
            // Each of the two has the right hash, but they are not of one history.
            gaps.push(gap(seq, hash, "does not follow the entry before it"));
        }
        last = PreviousRecord { number, seq, hash, at: Some(at) };
    }
    Ok(gaps)
}

/// Puts a stub into every place of a gap, such that the chain holds. Returns what is newly lost.
fn fill_gap(db: &Connection, stream: &StreamName, gap: &Gap, now: At) -> Sql<Vec<Damage>> {
    let mut lost: Vec<(Seq, Seq)> = Vec::new();
    let mut prev = gap.prev;
    delete_records(db, gap.number.row_id(gap.from), gap.number.row_id(gap.through))?;
    for seq in gap.from..=gap.through {
        let row = gap.number.row_id(seq);
        let (at, gone) = saved_stub(db, row)?.unwrap_or_else(|| {
            match lost.last_mut() {
                Some((_, through)) if *through + 1 == seq => *through = seq,
                _ => lost.push((seq, seq)),
            }
            let reason = "lost to damage; a salvage put this in its place".to_owned();
            (gap.at, Gone { at: now, reason, body_hash: None })
        });
        let hash = if seq == gap.through { gap.hash } else { Hash::of(format!("{stream} {seq}")) };
        let (stream, kind, body) = (stream.clone(), LOST.to_owned(), Body::Gone(gone));
        append::write_record(db, row, &Record { stream, seq, at, kind, key: None, body, prev, hash })?;
        prev = hash;
    }
    Ok(lost.into_iter().map(|(from, through)| Damage::between(stream, from, through, gap.reason)).collect())
}

/// Writes missing blobs as lost, and drops those that no record refers to.
fn repair_blobs(db: &Connection, names: &BTreeMap<StreamNumber, StreamName>) -> Sql<Vec<Damage>> {
    db.execute("DELETE FROM blobs WHERE hash NOT IN (SELECT blob FROM blob_uses)", [])?;
    let missing: Vec<(Hash, i64)> = db
        .prepare(
            "SELECT blob, record FROM blob_uses WHERE blob NOT IN (SELECT hash FROM blobs) ORDER BY record",
        )?
        .query_map([], |row| Ok((rows::hash(row, 0)?, row.get(1)?)))?
        .collect::<Sql<_>>()?;
    let mut lost = Vec::new();
    for (blob, row) in missing {
        append::write_blob(db, blob, None)?;
        let (number, seq) = StreamNumber::from_row_id(row);
        let damage = |stream| Damage::at(stream, seq, format!("blob {blob} is lost"));
        lost.extend(names.get(&number).map(damage));
    }
    Ok(lost)
}

/// Rebuilds the tables `sessions` and `pinned` from the stream `names`.
fn rebuild_session_index(db: &Connection) -> Sql<()> {
    let names = StreamName::names();
    let Some(number) = rows::stream_number(db, &names)? else { return Ok(()) };
    let mut indexed = Ok(0);
    rows::scan(db, (number, &names), 1, |found| {
        if let ScannedRow::Record(record) = &found
            && let Some(change) = NameChange::from_record(record)
        {
            indexed = append::apply_name_change(db, &change);
        }
        if indexed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    indexed.map(drop)
}
