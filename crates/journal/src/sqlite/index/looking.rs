//! Looking for words in the index.

use std::collections::HashMap;

use longhaul_protocol::{Record, Seq, StreamName};
use rusqlite::{Connection, params};

use super::{Tried, cursor};
use crate::search::{self, Findable, Match, Search};
use crate::sqlite::rows::{self, Found, StreamNumber};
use crate::{Frequencies, Hit, Page, stems};

/// What was said around a record counts so much, compared with the same words in it.
const WEIGHT_AROUND: f64 = 0.5;
/// A word that stands only around it makes so much of one that stands in it.
const SHARE_AROUND: f64 = 0.7;
/// A word that more than one of so many records has tells nothing, unless there is no other.
const TELLING: u64 = 3;

/// A stream that is looked at.
pub(super) struct Looked {
    /// Its number in the index.
    pub(super) id: StreamNumber,
    /// Its number in the journal.
    pub(super) number: StreamNumber,
    pub(super) name: StreamName,
}

/// Rows with their scores.
type Ranked = Vec<(f64, i64)>;

/// The best hits.
pub(super) fn look(
    db: &Connection,
    journal: &Connection,
    search: &Search,
    looked: &[Looked],
) -> Tried<Vec<Hit>> {
    let by_id: HashMap<i64, &Looked> = looked.iter().map(|looked| (looked.id.0, looked)).collect();
    let moment = db.unchecked_transaction()?;
    let mut ranked = match search.matching {
        Match::All => with_words(&moment, search, looked, " ")?,
        Match::Any => with_words(&moment, search, looked, " OR ")?,
        Match::Around => about(&moment, &search.words, looked, |id| by_id.contains_key(&id.0))?,
    };
    ranked.sort_by(|(a, one), (b, other)| b.total_cmp(a).then(other.cmp(one)));
    let known = |(score, row)| {
        let (id, seq) = StreamNumber::of_row(row);
        let looked = by_id.get(&id.0)?;
        // Another process may have begun the index anew meanwhile, and numbered the streams otherwise.
        let still = cursor(&moment, &looked.name).ok()??;
        (still.id == id).then_some((*looked, seq, score))
    };
    let found: Vec<_> = ranked.into_iter().filter_map(known).take(search.limit).collect();
    Ok(found
        .into_iter()
        .map(|(looked, seq, score)| hit(journal, looked, seq, score, &search.words))
        .collect())
}

/// Rows that have the words as they are. Each stream is looked at in its own range of rows; all of them, in one go.
fn with_words(db: &Connection, search: &Search, looked: &[Looked], between: &str) -> Tried<Ranked> {
    let terms: Vec<String> = search::terms(&search.words).map(|term| quoted(&term)).collect();
    if terms.is_empty() {
        return Ok(Vec::new());
    }
    let query = terms.join(between);
    let ranges: Vec<(i64, i64)> = if search.streams.is_empty() {
        vec![(0, i64::MAX)]
    } else {
        looked.iter().map(|looked| (looked.id.row(0), looked.id.end())).collect()
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

/// Rows that are about the words: each word for itself, so that it is known how many of them a record has. That is done for all streams in
/// one go: there may be a thousand, and how rare a word is would be counted anew for each.
fn about(
    db: &Connection,
    words: &str,
    looked: &[Looked],
    is_wanted: impl Fn(StreamNumber) -> bool,
) -> Tried<Ranked> {
    let words: Vec<String> = search::terms(words).collect();
    let frequencies = count(db, &words, "own :")?;
    let is_telling = |with: &u64| *with > 0 && *with * TELLING <= frequencies.all;
    let has_telling = frequencies.with.iter().any(is_telling);
    let anywhere = count(db, &words, "")?;
    let from = looked.iter().map(|looked| looked.id.row(0)).min().unwrap_or(0);
    let before = looked.iter().map(|looked| looked.id.end()).max().unwrap_or(0);
    let mut statement = db.prepare_cached(&format!(
        "SELECT rowid, -bm25(gists, 1.0, {WEIGHT_AROUND}), bm25(gists, 1.0, 0.0) < 0.0 FROM gists
         WHERE gists MATCH ?1 AND rowid >= ?2 AND rowid < ?3"
    ))?;
    let mut scores: HashMap<i64, Score> = HashMap::new();
    let mut most = 0.0;
    let weights =
        frequencies.weights().into_iter().zip(anywhere.with.iter().map(|with| rarity(*with, anywhere.all)));
    for ((word, with), (weight, anywhere)) in words.iter().zip(&frequencies.with).zip(weights) {
        most += weight;
        let Some(query) = of_stems(word).filter(|_| is_telling(with) || !has_telling) else { continue };
        let mut rows = statement.query(params![query, from, before])?;
        while let Some(row) = rows.next()? {
            let id: i64 = row.get(0)?;
            if is_wanted(StreamNumber::of_row(id).0) {
                let share = if row.get(2)? { 1.0 } else { SHARE_AROUND };
                let score = scores.entry(id).or_default();
                // By how rare it is in records, as whoever compares other texts with them does it.
                score.fits += row.get::<_, f64>(1)? / anywhere * weight;
                score.has += share * weight;
            }
        }
    }
    // What has more of the words is better, by more than what they add.
    Ok(scores.into_iter().map(|(id, score)| (score.fits * (score.has / most).powi(2), id)).collect())
}

/// What a record has of the words.
#[derive(Default)]
struct Score {
    /// How well they fit.
    fits: f64,
    /// How many they are, by their weights.
    has: f64,
}

/// In how many records each of the words stands.
pub(super) fn frequencies(db: &Connection, words: &[String]) -> Tried<Frequencies> {
    count(db, words, "own :")
}

/// How many rows have each of the words, in some columns.
fn count(db: &Connection, words: &[String], columns: &str) -> Tried<Frequencies> {
    let mut statement = db.prepare_cached("SELECT count(*) FROM gists WHERE gists MATCH ?1")?;
    let mut with = Vec::new();
    for word in words {
        with.push(match of_stems(word) {
            Some(query) => statement.query_row([format!("{columns} {query}")], |row| row.get(0))?,
            None => 0,
        });
    }
    let all = db.query_row("SELECT count(*) FROM gists_docsize", [], |row| row.get(0))?;
    Ok(Frequencies { with, all })
}

/// How much a word counts by `bm25`: next to nothing, where more than half of the rows have it.
#[allow(clippy::cast_precision_loss, reason = "a weight needs no more")]
fn rarity(with: u64, all: u64) -> f64 {
    let rarity = ((all as f64 - with as f64 + 0.5) / (with as f64 + 0.5)).ln();
    if rarity > 0.0 { rarity } else { 1e-6 }
}

/// A word as the gists have it; nothing, if it is none.
fn of_stems(word: &str) -> Option<String> {
    let stems = stems(word);
    (!stems.is_empty()).then(|| quoted(&stems.join(" ")))
}

fn quoted(term: &str) -> String {
    format!("\"{}\"", term.replace('"', " "))
}

fn hit(journal: &Connection, looked: &Looked, seq: Seq, score: f64, words: &str) -> Hit {
    let one = rows::page(journal, (looked.number, &looked.name), seq, Page { records: 1, bytes: 0 });
    let text = match one.unwrap_or_default().first() {
        Some(Found::Record(record)) => found_text(journal, record, words),
        _ => String::new(),
    };
    Hit { excerpt: search::excerpt(&text, words), stream: looked.name.clone(), seq, score }
}

/// The text of a record that has one of the words: its own, or else that of a blob.
fn found_text(journal: &Connection, record: &Record, words: &str) -> String {
    let Some(Findable { text, blobs, .. }) = Findable::of(record) else { return String::new() };
    if search::has_a_word(&text, words) {
        return text;
    }
    let whole = blobs.into_iter().filter_map(|blob| rows::blob(journal, blob.hash).ok()?);
    let mut whole = whole.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    whole.find(|whole| search::has_a_word(whole, words)).unwrap_or(text)
}
