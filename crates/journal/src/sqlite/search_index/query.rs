//! Queries of the index.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use longhaul_protocol::{Record, Seq, StreamName};
use rusqlite::{Connection, params};

use super::IndexResult;
use super::chunk::{CHUNK_RECORDS, IndexedRecord, decode_chunk, decode_weights};
use super::cursor::{cursors, load_chunk};
use crate::question::Question;
use crate::question::dates::DateSpan;
use crate::scoring::{MIN_IDF, RecordFlags, ScoredRecords, Scoring, ScoringHints, nearness};
use crate::search::{self, SearchQuery, SearchableText};
use crate::sqlite::rows::{self, ScannedRow, StreamNumber};
use crate::{Page, SearchAnswer, SearchHit, WeightedWord, stems};

/// The most ranges of streams that are looked up one by one. With more, one lookup over all of them is faster.
const MAX_RANGES: usize = 8;
/// Streams that are not searched, between two that are, within one range.
const MAX_GAP: i64 = 4;
/// The most words of a search for streams.
const MAX_WORDS: usize = 64;

/// A stream of a search, with its number in the journal.
pub(super) type SearchedStream = (StreamNumber, StreamName);

/// A stream in the index.
struct IndexedStream<'a> {
    id: StreamNumber,
    stream: &'a SearchedStream,
    /// Its records among all that are searched.
    records: Range<usize>,
    person: String,
}

/// The best hits.
pub(super) fn run_query(
    db: &Connection,
    journal: &Connection,
    search: &SearchQuery,
    streams: &[SearchedStream],
) -> IndexResult<SearchAnswer> {
    let question = Question::parse(&search.words, search.asked_at);
    if question.stems.is_empty() || streams.is_empty() || search.limit == 0 {
        // Callers look for the words in other texts, too. Without records no word is rarer than another.
        let word = |stem: &String| WeightedWord { stem: stem.clone(), weight: MIN_IDF };
        return Ok(SearchAnswer {
            words: question.stems.iter().map(word).collect(),
            ..SearchAnswer::default()
        });
    }
    // One snapshot, because another process may rebuild the index meanwhile, with other numbers.
    let snapshot = db.unchecked_transaction()?;
    let searched = SearchedRecords::find(&snapshot, streams)?;
    let mut scoring = Scoring::new(searched.load_weights()?);
    let mut words = Vec::new();
    for stem in &question.stems {
        let postings = searched.postings(stem)?;
        words.push(WeightedWord { stem: stem.clone(), weight: scoring.weight(postings.len()) });
        scoring.add_word(&postings);
    }
    let near = question.date.map(|date| searched.load_nearness(&date)).transpose()?.unwrap_or_default();
    let speakers = searched.named_speakers(&question);
    scoring.apply_hints(&ScoringHints {
        asks_when: question.asks_when,
        speakers: &speakers,
        nearness: &near,
    });
    let shown = question.excerpt_words(&search.words);
    let hit = |(index, score)| searched.hit(journal, index, score, &shown).transpose();
    let hits = scoring.best(search.limit).into_iter().filter_map(hit).collect::<IndexResult<_>>()?;
    Ok(SearchAnswer { hits, words, unindexed: 0 })
}

/// The streams that have a record with all of the words.
pub(super) fn streams_with_words(
    db: &Connection,
    words: &str,
    streams: &[SearchedStream],
) -> IndexResult<Vec<StreamName>> {
    let stems: BTreeSet<String> = stems(words).into_iter().collect();
    let query: Vec<String> = stems.iter().take(MAX_WORDS).map(|stem| quoted(stem)).collect();
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let snapshot = db.unchecked_transaction()?;
    let searched = SearchedRecords::find(&snapshot, streams)?;
    let mut found = Vec::new();
    for posting in searched.matching(&query.join(" AND "))? {
        let stream = searched.stream_at(posting as usize);
        if found.last() != Some(&stream) {
            found.push(stream);
        }
    }
    Ok(found.into_iter().map(|stream| searched.streams[stream].stream.1.clone()).collect())
}

/// The records of a search, one after the other: all of the first stream, then all of the second.
struct SearchedRecords<'a> {
    db: &'a Connection,
    /// In the order of their numbers, which is that of the postings.
    streams: Vec<IndexedStream<'a>>,
}

impl<'a> SearchedRecords<'a> {
    fn find(db: &'a Connection, streams: &'a [SearchedStream]) -> IndexResult<Self> {
        let mut cursors = cursors(db, streams.iter().map(|(_, name)| name))?;
        let mut found: Vec<_> = streams
            .iter()
            .filter_map(|stream| Some((stream, cursors.remove(stream.1.as_str())?)))
            .filter(|(_, cursor)| cursor.records > 0)
            .collect();
        found.sort_unstable_by_key(|(_, cursor)| cursor.id);
        let mut end = 0;
        let streams = found.into_iter().map(|(stream, cursor)| {
            let records = end..end + cursor.records;
            end = records.end;
            IndexedStream { id: cursor.id, stream, records, person: cursor.person }
        });
        Ok(Self { db, streams: streams.collect() })
    }

    fn count(&self) -> usize {
        self.streams.last().map_or(0, |stream| stream.records.end)
    }

    /// The place of the stream that has this record.
    fn stream_at(&self, index: usize) -> usize {
        self.streams.partition_point(|stream| stream.records.end <= index)
    }

    /// Ranges of stream numbers that contain all streams of the search, and few others.
    fn ranges(&self) -> Vec<(i64, i64)> {
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        for IndexedStream { id, .. } in &self.streams {
            match ranges.last_mut() {
                Some((_, end)) if id.0 - *end <= MAX_GAP => *end = id.0 + 1,
                _ => ranges.push((id.0, id.0 + 1)),
            }
        }
        match (ranges.first(), ranges.last()) {
            (Some((from, _)), Some((_, end))) if ranges.len() > MAX_RANGES => vec![(*from, *end)],
            _ => ranges,
        }
    }

    fn load_weights(&self) -> IndexResult<ScoredRecords> {
        let mut records = ScoredRecords::with_capacity(self.count());
        let mut chunks: HashMap<usize, Vec<u8>> = HashMap::new();
        self.each_chunk("weights", |stream, columns| {
            chunks.entry(stream).or_default().extend_from_slice(columns[0]);
        })?;
        for (place, IndexedStream { records: range, .. }) in self.streams.iter().enumerate() {
            let weights = chunks.remove(&place).unwrap_or_default();
            // A damaged block must not shift the records after it.
            let filled = decode_weights(&weights).chain(std::iter::repeat((RecordFlags::ERASED, 0)));
            records.push_stream(filled.take(range.len()));
        }
        Ok(records)
    }

    fn load_nearness(&self, date: &DateSpan) -> IndexResult<Vec<f32>> {
        let mut near = vec![0.0; self.count()];
        let mut next: HashMap<usize, usize> = HashMap::new();
        self.each_chunk("weights, places", |stream, columns| {
            let range = &self.streams[stream].records;
            let from = next.entry(stream).or_insert(range.start);
            let records = decode_chunk(columns[0], columns[1]);
            for (place, record) in near[*from..range.end].iter_mut().zip(&records) {
                *place = nearness(date, record.day, record.named);
            }
            *from = range.end.min(*from + CHUNK_RECORDS);
        })?;
        Ok(near)
    }

    /// Passes the blocks of all streams to `each`, with the place of the stream, in their order.
    fn each_chunk(&self, columns: &str, mut each: impl FnMut(usize, &[&[u8]])) -> IndexResult<()> {
        let count = columns.split(',').count();
        let mut statement = self.db.prepare_cached(&format!(
            "SELECT stream, {columns} FROM chunks WHERE stream >= ?1 AND stream < ?2 ORDER BY stream, chunk"
        ))?;
        let mut place = 0;
        for (from, end) in self.ranges() {
            let mut rows = statement.query([from, end])?;
            while let Some(row) = rows.next()? {
                let id: i64 = row.get(0)?;
                if self.advance_to(&mut place, id) {
                    // `chunks` is a strict table: its columns are blobs.
                    let column =
                        |column: usize| row.get_ref(column).map(|value| value.as_blob().unwrap_or_default());
                    let columns: Vec<&[u8]> = (1..=count).map(column).collect::<rusqlite::Result<_>>()?;
                    each(place, &columns);
                }
            }
        }
        Ok(())
    }

    /// Moves on to the stream with this number. Returns whether it is searched.
    fn advance_to(&self, place: &mut usize, id: i64) -> bool {
        while self.streams.get(*place).is_some_and(|stream| stream.id.0 < id) {
            *place += 1;
        }
        self.streams.get(*place).is_some_and(|stream| stream.id.0 == id)
    }

    /// The records that have a word, in their order.
    fn postings(&self, stem: &str) -> IndexResult<Vec<u32>> {
        self.matching(&quoted(stem))
    }

    fn matching(&self, query: &str) -> IndexResult<Vec<u32>> {
        let mut statement = self.db.prepare_cached(
            "SELECT rowid FROM postings WHERE postings MATCH ?1 AND rowid >= ?2 AND rowid < ?3",
        )?;
        let (mut postings, mut place) = (Vec::new(), 0);
        for (from, end) in self.ranges() {
            let bounds = params![query, StreamNumber(from).row_id(0), StreamNumber(end).row_id(0)];
            let mut rows = statement.query(bounds)?;
            while let Some(row) = rows.next()? {
                let (id, ordinal) = StreamNumber::from_row_id(row.get(0)?);
                if !self.advance_to(&mut place, id.0) {
                    continue;
                }
                let records = &self.streams[place].records;
                let index = records.start + usize::try_from(ordinal).unwrap_or(usize::MAX - records.start);
                // Another process may have indexed more records since the cursors were read.
                if index < records.end {
                    postings.extend(u32::try_from(index));
                }
            }
        }
        Ok(postings)
    }

    /// The records of those who speak for the person or agent that the question names, if it names just one.
    fn named_speakers(&self, question: &Question) -> Vec<(Range<usize>, RecordFlags)> {
        let is_named = |stream: &&IndexedStream<'_>| question.names(&stream.person);
        let named: Vec<&IndexedStream<'_>> = self.streams.iter().filter(is_named).collect();
        let persons: BTreeSet<&str> = named.iter().map(|stream| stream.person.as_str()).collect();
        match (persons.len(), question.speaker) {
            (0, Some(speaker)) => vec![(0..self.count(), speaker)],
            (1, None) => named.iter().map(|stream| (stream.records.clone(), RecordFlags::USER)).collect(),
            _ => Vec::new(),
        }
    }

    /// `None` for a record that the index has no place of, which only damage explains.
    fn hit(
        &self,
        journal: &Connection,
        index: usize,
        score: f32,
        words: &BTreeSet<String>,
    ) -> IndexResult<Option<SearchHit>> {
        let IndexedStream { id, stream, records, .. } = &self.streams[self.stream_at(index)];
        let ordinal = index - records.start;
        let Some(found) = self.record(*id, ordinal)? else { return Ok(None) };
        let request = match found.request_distance as usize {
            0 => None,
            distance => ordinal.checked_sub(distance),
        };
        let request = request.map(|ordinal| self.record(*id, ordinal)).transpose()?.flatten();
        let request =
            request.filter(|request| request.flags.has(RecordFlags::USER)).map(|request| request.seq);
        let excerpt = excerpt(journal, stream, found.seq, words);
        let (stream, seq) = (stream.1.clone(), found.seq);
        Ok(Some(SearchHit { stream, seq, excerpt, score: f64::from(score), request }))
    }

    fn record(&self, id: StreamNumber, ordinal: usize) -> IndexResult<Option<IndexedRecord>> {
        let mut chunk = load_chunk(self.db, id, ordinal)?;
        let place = ordinal % CHUNK_RECORDS;
        Ok((place < chunk.len()).then(|| chunk.swap_remove(place)))
    }
}

/// A stem as FTS5 reads it. A stem has letters and digits only.
fn quoted(stem: &str) -> String {
    format!("\"{stem}\"")
}

fn excerpt(
    journal: &Connection,
    (number, name): &SearchedStream,
    seq: Seq,
    words: &BTreeSet<String>,
) -> String {
    let one = rows::page(journal, (*number, name), seq, Page { records: 1, bytes: 0 });
    let text = match one.unwrap_or_default().first() {
        Some(ScannedRow::Record(record)) => matching_text(journal, record, words),
        _ => String::new(),
    };
    search::excerpt(&text, words)
}

/// The text of a record that contains one of the words: its own text, otherwise that of one of its blobs.
fn matching_text(journal: &Connection, record: &Record, words: &BTreeSet<String>) -> String {
    let Some(SearchableText { text, blobs, .. }) = SearchableText::from_record(record) else {
        return String::new();
    };
    if search::contains_any_word(&text, words) {
        return text;
    }
    let whole = blobs.into_iter().filter_map(|blob| rows::blob(journal, blob.hash).ok()?);
    let mut whole = whole.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    whole.find(|whole| search::contains_any_word(whole, words)).unwrap_or(text)
}
