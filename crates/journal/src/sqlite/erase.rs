//! Erases for good: the body of a record, a whole stream, and their bytes in the file.

use longhaul_protocol::{Body, Gone, Hash, Record, Seq, StreamName};
use rusqlite::{Connection, params};

use crate::sqlite::append::drop_blob_if_unused;
use crate::sqlite::rows::{self, ScannedRow, StreamNumber};
use crate::sqlite::writer::{Commit, Writer};
use crate::sqlite::{failure, lease};
use crate::{Error, Lease, Page, Result};

/// Replaces the body of a record by a stub.
pub(crate) fn erase_body(commit: &mut Commit<'_>, stream: &StreamName, seq: Seq, reason: &str) -> Result<()> {
    let number = commit.sql(rows::stream_number(commit.db, stream))?;
    let head = match number {
        Some(number) => commit.sql(rows::head(commit.db, number))?.seq,
        None => 0,
    };
    let none = Error::NoSuchRecord { stream: stream.clone(), seq, head };
    let Some(number) = number.filter(|_| seq >= 1 && seq <= head) else { return Err(none) };
    let record = record(commit, (number, stream), seq)?;
    let body_hash = match &record.body {
        Body::Here(body) => Hash::of(body.get()),
        // Already erased: the first stub stays.
        Body::Gone(_) => return Ok(()),
    };
    let gone = Gone { at: commit.now, reason: reason.to_owned(), body_hash: Some(body_hash) };
    let row = number.row_id(seq);
    let write = |db: &Connection| {
        db.prepare_cached("UPDATE records SET gone = ?2, body = NULL WHERE id = ?1")?
            .execute(params![row, rows::encode_gone(&gone)])?;
        drop_uses(db, row, row + 1)
    };
    commit.sql(write(commit.db))
}

fn record(commit: &Commit<'_>, stream: (StreamNumber, &StreamName), seq: Seq) -> Result<Record> {
    let first = commit.sql(rows::page(commit.db, stream, seq, Page { records: 1, bytes: 0 }))?.pop();
    match first {
        Some(ScannedRow::Record(record)) if record.seq == seq => Ok(record),
        Some(ScannedRow::Unreadable(at, reason)) if at == seq => {
            Err(Error::Damaged { stream: stream.1.clone(), seq, reason: reason.to_owned() })
        }
        _ => Err(Error::Damaged { stream: stream.1.clone(), seq, reason: "it is missing".to_owned() }),
    }
}

/// Deletes the references of these rows to blobs, and the blobs that no other record refers to.
fn drop_uses(db: &Connection, from: i64, before: i64) -> rusqlite::Result<()> {
    let blobs: Vec<[u8; 32]> = db
        .prepare_cached("SELECT DISTINCT blob FROM blob_uses WHERE record >= ?1 AND record < ?2")?
        .query_map([from, before], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    db.prepare_cached("DELETE FROM blob_uses WHERE record >= ?1 AND record < ?2")?.execute([from, before])?;
    blobs.into_iter().try_for_each(|blob| drop_blob_if_unused(db, Hash::from_bytes(blob)).map(|_| ()))
}

pub(crate) fn drop_unused_blobs(commit: &mut Commit<'_>) -> Result<u64> {
    let sql = "DELETE FROM blobs WHERE NOT EXISTS (SELECT 1 FROM blob_uses WHERE blob = hash)";
    commit.sql(commit.db.execute(sql, [])).map(|dropped| dropped as u64)
}

/// Refuses the removal of a stream whose lease another process holds.
pub(crate) fn check_removal(
    commit: &mut Commit<'_>,
    stream: &StreamName,
    lease: Option<&Lease>,
) -> Result<()> {
    match commit.sql(rows::stream_number(commit.db, stream))? {
        Some(number) => lease::check_lease(commit, number, stream, lease),
        None => Ok(()),
    }
}

/// Removes a stream with all its records.
pub(crate) fn remove_stream(
    commit: &mut Commit<'_>,
    stream: &StreamName,
    lease: Option<&Lease>,
) -> Result<()> {
    let Some(number) = commit.sql(rows::stream_number(commit.db, stream))? else { return Ok(()) };
    lease::check_lease(commit, number, stream, lease)?;
    let write = |db: &Connection| {
        let (from, before) = (number.row_id(0), number.end());
        drop_uses(db, from, before)?;
        db.execute("DELETE FROM records WHERE id >= ?1 AND id < ?2", [from, before])?;
        db.execute("DELETE FROM leases WHERE stream = ?1", [number.0])?;
        db.execute("DELETE FROM streams WHERE id = ?1", [number.0])
    };
    commit.sql(write(commit.db))?;
    commit.touched.push(stream.clone());
    Ok(())
}

/// Rewrites the file (`VACUUM`), so that no page keeps deleted bytes, and empties the log.
///
/// `secure_delete` alone is not enough: when SQLite rebalances the tree, copies of a row may stay in the unused space
/// of the pages that it moves rows away from.
pub(crate) fn scrub(writer: &mut Writer) -> Result<()> {
    writer.db.execute_batch("VACUUM").map_err(|error| failure(&writer.path, &error))?;
    writer.empty_log()
}
