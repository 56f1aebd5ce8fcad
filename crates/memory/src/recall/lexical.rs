use std::collections::HashSet;

use longhaul_journal::Journal;
use longhaul_protocol::{Seq, SessionId, StreamName};

use super::query::RecallQuery;
use super::score::WeightedQuery;
use super::{RecallHit, RecallPlace, RecallScope, extracts, history, pages};
use crate::Result;

/// Records to read for each wanted hit: not all can be shown.
const RECORDS_PER_HIT: usize = 6;
/// Extracts to read for each wanted hit: few of their items match.
const EXTRACTS_PER_HIT: usize = 4;
/// Scores that differ by less than this share are ties.
const TIE_MARGIN: f64 = 0.1;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

#[derive(Debug)]
pub(super) struct RecallCandidate {
    pub(super) hit: RecallHit,
    pub(super) score: f64,
    /// How many page versions cite the item. For a page, the number of its versions.
    pub(super) citations: usize,
}

/// Finds what has the words of a question: at most `most` hits, the best first.
///
/// More of the words, and rarer ones, score higher. Among ties the later day comes first, then what is cited more
/// (items by page versions, pages by their versions), then the newer one.
pub async fn recall(
    journal: &dyn Journal,
    places: &RecallScope,
    question: &str,
    most: usize,
) -> Result<Vec<RecallHit>> {
    let query = RecallQuery::of(question);
    if query.terms.is_empty() || most == 0 {
        return Ok(Vec::new());
    }
    // In this order: only a search updates the index, which then knows how rare a word is.
    let records = query.hits(journal, places, StreamName::session, RECORDS_PER_HIT * most).await?;
    let extracts = query.hits(journal, places, StreamName::extract, EXTRACTS_PER_HIT * most).await?;
    let weighed = WeightedQuery::new(journal, query).await?;
    let items = extracts::candidates(journal, places, &weighed, extracts).await?;
    let records = history::candidates(journal, places, records, most).await?;
    let mut candidates = pages::candidates(places, &weighed);
    candidates.extend(dedup_candidates(items, records));
    Ok(rank_candidates(candidates).into_iter().take(most).map(|candidate| candidate.hit).collect())
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
