//! Incremental indexing: updates the index for a stream, or rebuilds the stream's part of it.
//!
//! One batch of records is one transaction, with the cursor that says how far it goes:
//!
//! | killed | in the index | next search |
//! | --- | --- | --- |
//! | before a batch is committed | the batches before it | indexes from the cursor on |
//! | after it | the batch and its cursor | goes on after it |

use std::collections::BTreeSet;
use std::time::Instant;

use longhaul_protocol::{Record, StreamName};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use super::chunk::{CHUNK_RECORDS, IndexedRecord};
use super::cursor::{IndexCursor, cursor, load_chunk, restart_cursor, save_chunk, save_cursor};
use super::{IndexError, IndexResult};
use crate::question::dates::day_of;
use crate::search::SearchableText;
use crate::sqlite::rows::{self, ScannedRow, StreamNumber};
use crate::sqlite::{known_heads, verify};
use crate::{Head, Page, stems};

/// Records to index in one transaction. The limit lets other processes use the index in between.
const BATCH: Page = Page { records: 2_000, bytes: 4 << 20 };

/// Indexes the new records of a stream, at least one batch of them, until the deadline. Returns how many are left.
pub(super) fn update_stream(
    db: &mut Connection,
    journal: &Connection,
    (number, name, head): (StreamNumber, &StreamName, Head),
    known: Option<Head>,
    deadline: Instant,
) -> IndexResult<u64> {
    if known == Some(head) || head == Head::EMPTY {
        return Ok(0);
    }
    loop {
        if let Some(IndexCursor { at, .. }) = cursor(db, name)?
            && at.seq >= head.seq
            && stands_on(journal, number, at)?
        {
            return Ok(0);
        }
        let change = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Read again under the lock, because another process may have moved the cursor.
        let cursor = match cursor(&change, name)? {
            Some(cursor) if stands_on(journal, number, cursor.at)? => cursor,
            _ => restart_cursor(&change, name)?,
        };
        let moved = index_batch(&change, journal, (number, name), cursor)?;
        change.commit()?;
        match moved {
            // The rest can't be read; `verify` reports it.
            None => return Ok(0),
            Some(at) if Instant::now() >= deadline => return Ok(head.seq.saturating_sub(at.seq)),
            Some(_) => {}
        }
    }
}

/// Whether the journal still has the record at the cursor. It does not after the stream was removed or a backup
/// restored. Then the stream's part of the index is rebuilt.
fn stands_on(journal: &Connection, number: StreamNumber, at: Head) -> IndexResult<bool> {
    Ok(at == Head::EMPTY || known_heads::has_record(journal, number, at).map_err(IndexError::Journal)?)
}

/// Indexes a batch of records and moves the cursor. Returns the last indexed record; `None` if none could be read.
fn index_batch(
    change: &Transaction<'_>,
    journal: &Connection,
    stream: (StreamNumber, &StreamName),
    mut cursor: IndexCursor,
) -> IndexResult<Option<Head>> {
    let from = cursor.at.seq + 1;
    let batch = match rows::page(journal, stream, from, BATCH) {
        Ok(batch) => batch,
        // Records after the unreadable ones can still be indexed.
        Err(_) => match verify::next_readable(journal, stream.0, from) {
            Some(next) => rows::page(journal, stream, next, BATCH).map_err(IndexError::Journal)?,
            None => return Ok(None),
        },
    };
    let mut last = None;
    let mut chunk = ChunkWriter::open(change, &cursor)?;
    for found in batch {
        // Damaged records are not searchable.
        let ScannedRow::Record(record) = found else { continue };
        last = Some(Head { seq: record.seq, hash: record.hash });
        let Some(searchable) = SearchableText::from_record(&record) else { continue };
        let words = Words::of_record(journal, &searchable);
        change
            .prepare_cached("INSERT INTO postings (rowid, stems) VALUES (?1, ?2)")?
            .execute(params![cursor.id.row_id(cursor.records as u64), words.stems])?;
        let (flags, named) = searchable.describe();
        let (seq, day) = (record.seq, day_of(record.at));
        let request_distance = if searchable.is_request { 0 } else { chunk.request_distance() };
        chunk.push(IndexedRecord { seq, flags, length: words.length, request_distance, day, named })?;
        cursor.records += 1;
    }
    chunk.save()?;
    let Some(at) = last else { return Ok(None) };
    cursor.at = at;
    cursor.person = person(journal, stream.1)?;
    save_cursor(change, &cursor)?;
    Ok(Some(at))
}

/// The words of a record as the index has them.
pub(super) struct Words {
    /// Each stem once, separated by spaces.
    pub(super) stems: String,
    /// The number of words, as far as it matters.
    pub(super) length: u16,
}

impl Words {
    /// The words of a record's text and of its blobs.
    pub(super) fn of_record(journal: &Connection, searchable: &SearchableText) -> Self {
        let mut all = stems(&searchable.text);
        for blob in &searchable.blobs {
            // A damaged blob is not searchable.
            if let Ok(Some(bytes)) = rows::blob(journal, blob.hash) {
                all.extend(stems(&String::from_utf8_lossy(&bytes)));
            }
        }
        let length = u16::try_from(all.len()).unwrap_or(u16::MAX);
        let distinct: BTreeSet<&str> = all.iter().map(String::as_str).collect();
        Self { stems: distinct.into_iter().collect::<Vec<_>>().join(" "), length }
    }

    /// The words of a record that has some.
    pub(super) fn of(journal: &Connection, record: &Record) -> Option<Self> {
        Some(Self::of_record(journal, &SearchableText::from_record(record)?))
    }
}

/// Appends to the last block of a stream.
struct ChunkWriter<'a> {
    change: &'a Transaction<'a>,
    id: StreamNumber,
    /// The ordinal of the block's first record.
    first: usize,
    records: Vec<IndexedRecord>,
    /// How far the next record is from the last request; 0 if there was none.
    distance: u32,
}

impl<'a> ChunkWriter<'a> {
    fn open(change: &'a Transaction<'_>, cursor: &IndexCursor) -> IndexResult<Self> {
        let mut records = load_chunk(change, cursor.id, cursor.records.saturating_sub(1))?;
        let distance = records.last().map_or(0, IndexedRecord::distance_of_next);
        let first = cursor.records / CHUNK_RECORDS * CHUNK_RECORDS;
        if first == cursor.records {
            records.clear();
        }
        Ok(Self { change, id: cursor.id, first, records, distance })
    }

    fn request_distance(&self) -> u32 {
        self.distance
    }

    fn push(&mut self, record: IndexedRecord) -> IndexResult<()> {
        self.distance = record.distance_of_next();
        self.records.push(record);
        if self.records.len() == CHUNK_RECORDS {
            self.save()?;
            self.first += CHUNK_RECORDS;
            self.records.clear();
        }
        Ok(())
    }

    fn save(&mut self) -> IndexResult<()> {
        if !self.records.is_empty() {
            save_chunk(self.change, self.id, self.first, &self.records)?;
        }
        Ok(())
    }
}

impl IndexedRecord {
    /// The request distance of the record after it, if that is no request itself. What stands before the first request
    /// counts from the beginning of the stream, where the search finds no input.
    fn distance_of_next(&self) -> u32 {
        self.request_distance.saturating_add(1)
    }
}

/// The end of a session's key, if it could be a name.
fn person(journal: &Connection, stream: &StreamName) -> IndexResult<String> {
    let Some(session) = stream.session_id() else { return Ok(String::new()) };
    let key: Option<String> = journal
        .prepare_cached("SELECT key FROM sessions WHERE id = ?1")
        .and_then(|mut keys| keys.query_row([session.to_string()], |row| row.get(0)).optional())
        .map_err(IndexError::Journal)?;
    let end = key.as_deref().and_then(|key| key.split_once(':')).map_or("", |(_, end)| end);
    Ok(if end.contains(char::is_alphabetic) { end.to_owned() } else { String::new() })
}
