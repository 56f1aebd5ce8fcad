//! Repairs the new journal of a salvage: replaces each missing record by a stub, and rebuilds the derived tables.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use longhaul_protocol::{At, Body, Gone, Hash, Record, Seq, StreamName};
use rusqlite::{Connection, OptionalExtension, params};

use crate::Damage;
use crate::names::NameChange;
use crate::sqlite::rows::{self, ScannedRow, StreamNumber};
use crate::sqlite::{append, writer};

type Sql<T> = rusqlite::Result<T>;

/// The kind of the stub of a lost record.
const LOST: &str = "lost";

/// The stub with which an earlier salvage replaced a lost record. Its hash can't be checked, so it is used only if
/// the record is missing anyway.
pub(super) fn lost_stub(record: &Record) -> Option<&Gone> {
    match &record.body {
        Body::Gone(gone) if gone.body_hash.is_none() => Some(gone),
        _ => None,
    }
}

/// Creates the table for stubs of earlier salvages.
pub(super) fn prepare(db: &Connection) -> Sql<()> {
    db.execute_batch(
        "CREATE TEMP TABLE earlier (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, gone BLOB NOT NULL)",
    )
}

/// Saves the stub of an earlier salvage until the gaps are filled.
pub(super) fn save_stub(db: &Connection, row: i64, At(at): At, gone: &Gone) -> Sql<()> {
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

pub(super) fn delete_records(db: &Connection, from: i64, through: i64) -> Sql<()> {
    db.prepare_cached("DELETE FROM blob_uses WHERE record BETWEEN ?1 AND ?2")?.execute([from, through])?;
    db.prepare_cached("DELETE FROM records WHERE id BETWEEN ?1 AND ?2")?.execute([from, through]).map(drop)
}

/// Fills every gap and rebuilds the derived tables. Returns the new losses.
pub(super) fn repair_journal(db: &Connection) -> Sql<Vec<Damage>> {
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

/// A range of positions in a stream without a record, or with one that contradicts its neighbour.
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
            // Both records have the right hash, but they do not belong to the same history.
            gaps.push(gap(seq, hash, "it does not follow from the record before it"));
        }
        last = PreviousRecord { number, seq, hash, at: Some(at) };
    }
    Ok(gaps)
}

/// Fills every position of a gap with a stub so that the chain verifies. Returns the new losses.
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
        let damage = |stream| Damage::at(stream, seq, format!("the blob {blob} is lost"));
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
