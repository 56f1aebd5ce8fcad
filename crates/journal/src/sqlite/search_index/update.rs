//! Incremental indexing: updates the index for the streams of a search, or rebuilds a stream's part of it.
//!
//! One batch of records, of one stream or of several, is one transaction, with the cursors that say how far it goes:
//!
//! | killed | in the index | next search |
//! | --- | --- | --- |
//! | before a batch is committed | the batches before it | indexes from the cursors on |
//! | after it | the batch and its cursors | goes on after it |

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use longhaul_protocol::StreamName;
use rusqlite::{Connection, ErrorCode, Transaction};

use super::chunk::{CHUNK_RECORDS, IndexedRecord};
use super::chunk_store::{StoredChunk, create_chunk, load_chunk, save_chunk};
use super::cursor::{IndexCursor, cursor, restart_cursor, save_cursor};
use super::posting_list::Slot;
use super::postings::PendingPostings;
use super::{IndexError, IndexResult, IndexSource, begin_change, damaged};
use crate::question::dates::day_of;
use crate::search::SearchableText;
use crate::sqlite::rows::{ScannedRow, StreamNumber};
use crate::{Head, Page, stems};

/// Records to read at once.
const PAGE: Page = Page { records: 2_000, bytes: 4 << 20 };
/// Records to index in one transaction. The limit lets other processes use the index in between.
const BATCH_RECORDS: usize = 2_000;
/// The pause before the next transaction. It is longer than waiting processes sleep between two tries to get the lock, which would
/// otherwise find it taken every time.
const BATCH_PAUSE: Duration = Duration::from_millis(5);

/// Indexes the new records of streams, at least one batch of them, until the deadline.
pub(super) struct IndexUpdate<'a> {
    db: &'a Connection,
    journal: &'a dyn IndexSource,
    deadline: Instant,
    batch: Option<IndexBatch<'a>>,
    /// Whether a batch was committed.
    has_written: bool,
    is_late: bool,
}

impl<'a> IndexUpdate<'a> {
    pub(super) fn new(db: &'a Connection, journal: &'a dyn IndexSource, deadline: Instant) -> Self {
        Self { db, journal, deadline, batch: None, has_written: false, is_late: false }
    }

    /// Indexes the new records of a stream. Returns how many are left.
    pub(super) fn index_stream(
        &mut self,
        (number, name, head): (StreamNumber, &StreamName, Head),
        known: Option<Head>,
    ) -> IndexResult<u64> {
        if known == Some(head) || head == Head::EMPTY {
            return Ok(0);
        }
        let mut at = known.map_or(0, |known| known.seq);
        loop {
            if self.is_late {
                return Ok(head.seq.saturating_sub(at));
            }
            let batch = match &mut self.batch {
                Some(batch) => batch,
                empty => match IndexBatch::begin(self.db, self.has_written) {
                    Ok(batch) => empty.insert(batch),
                    // Another process writes the index. What it has not indexed by now is said to be missing.
                    Err(error) if is_busy(&error) => {
                        self.is_late = true;
                        continue;
                    }
                    Err(error) => return Err(error),
                },
            };
            match batch.index_page(self.journal, (number, name), head)? {
                Some(indexed) if indexed.seq < head.seq => at = indexed.seq,
                // All of it, or the rest can't be read; `verify` reports that.
                _ => at = head.seq,
            }
            if batch.is_full() {
                self.commit()?;
                self.is_late = Instant::now() >= self.deadline;
            }
            if at >= head.seq {
                return Ok(0);
            }
        }
    }

    pub(super) fn commit(&mut self) -> IndexResult<()> {
        self.has_written |= self.batch.is_some();
        self.batch.take().map_or(Ok(()), IndexBatch::commit)
    }
}

/// Records that are indexed in one transaction.
struct IndexBatch<'a> {
    change: Transaction<'a>,
    postings: PendingPostings,
    /// The records that were looked at.
    records: usize,
}

impl<'a> IndexBatch<'a> {
    fn begin(db: &'a Connection, is_next: bool) -> IndexResult<Self> {
        if is_next {
            std::thread::sleep(BATCH_PAUSE);
        }
        let change = begin_change(db)?;
        Ok(Self { change, postings: PendingPostings::default(), records: 0 })
    }

    fn is_full(&self) -> bool {
        self.records >= BATCH_RECORDS
    }

    fn commit(mut self) -> IndexResult<()> {
        self.postings.write(&self.change)?;
        Ok(self.change.commit()?)
    }

    /// Indexes a page of records and moves the cursor. Returns the last indexed record; `None` if none could be read.
    fn index_page(
        &mut self,
        journal: &dyn IndexSource,
        stream: (StreamNumber, &StreamName),
        head: Head,
    ) -> IndexResult<Option<Head>> {
        // Read under the lock, because another process may have moved the cursor.
        let mut cursor = match cursor(&self.change, stream.1)? {
            Some(cursor) if stands_on(journal, stream.0, cursor.at)? => cursor,
            known => {
                if known.is_some() {
                    // What this batch has of the stream leaves the index with the rest of it.
                    self.postings.write(&self.change)?;
                }
                restart_cursor(&self.change, stream.1)?
            }
        };
        if cursor.at.seq >= head.seq {
            return Ok(Some(cursor.at));
        }
        let from = cursor.at.seq + 1;
        let page = match journal.page(stream, from, PAGE) {
            Ok(page) => page,
            // Records after the unreadable ones can still be indexed.
            Err(_) => match journal.next_readable(stream.0, from) {
                Some(next) => journal.page(stream, next, PAGE).map_err(IndexError::Journal)?,
                None => return Ok(None),
            },
        };
        self.records += page.len();
        let mut last = None;
        let mut chunks = ChunkWriter::open(&self.change, &cursor)?;
        for found in page {
            // Damaged records are not searchable.
            let ScannedRow::Record(record) = found else { continue };
            last = Some(Head { seq: record.seq, hash: record.hash });
            let Some(searchable) = SearchableText::from_record(&record) else { continue };
            let (stems, length) = words_of(journal, &searchable);
            let (flags, named) = searchable.describe();
            let (seq, day) = (record.seq, day_of(record.at));
            let request_distance = if searchable.is_request { 0 } else { chunks.request_distance() };
            let slot = chunks.push(IndexedRecord { seq, flags, length, request_distance, day, named })?;
            self.postings.add(&self.change, &stems, slot)?;
        }
        cursor.records = chunks.save()?;
        let Some(at) = last else { return Ok(None) };
        cursor.at = at;
        cursor.person = person(journal, stream.1)?;
        save_cursor(&self.change, &cursor)?;
        Ok(Some(at))
    }
}

/// Whether another process holds the lock.
fn is_busy(error: &IndexError) -> bool {
    matches!(error, IndexError::Index(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy))
}

/// Whether the journal still has the record at the cursor. It does not after the stream was removed or a backup
/// restored. Then the stream's part of the index is rebuilt.
fn stands_on(journal: &dyn IndexSource, number: StreamNumber, at: Head) -> IndexResult<bool> {
    Ok(at == Head::EMPTY || journal.has_record(number, at).map_err(IndexError::Journal)?)
}

/// The different stems of a record's text and of its blobs, and the number of words, as far as it matters.
fn words_of(journal: &dyn IndexSource, searchable: &SearchableText) -> (BTreeSet<String>, u16) {
    let mut all = stems(&searchable.text);
    for blob in &searchable.blobs {
        // A damaged blob is not searchable.
        if let Ok(Some(bytes)) = journal.blob(blob.hash) {
            all.extend(stems(&String::from_utf8_lossy(&bytes)));
        }
    }
    let length = u16::try_from(all.len()).unwrap_or(u16::MAX);
    (all.into_iter().collect(), length)
}

/// Appends to the last chunk of a stream.
struct ChunkWriter<'a> {
    change: &'a Transaction<'a>,
    id: StreamNumber,
    /// The stream's indexed records.
    count: usize,
    /// The last chunk, unless it is full.
    open: Option<StoredChunk>,
    /// How far the next record is from the last request; 0 if there was none.
    distance: u32,
}

impl<'a> ChunkWriter<'a> {
    fn open(change: &'a Transaction<'_>, cursor: &IndexCursor) -> IndexResult<Self> {
        let count = cursor.records;
        let last = match count {
            0 => None,
            count => load_chunk(change, cursor.id, count - 1)?,
        };
        let last_record = last.as_ref().and_then(|last| last.records.last());
        let distance = last_record.map_or(0, IndexedRecord::distance_of_next);
        let open = last.filter(|_| !count.is_multiple_of(CHUNK_RECORDS));
        if open.as_ref().map_or(0, |open| open.records.len()) != count % CHUNK_RECORDS {
            return Err(IndexError::Index(damaged()));
        }
        Ok(Self { change, id: cursor.id, count, open, distance })
    }

    fn request_distance(&self) -> u32 {
        self.distance
    }

    fn push(&mut self, record: IndexedRecord) -> IndexResult<Slot> {
        self.distance = record.distance_of_next();
        let stored = match &mut self.open {
            Some(stored) => stored,
            empty => {
                let chunk = create_chunk(self.change, self.id, self.count)?;
                empty.insert(StoredChunk { chunk, records: Vec::new() })
            }
        };
        stored.records.push(record);
        let slot = Slot { chunk: stored.chunk, place: stored.records.len() - 1 };
        self.count += 1;
        if stored.records.len() == CHUNK_RECORDS {
            save_chunk(self.change, stored)?;
            self.open = None;
        }
        Ok(slot)
    }

    /// Writes what is not written yet. Returns how many records are indexed.
    fn save(self) -> IndexResult<usize> {
        if let Some(stored) = &self.open {
            save_chunk(self.change, stored)?;
        }
        Ok(self.count)
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
fn person(journal: &dyn IndexSource, stream: &StreamName) -> IndexResult<String> {
    let Some(session) = stream.session_id() else { return Ok(String::new()) };
    let key = journal.session_key(session).map_err(IndexError::Journal)?;
    let end = key.as_deref().and_then(|key| key.split_once(':')).map_or("", |(_, end)| end);
    Ok(if end.contains(char::is_alphabetic) { end.to_owned() } else { String::new() })
}
