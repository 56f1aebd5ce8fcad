//! Queries of the index.

use std::collections::BTreeSet;

use longhaul_protocol::{Record, Seq, StreamName};

use super::searched_records::{SearchedRecords, SearchedStream};
use super::{IndexResult, IndexSource};
use crate::question::Question;
use crate::scoring::{MIN_IDF, RecordFlags, RecordSet, Scoring, ScoringHints};
use crate::search::{self, SearchQuery, SearchableText};
use crate::sqlite::rows::ScannedRow;
use crate::{Page, SearchAnswer, SearchHit, WeightedWord, stems};

/// The most words of a search for streams.
const MAX_WORDS: usize = 64;

/// The answer to a search that looks at no records.
pub(super) fn answer_without_records(search: &SearchQuery) -> SearchAnswer {
    // Callers look for the words in other texts, too. Without records no word is rarer than another.
    let word = |stem: String| WeightedWord { stem, weight: MIN_IDF };
    let question = Question::parse(&search.words, search.asked_at);
    SearchAnswer { words: question.stems.into_iter().map(word).collect(), ..SearchAnswer::default() }
}

/// The best hits.
pub(super) fn run_query(
    searched: &SearchedRecords<'_>,
    journal: &dyn IndexSource,
    search: &SearchQuery,
) -> IndexResult<SearchAnswer> {
    let question = Question::parse(&search.words, search.asked_at);
    if question.stems.is_empty() || searched.count() == 0 || search.limit == 0 {
        return Ok(answer_without_records(search));
    }
    let loaded = searched.load()?;
    let mut postings = Vec::new();
    for stem in &question.stems {
        postings.push(loaded.postings(stem)?);
    }
    let near = question.date.map(|date| searched.load_nearness(&date)).transpose()?.unwrap_or_default();
    let speakers = searched.named_speakers(&question);
    let mut scoring = Scoring::new(loaded.into_records());
    let mut words = Vec::new();
    for (stem, postings) in question.stems.iter().zip(&postings) {
        words.push(WeightedWord { stem: stem.clone(), weight: scoring.weight(postings.len()) });
        scoring.add_word(postings);
    }
    scoring.apply_hints(&ScoringHints {
        asks_when: question.asks_when,
        speakers: &speakers,
        nearness: &near,
    });
    let hits = show_hits(searched, journal, search, scoring.best(search.limit))?;
    Ok(SearchAnswer { hits, words, unindexed: 0 })
}

/// What a search shows of records, which have scores.
pub(super) fn show_hits(
    searched: &SearchedRecords<'_>,
    journal: &dyn IndexSource,
    search: &SearchQuery,
    records: Vec<(usize, f32)>,
) -> IndexResult<Vec<SearchHit>> {
    let shown = Question::parse(&search.words, search.asked_at).excerpt_words(&search.words);
    let hit = |(index, score)| find_hit(searched, journal, (index, score), &shown).transpose();
    records.into_iter().filter_map(hit).collect()
}

/// The streams that have a record with all of the words.
pub(super) fn streams_with_words(
    searched: &SearchedRecords<'_>,
    words: &str,
) -> IndexResult<Vec<StreamName>> {
    let stems: BTreeSet<String> = stems(words).into_iter().collect();
    if stems.is_empty() || searched.count() == 0 {
        return Ok(Vec::new());
    }
    let loaded = searched.load()?;
    let mut having_all: Option<RecordSet> = None;
    for stem in stems.iter().take(MAX_WORDS) {
        let postings = loaded.postings(stem)?;
        match &mut having_all {
            Some(having_all) => having_all.retain_all(&postings),
            empty => *empty = Some(postings),
        }
    }
    let mut found: Vec<&StreamName> = Vec::new();
    for record in having_all.iter().flat_map(RecordSet::iter) {
        let name = &searched.stream_at(record).stream.1;
        if found.last() != Some(&name) {
            found.push(name);
        }
    }
    Ok(found.into_iter().cloned().collect())
}

/// `None` for a record that the index has no place of, which only damage explains.
fn find_hit(
    searched: &SearchedRecords<'_>,
    journal: &dyn IndexSource,
    (index, score): (usize, f32),
    words: &BTreeSet<String>,
) -> IndexResult<Option<SearchHit>> {
    let Some(found) = searched.record(index)? else { return Ok(None) };
    let of = searched.stream_at(index);
    let request = match found.request_distance as usize {
        0 => None,
        distance => index.checked_sub(distance).filter(|request| *request >= of.records.start),
    };
    let request = request.map(|request| searched.record(request)).transpose()?.flatten();
    let request = request.filter(|request| request.flags.has(RecordFlags::USER)).map(|request| request.seq);
    let excerpt = excerpt(journal, of.stream, found.seq, words);
    let (stream, seq) = (of.stream.1.clone(), found.seq);
    Ok(Some(SearchHit { stream, seq, excerpt, score: f64::from(score), request }))
}

fn excerpt(
    journal: &dyn IndexSource,
    (number, name): &SearchedStream,
    seq: Seq,
    words: &BTreeSet<String>,
) -> String {
    let one = journal.page((*number, name), seq, Page { records: 1, bytes: 0 });
    let text = match one.unwrap_or_default().first() {
        Some(ScannedRow::Record(record)) => matching_text(journal, record, words),
        _ => String::new(),
    };
    search::excerpt(&text, words)
}

/// The text of a record that contains one of the words: its own text, otherwise that of one of its blobs.
fn matching_text(journal: &dyn IndexSource, record: &Record, words: &BTreeSet<String>) -> String {
    let Some(SearchableText { text, blobs, .. }) = SearchableText::from_record(record) else {
        return String::new();
    };
    if search::contains_any_word(&text, words) {
        return text;
    }
    let whole = blobs.into_iter().filter_map(|blob| journal.blob(blob.hash).ok()?);
    let mut whole = whole.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    whole.find(|whole| search::contains_any_word(whole, words)).unwrap_or(text)
}
