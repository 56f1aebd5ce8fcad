use std::collections::HashSet;

use longhaul_context::max_bytes_for;
use longhaul_journal::{Journal, SearchQuery};
use longhaul_protocol::{Seq, SessionId, StreamName};

use super::fusion::fuse_by_rank;
use super::score::{TextMatch, TextScorer};
use super::{Finder, RecallBudget, RecallHit, RecallPlace, RecallScope, Recalled, extracts, history, pages};
use crate::Result;

/// Records to look at for each wanted hit: not all can be shown.
const RECORDS_PER_HIT: usize = 6;
/// Records of a second finder for each wanted hit. It always finds some, however far they are.
const FOUND_PER_HIT: usize = 2;
/// Extracts to read for each wanted hit: few of their items match.
const EXTRACTS_PER_HIT: usize = 4;
/// Entries to rank at least, however few are shown.
const MIN_RANKED: usize = 10;
/// Scores that differ by less than this share are ties.
const TIE_MARGIN: f64 = 0.1;
/// The bytes of an entry beside its text: its reference, the time and the speaker.
const ENTRY_BYTES: usize = 60;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[derive(Debug)]
pub(super) struct RecallCandidate {
    pub(super) hit: RecallHit,
    pub(super) found: TextMatch,
    /// How many page versions cite the item. For a page, the number of its versions.
    pub(super) citations: usize,
    /// For an answer, what was asked and by whom.
    pub(super) asked: Option<String>,
}

impl RecallCandidate {
    pub(super) fn new(hit: RecallHit, found: TextMatch) -> Self {
        Self { hit, found, citations: 0, asked: None }
    }
}

/// Finds what has the words of a question, the best first, as much as the budget allows.
///
/// More of the words, and rarer ones, score higher. Among ties what has more of the question's own words comes first, then
/// the later day, then what is cited more (items by page versions, pages by their versions), then the newer one.
pub async fn recall(
    journal: &dyn Journal,
    places: &RecallScope,
    question: &str,
    budget: RecallBudget,
) -> Result<Recalled> {
    recall_with(journal, places, question, budget, None).await
}

/// The same, with another way of finding records beside their words. If that fails, the words alone have to do, and the warning
/// says why.
pub async fn recall_with(
    journal: &dyn Journal,
    places: &RecallScope,
    question: &str,
    budget: RecallBudget,
    finder: Option<&dyn Finder>,
) -> Result<Recalled> {
    // Ranked among more than are shown, so that the first entries are the same for each limit.
    let most = budget.entries.max(MIN_RANKED);
    let times = |per_hit: usize| most.saturating_mul(per_hit);
    let record_streams = || places.sessions_with_records().map(StreamName::session).collect();
    let extract_streams = places.sessions.iter().map(|(session, _)| StreamName::extract(*session)).collect();
    let query = |streams, limit| search_query(places, question, streams, limit);
    let mut records = journal.search(&query(record_streams(), times(RECORDS_PER_HIT))).await?;
    let extracts = journal.search(&query(extract_streams, times(EXTRACTS_PER_HIT))).await?;
    let mut warning = None;
    if let Some(finder) = finder {
        match finder.find(journal, &query(record_streams(), times(FOUND_PER_HIT))).await {
            Ok(others) => records.hits = fuse_by_rank(records.hits, others),
            Err(error) => {
                warning = Some(format!("embeddings are not available, so only words were searched: {error}"));
            }
        }
    }
    let unindexed = records.unindexed + extracts.unindexed;
    let scorer = TextScorer::new(records.words);
    let items = extracts::candidates(journal, places, &scorer, extracts.hits).await?;
    let records = history::candidates(journal, places, &scorer, records.hits, most).await?;
    let mut candidates = pages::candidates(places, &scorer);
    candidates.extend(dedup_candidates(items, records));
    let mut ranked = rank_candidates(candidates);
    ranked.truncate(budget.entries);
    Ok(Recalled { hits: show_within(ranked, budget), unindexed, warning })
}

fn search_query(places: &RecallScope, question: &str, streams: Vec<StreamName>, limit: usize) -> SearchQuery {
    let mut query = SearchQuery::new(question, limit).within(streams);
    query.asked_at = places.asked_at.unwrap_or(query.asked_at);
    query
}

/// Completes the hits, as many of the first as the budget allows, but always one.
fn show_within(ranked: Vec<RecallCandidate>, budget: RecallBudget) -> Vec<RecallHit> {
    let shown: HashSet<RecallPlace> = ranked.iter().map(|candidate| candidate.hit.place.clone()).collect();
    let mut left = max_bytes_for(budget.tokens);
    let mut hits = Vec::new();
    for RecallCandidate { mut hit, asked, .. } in ranked {
        let is_shown = |request: Seq| match &hit.place {
            RecallPlace::Record { session, .. } => {
                shown.contains(&RecallPlace::Record { session: *session, seq: request })
            }
            RecallPlace::Page(_) | RecallPlace::Item { .. } => false,
        };
        if let Some(asked) = asked
            && !hit.request.is_some_and(is_shown)
        {
            history::show_request(&mut hit, &asked);
        }
        let size = hit.excerpt.len() + ENTRY_BYTES;
        if size > left && !hits.is_empty() {
            break;
        }
        left = left.saturating_sub(size);
        hits.push(hit);
    }
    hits
}

/// Merges items with the records that they came from: the item is shown, with the better of both scores.
fn dedup_candidates(mut items: Vec<RecallCandidate>, records: Vec<RecallCandidate>) -> Vec<RecallCandidate> {
    let mut besides = Vec::new();
    for record in records {
        let RecallPlace::Record { session, seq } = record.hit.place else { continue };
        let told = items.iter_mut().find(|item| cites_record(item, session, seq));
        match told {
            Some(RecallCandidate { found, .. }) => {
                found.score = found.score.max(record.found.score);
                found.coverage = found.coverage.max(record.found.coverage);
            }
            None => besides.push(record),
        }
    }
    items.append(&mut besides);
    let mut seen = HashSet::new();
    // Of two equal texts the later one stays.
    items.sort_by_key(|candidate| std::cmp::Reverse(candidate.hit.at));
    items.retain(|candidate| seen.insert(candidate.hit.excerpt.to_lowercase()));
    items
}

fn cites_record(item: &RecallCandidate, session: SessionId, seq: Seq) -> bool {
    matches!(&item.hit.place, RecallPlace::Item { session: of, .. } if *of == session)
        && item.hit.sources.contains(&seq)
}

fn rank_candidates(mut candidates: Vec<RecallCandidate>) -> Vec<RecallCandidate> {
    candidates.sort_by(|one, other| other.found.score.total_cmp(&one.found.score));
    let mut rest = candidates.as_mut_slice();
    while let Some(best) = rest.first() {
        let least = best.found.score * (1.0 - TIE_MARGIN);
        let equals = rest.iter().take_while(|candidate| candidate.found.score >= least).count().max(1);
        let (as_good, worse) = rest.split_at_mut(equals);
        let rank = |RecallCandidate { hit, citations, .. }: &RecallCandidate| {
            (hit.at.0.div_euclid(DAY_MS), *citations, hit.at)
        };
        as_good.sort_by(|one, other| {
            let by_coverage = other.found.coverage.total_cmp(&one.found.coverage);
            by_coverage.then_with(|| rank(other).cmp(&rank(one)))
        });
        rest = worse;
    }
    candidates
}

#[cfg(test)]
#[path = "lexical_tests.rs"]
mod tests;
