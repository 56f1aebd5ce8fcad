//! The table of chunks.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::chunk::{CHUNK_RECORDS, IndexedRecord, decode_chunk, encode_places, encode_weights};
use crate::sqlite::rows::StreamNumber;

/// A chunk and its records.
#[derive(Debug)]
pub(super) struct StoredChunk {
    /// Its number in the index, under which the postings know it.
    pub(super) chunk: i64,
    pub(super) records: Vec<IndexedRecord>,
}

/// Creates a chunk, whose first record has this ordinal in the stream. Returns its number, which was never used before.
pub(super) fn create_chunk(
    change: &Transaction<'_>,
    stream: StreamNumber,
    ordinal: usize,
) -> rusqlite::Result<i64> {
    change
        .prepare_cached("INSERT INTO chunks (stream, number, weights, places) VALUES (?1, ?2, x'', x'')")?
        .execute(params![stream.0, number_of(ordinal)])?;
    Ok(change.last_insert_rowid())
}

pub(super) fn save_chunk(change: &Transaction<'_>, stored: &StoredChunk) -> rusqlite::Result<()> {
    let StoredChunk { chunk, records } = stored;
    change
        .prepare_cached("UPDATE chunks SET weights = ?2, places = ?3 WHERE chunk = ?1")?
        .execute(params![chunk, encode_weights(records), encode_places(records)])?;
    Ok(())
}

/// The chunk that has the record with this ordinal.
pub(super) fn load_chunk(
    db: &Connection,
    stream: StreamNumber,
    ordinal: usize,
) -> rusqlite::Result<Option<StoredChunk>> {
    db.prepare_cached("SELECT chunk, weights, places FROM chunks WHERE stream = ?1 AND number = ?2")?
        .query_row(params![stream.0, number_of(ordinal)], read)
        .optional()
}

/// All chunks of a stream, in their order.
pub(super) fn chunks_of(db: &Connection, stream: StreamNumber) -> rusqlite::Result<Vec<StoredChunk>> {
    db.prepare_cached("SELECT chunk, weights, places FROM chunks WHERE stream = ?1 ORDER BY number")?
        .query_map([stream.0], read)?
        .collect()
}

/// Deletes the chunks of a stream, and the vectors of their records.
pub(super) fn delete_chunks(change: &Transaction<'_>, stream: StreamNumber) -> rusqlite::Result<()> {
    let vectors = "DELETE FROM vectors WHERE chunk IN (SELECT chunk FROM chunks WHERE stream = ?1)";
    change.execute(vectors, [stream.0])?;
    change.execute("DELETE FROM chunks WHERE stream = ?1", [stream.0])?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredChunk> {
    let records = decode_chunk(row.get_ref(1)?.as_blob()?, row.get_ref(2)?.as_blob()?);
    Ok(StoredChunk { chunk: row.get(0)?, records })
}

/// The number of a chunk among those of its stream.
fn number_of(ordinal: usize) -> i64 {
    i64::try_from(ordinal / CHUNK_RECORDS).unwrap_or(i64::MAX)
}
