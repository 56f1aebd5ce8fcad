use std::collections::HashSet;

use longhaul_context::max_bytes_for;
use longhaul_journal::{Journal, SearchAnswer, SearchQuery};
use longhaul_protocol::{Seq, SessionId, StreamName};

use super::score::TextScorer;
use super::{RecallBudget, RecallHit, RecallPlace, RecallScope, Recalled, extracts, history, pages};
use crate::Result;

/// Records to look at for each wanted hit: not all can be shown.
const RECORDS_PER_HIT: usize = 6;
/// Extracts to read for each wanted hit: few of their items match.
const EXTRACTS_PER_HIT: usize = 4;
/// Scores that differ by less than this share are ties.
const TIE_MARGIN: f64 = 0.1;
/// The bytes of an entry beside its text: its reference, the time and the speaker.
const ENTRY_BYTES: usize = 60;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[derive(Debug)]
pub(super) struct RecallCandidate {
    pub(super) hit: RecallHit,
    pub(super) score: f64,
    /// How many page versions cite the item. For a page, the number of its versions.
    pub(super) citations: usize,
}

/// Finds what has the words of a question, the best first, as much as the budget allows.
///
/// More of the words, and rarer ones, score higher. Among ties the later day comes first, then what is cited more
/// (items by page versions, pages by their versions), then the newer one.
pub async fn recall(
    journal: &dyn Journal,
    places: &RecallScope,
    question: &str,
    budget: RecallBudget,
) -> Result<Recalled> {
    let most = budget.entries;
    let records = search(journal, places, question, StreamName::session, RECORDS_PER_HIT * most).await?;
    let extracts = search(journal, places, question, StreamName::extract, EXTRACTS_PER_HIT * most).await?;
    let unindexed = records.unindexed + extracts.unindexed;
    let scorer = TextScorer::new(records.words);
    let items = extracts::candidates(journal, places, &scorer, extracts.hits).await?;
    let records = history::candidates(journal, places, records.hits, most).await?;
    let mut candidates = pages::candidates(places, &scorer);
    candidates.extend(dedup_candidates(items, records));
    let ranked = rank_candidates(candidates).into_iter().take(most).map(|candidate| candidate.hit);
    let hits = show_within(journal, ranked.collect(), budget).await?;
    Ok(Recalled { hits, unindexed })
}

/// Searches one stream of each session.
async fn search(
    journal: &dyn Journal,
    places: &RecallScope,
    question: &str,
    stream: fn(SessionId) -> StreamName,
    limit: usize,
) -> Result<SearchAnswer> {
    let streams = places.sessions.iter().map(|(session, _)| stream(*session)).collect();
    let mut query = SearchQuery::new(question, limit).within(streams);
    query.asked_at = places.asked_at.unwrap_or(query.asked_at);
    Ok(journal.search(&query).await?)
}

/// Completes the hits, as many of the first as the budget allows, but always one.
async fn show_within(
    journal: &dyn Journal,
    ranked: Vec<RecallHit>,
    budget: RecallBudget,
) -> Result<Vec<RecallHit>> {
    let shown: HashSet<RecallPlace> = ranked.iter().map(|hit| hit.place.clone()).collect();
    let mut left = max_bytes_for(budget.tokens);
    let mut hits = Vec::new();
    for mut hit in ranked {
        let is_shown = |request: Seq| match &hit.place {
            RecallPlace::Record { session, .. } => {
                shown.contains(&RecallPlace::Record { session: *session, seq: request })
            }
            RecallPlace::Page(_) | RecallPlace::Item { .. } => false,
        };
        if !hit.request.is_some_and(is_shown) {
            history::add_request(journal, &mut hit).await?;
        }
        let size = hit.excerpt.len() + ENTRY_BYTES;
        if size > left && !hits.is_empty() {
            break;
        }
        left = left.saturating_sub(size);
        hits.push(hit);
    }
    Ok(hits)
}

/// Merges items with the records that they came from: the item is shown, with the better of both scores.
fn dedup_candidates(mut items: Vec<RecallCandidate>, records: Vec<RecallCandidate>) -> Vec<RecallCandidate> {
    let mut besides = Vec::new();
    for record in records {
        let RecallPlace::Record { session, seq } = record.hit.place else { continue };
        let told = items.iter_mut().find(|item| cites_record(item, session, seq));
        match told {
            Some(item) => item.score = item.score.max(record.score),
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
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    let mut rest = candidates.as_mut_slice();
    while let Some(best) = rest.first() {
        let least = best.score * (1.0 - TIE_MARGIN);
        let equals = rest.iter().take_while(|candidate| candidate.score >= least).count().max(1);
        let (as_good, worse) = rest.split_at_mut(equals);
        as_good.sort_by_key(|RecallCandidate { hit, citations, .. }| {
            std::cmp::Reverse((hit.at.0.div_euclid(DAY_MS), *citations, hit.at))
        });
        rest = worse;
    }
    candidates
}

#[cfg(test)]
#[path = "lexical_tests.rs"]
mod tests;
