//! The records of a search.

use std::collections::BTreeMap;
use std::ops::Range;

use longhaul_protocol::StreamName;
use rusqlite::{Connection, Row};

use super::IndexResult;
use super::chunk::{CHUNK_RECORDS, IndexedRecord, decode_chunk, decode_weights};
use super::chunk_store::load_chunk;
use super::cursor::IndexCursor;
use super::posting_list::{BLOCK_CHUNKS, block_of, chunk_in_block};
use super::postings::each_block;
use crate::question::Question;
use crate::question::dates::DateSpan;
use crate::scoring::{RecordFlags, RecordSet, ScoredRecords, nearness};
use crate::sqlite::rows::StreamNumber;

/// The most streams whose chunks are looked up one by one. With more, going through all chunks is faster.
const MAX_SINGLE_STREAMS: usize = 16;
/// No chunk of the search.
const NONE: usize = usize::MAX;

/// A stream of a search, with its number in the journal.
pub(super) type SearchedStream = (StreamNumber, StreamName);

/// A stream in the index.
pub(super) struct IndexedStream<'a> {
    id: StreamNumber,
    pub(super) stream: &'a SearchedStream,
    /// Its records among all that are searched.
    pub(super) records: Range<usize>,
    person: String,
}

/// The records of a search, one after the other: all of the first stream, then all of the second.
pub(super) struct SearchedRecords<'a> {
    db: &'a Connection,
    /// In the order of their numbers in the index.
    streams: Vec<IndexedStream<'a>>,
}

impl<'a> SearchedRecords<'a> {
    /// `db` must have a transaction open, because another process may change the index meanwhile.
    pub(super) fn new(db: &'a Connection, streams: Vec<(&'a SearchedStream, IndexCursor)>) -> Self {
        let mut found = streams;
        found.retain(|(_, cursor)| cursor.records > 0);
        found.sort_unstable_by_key(|(_, cursor)| cursor.id);
        let mut end = 0;
        let streams = found.into_iter().map(|(stream, cursor)| {
            let records = end..end + cursor.records;
            end = records.end;
            IndexedStream { id: cursor.id, stream, records, person: cursor.person }
        });
        Self { db, streams: streams.collect() }
    }

    pub(super) fn count(&self) -> usize {
        self.streams.last().map_or(0, |stream| stream.records.end)
    }

    /// The stream that has this record.
    pub(super) fn stream_at(&self, index: usize) -> &IndexedStream<'a> {
        &self.streams[self.streams.partition_point(|stream| stream.records.end <= index)]
    }

    /// What the scoring needs to know of each record.
    pub(super) fn load(&self) -> IndexResult<LoadedRecords<'a>> {
        let mut records = ScoredRecords::blank(self.streams.iter().map(|stream| stream.records.clone()));
        let mut blocks: BTreeMap<i64, ChunkStarts> = BTreeMap::new();
        self.each_chunk("weights", |chunk, range, row| {
            let start = range.start;
            records.fill(range, decode_weights(row.get_ref(3)?.as_blob()?));
            blocks.entry(block_of(chunk)).or_insert([NONE; _])[chunk_in_block(chunk)] = start;
            Ok(())
        })?;
        let blocks = blocks.into_iter().unzip();
        Ok(LoadedRecords { db: self.db, records, blocks })
    }

    /// The chunks of the search, each with its first record.
    pub(super) fn chunk_starts(&self) -> IndexResult<Vec<(i64, usize)>> {
        let mut starts = Vec::new();
        self.each_chunk("NULL", |chunk, range, _| {
            starts.push((chunk, range.start));
            Ok(())
        })?;
        Ok(starts)
    }

    pub(super) fn load_nearness(&self, date: &DateSpan) -> IndexResult<Vec<f32>> {
        let mut near = vec![0.0; self.count()];
        self.each_chunk("weights, places", |_, range, row| {
            let records = decode_chunk(row.get_ref(3)?.as_blob()?, row.get_ref(4)?.as_blob()?);
            for (place, record) in near[range].iter_mut().zip(&records) {
                *place = nearness(date, record.day, record.named);
            }
            Ok(())
        })?;
        Ok(near)
    }

    /// Passes the chunks of all streams to `each`: the number of the chunk, the records of its stream from its first
    /// one on, and a row with these columns from 3 on.
    fn each_chunk(
        &self,
        columns: &str,
        mut each: impl FnMut(i64, Range<usize>, &Row<'_>) -> rusqlite::Result<()>,
    ) -> IndexResult<()> {
        let select = format!("SELECT chunk, stream, number, {columns} FROM chunks");
        let mut pass = |row: &Row<'_>| {
            let id = row.get(1).map(StreamNumber)?;
            let Ok(place) = self.streams.binary_search_by_key(&id, |stream| stream.id) else { return Ok(()) };
            let Range { start, end } = self.streams[place].records;
            let number = usize::try_from(row.get::<_, i64>(2)?).unwrap_or(usize::MAX);
            let first = number.saturating_mul(CHUNK_RECORDS).saturating_add(start);
            // Only damage explains one after the end.
            if first < end { each(row.get(0)?, first..end, row) } else { Ok(()) }
        };
        if self.streams.len() > MAX_SINGLE_STREAMS {
            let mut statement = self.db.prepare_cached(&select)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                pass(row)?;
            }
            return Ok(());
        }
        let mut statement = self.db.prepare_cached(&format!("{select} WHERE stream = ?1"))?;
        for IndexedStream { id, .. } in &self.streams {
            let mut rows = statement.query([id.0])?;
            while let Some(row) = rows.next()? {
                pass(row)?;
            }
        }
        Ok(())
    }

    /// The records of those who speak for the person or agent that the question names, if it names just one.
    pub(super) fn named_speakers(&self, question: &Question) -> Vec<(Range<usize>, RecordFlags)> {
        let mut named: Vec<&IndexedStream<'_>> = Vec::new();
        for stream in self.streams.iter().filter(|stream| question.names(&stream.person)) {
            if named.first().is_some_and(|first| first.person != stream.person) {
                return Vec::new();
            }
            named.push(stream);
        }
        match (named.is_empty(), question.speaker) {
            (true, Some(speaker)) => vec![(0..self.count(), speaker)],
            (false, None) => named.iter().map(|stream| (stream.records.clone(), RecordFlags::USER)).collect(),
            _ => Vec::new(),
        }
    }

    /// What is known of a record.
    pub(super) fn record(&self, index: usize) -> IndexResult<Option<IndexedRecord>> {
        let IndexedStream { id, records, .. } = self.stream_at(index);
        let ordinal = index - records.start;
        let Some(mut stored) = load_chunk(self.db, *id, ordinal)? else { return Ok(None) };
        let place = ordinal % CHUNK_RECORDS;
        Ok((place < stored.records.len()).then(|| stored.records.swap_remove(place)))
    }
}

/// For each chunk of a block, its first record among all that are searched.
type ChunkStarts = [usize; BLOCK_CHUNKS as usize];

/// The records of a search with what the scoring needs to know of them.
pub(super) struct LoadedRecords<'a> {
    db: &'a Connection,
    records: ScoredRecords,
    /// The blocks that have records of the search, in their order, and where their chunks lie.
    blocks: (Vec<i64>, Vec<ChunkStarts>),
}

impl LoadedRecords<'_> {
    /// The records that have a stem.
    pub(super) fn postings(&self, stem: &str) -> IndexResult<RecordSet> {
        let mut having = RecordSet::new(self.records.len());
        let (blocks, starts) = &self.blocks;
        each_block(self.db, stem, blocks, |block, slots| {
            let Ok(place) = blocks.binary_search(&block) else { return };
            for (chunk, start) in starts[place].iter().enumerate().filter(|(_, start)| **start != NONE) {
                having.insert_bits(*start, slots.chunk_words(chunk));
            }
        })?;
        Ok(having)
    }

    pub(super) fn into_records(self) -> ScoredRecords {
        self.records
    }
}
