//! How far each stream is indexed.

use std::collections::HashMap;

use longhaul_protocol::{Hash, StreamName};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::chunk_store::{chunks_of, delete_chunks};
use super::postings::RemovedSlots;
use crate::Head;
use crate::sqlite::rows::{self, StreamNumber};

/// How far a stream is indexed.
#[derive(Debug, Clone)]
pub(super) struct IndexCursor {
    /// The stream's number in the index.
    pub(super) id: StreamNumber,
    /// The last record that was looked at.
    pub(super) at: Head,
    /// How many records are indexed. Most records are bookkeeping and are not.
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

/// Creates a cursor at the beginning of a stream, and takes out what the index has of it.
pub(super) fn restart_cursor(change: &Transaction<'_>, stream: &StreamName) -> rusqlite::Result<IndexCursor> {
    drop_stream(change, stream)?;
    change.execute(
        "INSERT INTO cursors (stream, seq, hash, records, person) VALUES (?1, 0, ?2, 0, '')",
        params![stream.as_str(), Hash::ZERO.as_bytes()],
    )?;
    let id = StreamNumber(change.last_insert_rowid());
    Ok(IndexCursor { id, at: Head::EMPTY, records: 0, person: String::new() })
}

/// Takes all of a stream out of the index. Returns whether there was anything.
pub(super) fn drop_stream(change: &Transaction<'_>, stream: &StreamName) -> rusqlite::Result<bool> {
    let Some(cursor) = cursor(change, stream)? else { return Ok(false) };
    let mut removed = RemovedSlots::default();
    chunks_of(change, cursor.id)?.iter().for_each(|stored| removed.insert_chunk(stored.chunk));
    removed.remove(change)?;
    delete_chunks(change, cursor.id)?;
    change.execute("DELETE FROM cursors WHERE id = ?1", [cursor.id.0])?;
    Ok(true)
}

pub(super) fn save_cursor(change: &Transaction<'_>, cursor: &IndexCursor) -> rusqlite::Result<()> {
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let IndexCursor { id, at, records, person } = cursor;
    change
        .prepare_cached("UPDATE cursors SET seq = ?2, hash = ?3, records = ?4, person = ?5 WHERE id = ?1")?
        .execute(params![id.0, number(at.seq), at.hash.as_bytes(), number(*records as u64), person])?;
    Ok(())
}
