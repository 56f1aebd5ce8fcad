//! Queries of the index.

use std::collections::HashMap;

use longhaul_protocol::{Record, Seq, StreamName};
use rusqlite::{Connection, params};

use super::{IndexResult, cursor};
use crate::search::{self, MatchMode, SearchQuery, SearchableText};
use crate::sqlite::rows::{self, ScannedRow, StreamNumber};
use crate::{Page, SearchHit, WordFrequencies, stems};

/// The weight of a word in a record's neighbours. In the record itself a word has weight 1 (for `bm25`).
const NEIGHBOUR_WEIGHT: f64 = 0.5;
/// The same weight, for the share of the query's words that a record contains.
const NEIGHBOUR_SHARE: f64 = 0.7;
/// A word is too common for ranking if more than one in this many records contains it, unless the query has no other
/// words.
const COMMON_WORD_SHARE: u64 = 3;

/// A stream that the query covers.
pub(super) struct IndexedStream {
    /// Its number in the index.
    pub(super) id: StreamNumber,
    /// Its number in the journal.
    pub(super) number: StreamNumber,
    pub(super) name: StreamName,
}

/// Row ids with their scores.
type Ranked = Vec<(f64, i64)>;

/// The best hits.
pub(super) fn run_query(
    db: &Connection,
    journal: &Connection,
    search: &SearchQuery,
    streams: &[IndexedStream],
) -> IndexResult<Vec<SearchHit>> {
    let by_id: HashMap<i64, &IndexedStream> = streams.iter().map(|stream| (stream.id.0, stream)).collect();
    let snapshot = db.unchecked_transaction()?;
    let mut ranked = match search.matching {
        MatchMode::All => rank_by_words(&snapshot, search, streams, " ")?,
        MatchMode::Any => rank_by_words(&snapshot, search, streams, " OR ")?,
        MatchMode::Around => {
            rank_by_topic(&snapshot, &search.words, streams, |id| by_id.contains_key(&id.0))?
        }
    };
    ranked.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(other.cmp(one)));
    let known = |(score, row)| {
        let (id, seq) = StreamNumber::from_row_id(row);
        let stream = by_id.get(&id.0)?;
        // Another process may have rebuilt the index meanwhile, with other stream numbers.
        let current = cursor(&snapshot, &stream.name).ok()??;
        (current.id == id).then_some((*stream, seq, score))
    };
    let found: Vec<_> = ranked.into_iter().filter_map(known).take(search.limit).collect();
    Ok(found
        .into_iter()
        .map(|(stream, seq, score)| hit(journal, stream, seq, score, &search.words))
        .collect())
}

/// Ranks rows that contain the words exactly. A search in named streams runs once for each stream's range of rows. A
/// search in all streams runs once.
fn rank_by_words(
    db: &Connection,
    search: &SearchQuery,
    streams: &[IndexedStream],
    between: &str,
) -> IndexResult<Ranked> {
    let terms: Vec<String> = search::terms(&search.words).map(|term| quoted(&term)).collect();
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let query = terms.join(between);
    let ranges: Vec<(i64, i64)> = if search.streams.is_empty() {
        vec![(0, i64::MAX)]
    } else {
        streams.iter().map(|stream| (stream.id.row_id(0), stream.id.end())).collect()
    };
    let mut statement = db.prepare_cached(
        "SELECT -rank, rowid FROM entries WHERE entries MATCH ?1 AND rowid >= ?2 AND rowid < ?3 ORDER BY rank LIMIT ?4",
    )?;
    let limit = i64::try_from(search.limit).unwrap_or(i64::MAX);
    let mut ranked = Vec::new();
    for (from, before) in ranges {
        let rows =
            statement.query_map(params![query, from, before, limit], |row| Ok((row.get(0)?, row.get(1)?)))?;
        ranked.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    Ok(ranked)
}

/// Ranks rows by topic. One query for each word tells how many of the words a record contains. Each query covers all
/// streams at once: there may be a thousand streams, and SQLite would count the word's frequency again for each.
fn rank_by_topic(
    db: &Connection,
    words: &str,
    streams: &[IndexedStream],
    is_wanted: impl Fn(StreamNumber) -> bool,
) -> IndexResult<Ranked> {
    let words: Vec<String> = search::terms(words).collect();
    let frequencies = count_records(db, &words, "own :")?;
    let is_rare = |with: &u64| *with > 0 && *with * COMMON_WORD_SHARE <= frequencies.all;
    let has_rare = frequencies.with.iter().any(is_rare);
    let anywhere = count_records(db, &words, "")?;
    let from = streams.iter().map(|stream| stream.id.row_id(0)).min().unwrap_or(0);
    let before = streams.iter().map(|stream| stream.id.end()).max().unwrap_or(0);
    let mut statement = db.prepare_cached(&format!(
        "SELECT rowid, -bm25(gists, 1.0, {NEIGHBOUR_WEIGHT}), bm25(gists, 1.0, 0.0) < 0.0 FROM gists
         WHERE gists MATCH ?1 AND rowid >= ?2 AND rowid < ?3"
    ))?;
    let mut scores: HashMap<i64, TopicScore> = HashMap::new();
    let mut total_weight = 0.0;
    let weights =
        frequencies.weights().into_iter().zip(anywhere.with.iter().map(|with| rarity(*with, anywhere.all)));
    for ((word, with), (weight, anywhere)) in words.iter().zip(&frequencies.with).zip(weights) {
        total_weight += weight;
        let Some(query) = stems_query(word).filter(|_| is_rare(with) || !has_rare) else { continue };
        let mut rows = statement.query(params![query, from, before])?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if is_wanted(StreamNumber::from_row_id(id).0) {
                let share = if row.get(2)? { 1.0 } else { NEIGHBOUR_SHARE };
                let score = scores.entry(id).or_default();
                // Weighted by the rarity in records alone, like `WordFrequencies::weights` for other texts.
                score.fit += row.get::<_, f64>(1)? / anywhere * weight;
                score.weight += share * weight;
            }
        }
    }
    // Squared, so that a record with more of the words ranks higher than by their sum alone.
    let rank = |score: &TopicScore| score.fit * (score.weight / total_weight).powi(2);
    Ok(scores.into_iter().map(|(id, score)| (rank(&score), id)).collect())
}

#[derive(Default)]
struct TopicScore {
    /// The sum of `bm25` over the words that the record contains.
    fit: f64,
    /// The sum of the weights of these words.
    weight: f64,
}

/// Counts the rows with each of the words, in any of its forms, in the columns of an FTS5 filter such as `own :`.
pub(super) fn count_records(
    db: &Connection,
    words: &[String],
    columns: &str,
) -> IndexResult<WordFrequencies> {
    let mut statement = db.prepare_cached("SELECT count(*) FROM gists WHERE gists MATCH ?1")?;
    let mut with = Vec::new();
    for word in words {
        with.push(match stems_query(word) {
            Some(query) => statement.query_row([format!("{columns} {query}")], |row| row.get(0))?,
            None => 0,
        });
    }
    let all = db.query_row("SELECT count(*) FROM gists_docsize", [], |row| row.get(0))?;
    Ok(WordFrequencies { with, all })
}

/// The weight of a word in `bm25`. It is almost 0 if more than half of the rows contain the word.
#[allow(clippy::cast_precision_loss, reason = "a weight needs no more")]
fn rarity(with: u64, all: u64) -> f64 {
    let rarity = ((all as f64 - with as f64 + 0.5) / (with as f64 + 0.5)).ln();
    if rarity > 0.0 { rarity } else { 1e-6 }
}

/// The FTS5 query for a word in any of its forms; `None` if it has no letters.
fn stems_query(word: &str) -> Option<String> {
    let stems = stems(word);
    (!stems.is_empty()).then(|| quoted(&stems.join(" ")))
}

fn quoted(term: &str) -> String {
    format!("\"{}\"", term.replace('"', " "))
}

fn hit(journal: &Connection, stream: &IndexedStream, seq: Seq, score: f64, words: &str) -> SearchHit {
    let one = rows::page(journal, (stream.number, &stream.name), seq, Page { records: 1, bytes: 0 });
    let text = match one.unwrap_or_default().first() {
        Some(ScannedRow::Record(record)) => matching_text(journal, record, words),
        _ => String::new(),
    };
    SearchHit { excerpt: search::excerpt(&text, words), stream: stream.name.clone(), seq, score }
}

/// The text of a record that contains one of the words: its own text, otherwise that of one of its blobs.
fn matching_text(journal: &Connection, record: &Record, words: &str) -> String {
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
