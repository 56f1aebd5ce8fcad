//! How far each stream is indexed.

use std::collections::HashMap;

use longhaul_protocol::{Hash, StreamName};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::chunk::{CHUNK_RECORDS, IndexedRecord, decode_chunk, encode_places, encode_weights};
use crate::Head;
use crate::sqlite::rows::{self, StreamNumber};

/// How far a stream is indexed.
#[derive(Debug, Clone)]
pub(super) struct IndexCursor {
    /// The stream's number in the index. The rows of its postings are `number << 36 | ordinal`, where the ordinal is the
    /// place among the stream's indexed records, from 0.
    pub(super) id: StreamNumber,
    /// The last record that was looked at.
    pub(super) at: Head,
    /// How many records are indexed. Most records only keep the books and are not.
    pub(super) records: usize,
    /// Who speaks as the user: the end of the session's key, such as `alice` of `http:alice`.
    pub(super) person: String,
}

pub(super) fn cursor(db: &Connection, stream: &StreamName) -> rusqlite::Result<Option<IndexCursor>> {
    db.prepare_cached("SELECT id, seq, hash, records, person FROM cursors WHERE stream = ?1")?
        .query_row([stream.as_str()], read)
        .optional()
}

/// The cursors of these streams.
pub(super) fn cursors<'a>(
    db: &Connection,
    streams: impl ExactSizeIterator<Item = &'a StreamName>,
) -> rusqlite::Result<HashMap<String, IndexCursor>> {
    /// With more streams than this, reading all cursors is faster.
    const MAX_SINGLE: usize = 16;
    if streams.len() <= MAX_SINGLE {
        let known =
            |stream: &StreamName| Ok(cursor(db, stream)?.map(|cursor| (stream.as_str().to_owned(), cursor)));
        return streams.filter_map(|stream| known(stream).transpose()).collect();
    }
    let mut statement = db.prepare_cached("SELECT id, seq, hash, records, person, stream FROM cursors")?;
    statement.query_map([], |row| Ok((row.get(5)?, read(row)?)))?.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<IndexCursor> {
    Ok(IndexCursor {
        id: StreamNumber(row.get(0)?),
        at: Head { seq: row.get::<_, i64>(1)?.unsigned_abs(), hash: rows::hash(row, 2)? },
        records: usize::try_from(row.get::<_, i64>(3)?).unwrap_or(0),
        person: row.get(4)?,
    })
}

/// Creates a cursor at the beginning of a stream, under a number that was never used: entries under an old number belong
/// to a stream that no longer exists.
pub(super) fn restart_cursor(change: &Transaction<'_>, stream: &StreamName) -> rusqlite::Result<IndexCursor> {
    drop_cursor(change, stream)?;
    change.execute(
        "INSERT INTO cursors (stream, seq, hash, records, person) VALUES (?1, 0, ?2, 0, '')",
        params![stream.as_str(), Hash::ZERO.as_bytes()],
    )?;
    let id = StreamNumber(change.last_insert_rowid());
    Ok(IndexCursor { id, at: Head::EMPTY, records: 0, person: String::new() })
}

pub(super) fn drop_cursor(change: &Transaction<'_>, stream: &StreamName) -> rusqlite::Result<()> {
    let own_chunks = "DELETE FROM chunks WHERE stream = (SELECT id FROM cursors WHERE stream = ?1)";
    change.execute(own_chunks, [stream.as_str()])?;
    change.execute("DELETE FROM cursors WHERE stream = ?1", [stream.as_str()])?;
    Ok(())
}

pub(super) fn save_cursor(change: &Transaction<'_>, cursor: &IndexCursor) -> rusqlite::Result<()> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let IndexCursor { id, at, records, person } = cursor;
    change
        .prepare_cached("UPDATE cursors SET seq = ?2, hash = ?3, records = ?4, person = ?5 WHERE id = ?1")?
        .execute(params![id.0, number(at.seq), at.hash.as_bytes(), number(*records as u64), person])?;
    Ok(())
}

/// The block that has the record with this ordinal.
pub(super) fn load_chunk(
    db: &Connection,
    id: StreamNumber,
    ordinal: usize,
) -> rusqlite::Result<Vec<IndexedRecord>> {
    let loaded = db
        .prepare_cached("SELECT weights, places FROM chunks WHERE stream = ?1 AND chunk = ?2")?
        .query_row(params![id.0, chunk_number(ordinal)], |row| {
            Ok(decode_chunk(row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?))
        })
        .optional()?;
    Ok(loaded.unwrap_or_default())
}

/// Writes the block whose first record has this ordinal.
pub(super) fn save_chunk(
    change: &Transaction<'_>,
    id: StreamNumber,
    ordinal: usize,
    records: &[IndexedRecord],
) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO chunks (stream, chunk, weights, places) VALUES (?1, ?2, ?3, ?4)";
    let (weights, places) = (encode_weights(records), encode_places(records));
    change.prepare_cached(sql)?.execute(params![id.0, chunk_number(ordinal), weights, places])?;
    Ok(())
}

fn chunk_number(ordinal: usize) -> i64 {
    i64::try_from(ordinal / CHUNK_RECORDS).unwrap_or(i64::MAX)
}
