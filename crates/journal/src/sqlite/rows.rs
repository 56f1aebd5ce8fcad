//! Queries: from tables to records. They work on any connection, the writer's or a reader's.

use std::ops::ControlFlow;

use longhaul_protocol::{At, Body, Gone, Hash, Record, Seq, SessionId, StreamName};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::value::RawValue;

use crate::chain::ChainCheck;
use crate::sqlite::schema::SEQ_BITS;
use crate::{Error, Head, Page, SessionEntry, StreamSize};

type Sql<T> = rusqlite::Result<T>;

/// The number of a stream in the file. It is the upper part of the row ids of its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamNumber(pub i64);

impl StreamNumber {
    /// The row id of a record. A stream has room for 68,719,476,735 records.
    pub(crate) fn row_id(self, seq: Seq) -> i64 {
        let last = (1 << SEQ_BITS) - 1;
        self.0 << SEQ_BITS | i64::try_from(seq).map_or(last, |seq| seq.min(last))
    }

    /// The row id after the last one that the stream could have.
    pub(crate) fn end(self) -> i64 {
        (self.0 + 1) << SEQ_BITS
    }

    /// The stream and the place that a row id stands for.
    pub fn from_row_id(row: i64) -> (Self, Seq) {
        (Self(row >> SEQ_BITS), (row & ((1 << SEQ_BITS) - 1)).unsigned_abs())
    }
}

pub(crate) fn stream_number(db: &Connection, stream: &StreamName) -> Sql<Option<StreamNumber>> {
    db.prepare_cached("SELECT id FROM streams WHERE name = ?1")?
        .query_row([stream.as_str()], |row| row.get(0).map(StreamNumber))
        .optional()
}

/// All streams by name. Skips damaged names: `verify` reports them.
pub(crate) fn streams(db: &Connection) -> Sql<Vec<(StreamNumber, StreamName)>> {
    let mut statement = db.prepare_cached("SELECT id, name FROM streams ORDER BY name")?;
    let rows = statement.query_map([], |row| {
        let number = row.get(0).map(StreamNumber)?;
        Ok(text(row, 1)?.and_then(|name| name.parse().ok()).map(|name| (number, name)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

pub(crate) fn head(db: &Connection, stream: StreamNumber) -> Sql<Head> {
    db.prepare_cached("SELECT id, hash FROM records WHERE id >= ?1 AND id < ?2 ORDER BY id DESC LIMIT 1")?
        .query_row([stream.row_id(0), stream.end()], |row| {
            Ok(Head { seq: StreamNumber::from_row_id(row.get(0)?).1, hash: hash(row, 1)? })
        })
        .optional()
        .map(|head| head.unwrap_or(Head::EMPTY))
}

/// The streams whose names begin with `prefix`, with their heads. Skips damaged names and heads: `verify` reports them.
pub(crate) fn heads(db: &Connection, prefix: &str) -> Sql<Vec<(StreamNumber, StreamName, Head)>> {
    let mut statement = db.prepare_cached(
        "SELECT streams.id, name, records.id, hash FROM streams LEFT JOIN records ON records.id =
         (SELECT max(id) FROM records WHERE id >= streams.id << 36 AND id < (streams.id + 1) << 36)
         WHERE name >= ?1 AND name < ?1 || char(0x10ffff)",
    )?;
    let rows = statement.query_map([prefix], |row| {
        let (number, name) =
            (row.get(0).map(StreamNumber)?, text(row, 1)?.and_then(|name| name.parse().ok()));
        let head = match row.get::<_, Option<i64>>(2)? {
            None => Some(Head::EMPTY),
            Some(id) => hash(row, 3).ok().map(|hash| Head { seq: StreamNumber::from_row_id(id).1, hash }),
        };
        Ok(name.zip(head).map(|(name, head)| (number, name, head)))
    })?;
    rows.filter_map(Result::transpose).collect()
}

fn last_at(db: &Connection, stream: StreamNumber) -> Sql<Option<At>> {
    db.prepare_cached("SELECT at FROM records WHERE id >= ?1 AND id < ?2 ORDER BY id DESC LIMIT 1")?
        .query_row([stream.row_id(0), stream.end()], |row| row.get(0).map(At))
        .optional()
}

/// The newest epoch that began up to a record.
pub(crate) fn newest_epoch(db: &Connection, stream: StreamNumber, through: Seq) -> Sql<Option<Seq>> {
    db.prepare_cached(
        "SELECT id FROM records WHERE kind = 'epoch_started' AND id >= ?1 AND id <= ?2 ORDER BY id DESC LIMIT 1",
    )?
    .query_row([stream.row_id(0), stream.row_id(through)], |row| Ok(StreamNumber::from_row_id(row.get(0)?).1))
    .optional()
}

/// The record whose key has this hash.
pub(crate) fn seq_with_key(db: &Connection, stream: StreamNumber, key: Hash) -> Sql<Option<Seq>> {
    db.prepare_cached("SELECT id FROM records WHERE id >> 36 = ?1 AND key = ?2")?
        .query_row(params![stream.0, key.as_bytes()], |row| Ok(StreamNumber::from_row_id(row.get(0)?).1))
        .optional()
}

/// A row as it is in the file. Its hash is not checked yet.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are records; boxing each would cost more than it saves"
)]
pub enum ScannedRow {
    /// All columns have the right form.
    Record(Record),
    /// A column has the wrong type or form.
    Unreadable(Seq, &'static str),
}

/// Passes the rows of a stream to `each`, in their order from a position on, until it breaks.
pub(crate) fn scan(
    db: &Connection,
    (number, name): (StreamNumber, &StreamName),
    from: Seq,
    mut each: impl FnMut(ScannedRow) -> ControlFlow<()>,
) -> Sql<()> {
    let mut statement = db.prepare_cached(
        "SELECT id, at, kind, key, prev, hash, gone, body FROM records WHERE id >= ?1 AND id < ?2 ORDER BY id",
    )?;
    let mut rows = statement.query([number.row_id(from), number.end()])?;
    while let Some(row) = rows.next()? {
        if each(parse_row(row, name)?).is_break() {
            break;
        }
    }
    Ok(())
}

/// At most a page of rows of a stream. If the file is damaged, the rows before the damage. Fails if there are none.
pub(crate) fn page(
    db: &Connection,
    stream: (StreamNumber, &StreamName),
    from: Seq,
    page: Page,
) -> Sql<Vec<ScannedRow>> {
    let mut rows = Vec::new();
    let mut bytes = 0;
    let scanned = scan(db, stream, from, |found| {
        if let ScannedRow::Record(record) = &found {
            bytes += record.text().map_or(0, str::len);
        }
        rows.push(found);
        if rows.len() < page.records && bytes < page.bytes {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    match scanned {
        Err(error) if rows.is_empty() => Err(error),
        _ => Ok(rows),
    }
}

/// The records of a page that begins at `from`, checked against their hashes. A damaged record ends the page, and is an error if it
/// would be the first.
pub fn check_page(
    stream: &StreamName,
    from: Seq,
    rows: impl IntoIterator<Item = ScannedRow>,
) -> crate::Result<Vec<Record>> {
    let mut chain = ChainCheck::from(from);
    let mut records = Vec::new();
    for row in rows {
        let seq = chain.next_seq();
        let verdict = match row {
            ScannedRow::Record(record) => chain.follow(&record).map(|()| record),
            ScannedRow::Unreadable(_, reason) => Err(reason.to_owned()),
        };
        match verdict {
            Ok(record) => records.push(record),
            Err(reason) if records.is_empty() => {
                return Err(Error::Damaged { stream: stream.clone(), seq, reason });
            }
            Err(_) => break,
        }
    }
    Ok(records)
}

/// The rows of a stream with this kind that can be read.
pub(crate) fn of_kind(
    db: &Connection,
    (number, name): (StreamNumber, &StreamName),
    kind: &str,
) -> Sql<Vec<Record>> {
    let mut statement = db.prepare_cached(
        "SELECT id, at, kind, key, prev, hash, gone, body FROM records
         WHERE id >= ?1 AND id < ?2 AND kind = ?3 ORDER BY id",
    )?;
    let mut rows = statement.query(params![number.row_id(0), number.end(), kind])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        if let ScannedRow::Record(record) = parse_row(row, name)? {
            records.push(record);
        }
    }
    Ok(records)
}

/// Runs several queries on one snapshot of the file.
pub(crate) fn in_snapshot<T>(db: &Connection, act: impl FnOnce(&Connection) -> Sql<T>) -> Sql<T> {
    let moment = db.unchecked_transaction()?;
    act(&moment)
}

fn parse_row(row: &Row<'_>, stream: &StreamName) -> Sql<ScannedRow> {
    let (_, seq) = StreamNumber::from_row_id(row.get(0)?);
    let sound = || -> Result<Record, &'static str> {
        let at = row.get(1).map(At).map_err(|_| "unreadable time")?;
        let kind = text(row, 2).ok().flatten().ok_or("unreadable kind")?.to_owned();
        let key = match row.get_ref(3) {
            Ok(ValueRef::Null) => None,
            _ => Some(hash(row, 3).map_err(|_| "unreadable key")?),
        };
        let prev = hash(row, 4).map_err(|_| "unreadable hash of the entry before it")?;
        let hash = hash(row, 5).map_err(|_| "unreadable hash")?;
        let body = match (row.get_ref(6), text(row, 7)) {
            (Ok(ValueRef::Null), Ok(Some(body))) => {
                Body::Here(RawValue::from_string(body.to_owned()).map_err(|_| "the body is not JSON")?)
            }
            (Ok(ValueRef::Blob(gone)), Ok(None)) => Body::Gone(decode_gone(gone).ok_or("unreadable stub")?),
            _ => return Err("unreadable body"),
        };
        Ok(Record { stream: stream.clone(), seq, at, kind, key, body, prev, hash })
    };
    Ok(sound().map_or_else(|reason| ScannedRow::Unreadable(seq, reason), ScannedRow::Record))
}

/// Encodes the stub of an erased or lost body. The record's hash does not cover the stub, so it has its own checksum.
pub fn encode_gone(gone: &Gone) -> Vec<u8> {
    let json = serde_json::to_vec(gone).expect("serde_json never fails on a struct of numbers and strings");
    let mut bytes = Hash::of(&json).as_bytes().to_vec();
    bytes.extend(json);
    bytes
}

/// Decodes the stub; `None` if it is damaged.
pub fn decode_gone(bytes: &[u8]) -> Option<Gone> {
    let (checksum, json) = bytes.split_at_checked(32)?;
    (Hash::of(json).as_bytes() == checksum).then(|| serde_json::from_slice(json).ok())?
}

pub(crate) fn blob(db: &Connection, hash: Hash) -> Sql<Option<Vec<u8>>> {
    db.prepare_cached("SELECT bytes FROM blobs WHERE hash = ?1")?
        .query_row([hash.as_bytes()], |row| row.get(0))
        .optional()
        .map(Option::flatten)
}

pub(crate) fn session(db: &Connection, key: &str) -> Sql<Option<SessionEntry>> {
    let found = db
        .prepare_cached("SELECT key, id, trashed FROM sessions WHERE key = ?1")?
        .query_row([key], session_row)
        .optional()?;
    found.flatten().map(|named| entry(db, named)).transpose()
}

pub(crate) fn session_with_id(db: &Connection, id: SessionId) -> Sql<Option<SessionEntry>> {
    let found = db
        .prepare_cached("SELECT key, id, trashed FROM sessions WHERE id = ?1")?
        .query_row([id.to_string()], session_row)
        .optional()?;
    found.flatten().map(|named| entry(db, named)).transpose()
}

/// Sessions in the order of their keys.
pub(crate) fn sessions(db: &Connection, after: Option<&str>, limit: usize) -> Sql<Vec<SessionEntry>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    db.prepare_cached(
        "SELECT key, id, trashed FROM sessions WHERE key > ?1 OR ?1 IS NULL ORDER BY key LIMIT ?2",
    )?
    .query_map(params![after, limit], session_row)?
    .filter_map(Result::transpose)
    .map(|named| entry(db, named?))
    .collect()
}

type Named = (String, SessionId, bool);

fn session_row(row: &Row<'_>) -> Sql<Option<Named>> {
    let id: Option<SessionId> = text(row, 1)?.and_then(|id| id.parse().ok());
    Ok(match id {
        Some(id) => Some((row.get(0)?, id, row.get(2)?)),
        None => None,
    })
}

fn entry(db: &Connection, (key, id, trashed): Named) -> Sql<SessionEntry> {
    let empty = SessionEntry {
        key,
        id,
        trashed,
        pinned: is_pinned(db, id)?,
        head: Head::EMPTY,
        last_at: None,
        epoch_from: None,
        inbox_head: 0,
    };
    let inbox_head = match stream_number(db, &StreamName::inbox(id))? {
        Some(inbox) => head(db, inbox)?.seq,
        None => 0,
    };
    Ok(match stream_number(db, &StreamName::session(id))? {
        Some(stream) => SessionEntry {
            head: head(db, stream)?,
            last_at: last_at(db, stream)?,
            epoch_from: newest_epoch(db, stream, Seq::MAX)?,
            inbox_head,
            ..empty
        },
        None => SessionEntry { inbox_head, ..empty },
    })
}

fn is_pinned(db: &Connection, id: SessionId) -> Sql<bool> {
    match db.prepare_cached("SELECT 1 FROM pinned WHERE id = ?1") {
        Ok(mut statement) => statement.exists([id.to_string()]),
        // A read-only journal of an earlier format can't be migrated and has no pins.
        Err(_) if !has_pins(db)? => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the file's format has pins.
pub(crate) fn has_pins(db: &Connection) -> Sql<bool> {
    db.prepare_cached("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'pinned'")?.exists([])
}

pub(crate) fn size(db: &Connection, stream: StreamNumber) -> Sql<StreamSize> {
    let range = [stream.row_id(0), stream.end()];
    let (records, bodies): (u64, u64) = db
        .prepare_cached(
            "SELECT count(*), coalesce(sum(coalesce(octet_length(body), 0)), 0) FROM records WHERE id >= ?1 AND id < ?2",
        )?
        .query_row(range, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let blobs: u64 = db
        .prepare_cached(
            "SELECT coalesce(sum(octet_length(bytes)), 0) FROM blobs WHERE hash IN
             (SELECT blob FROM blob_uses WHERE record >= ?1 AND record < ?2)",
        )?
        .query_row(range, |row| row.get(0))?;
    Ok(StreamSize { records, bytes: bodies + blobs })
}

/// A text column. `None` if damage has changed its type.
pub(crate) fn text<'row>(row: &'row Row<'_>, column: usize) -> Sql<Option<&'row str>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(bytes) => std::str::from_utf8(bytes).ok(),
        _ => None,
    })
}

/// A hash column. Fails if damage has changed its type or length.
pub(crate) fn hash(row: &Row<'_>, column: usize) -> Sql<Hash> {
    row.get::<_, [u8; 32]>(column).map(Hash::from_bytes)
}
