use std::collections::HashSet;

use async_trait::async_trait;
use longhaul_journal::Journal;
use longhaul_protocol::{Seq, SessionId};

use super::query::Query;
use super::scoring::Weighed;
use super::{Finder, RecallHit, RecallPlace, RecallScope, extracts, history, pages};
use crate::Result;

/// What is worse by less than this share is as good.
const AS_GOOD: f64 = 0.1;
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Finds by words.
///
/// What has more of the words, and rarer ones, is better. Among those that are as good, what was written on a later day stands first;
/// then what is more used: an item that more versions of pages cite, a page that has more versions; then the newer one.
#[derive(Debug, Default)]
pub struct LexicalFinder;

/// Something that may be among the best.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) found: RecallHit,
    pub(super) score: f64,
    /// How often others rest on it.
    pub(super) used: usize,
}

#[async_trait]
impl Finder for LexicalFinder {
    async fn find(
        &self,
        journal: &dyn Journal,
        places: &RecallScope,
        query: &str,
        most: usize,
    ) -> Result<Vec<RecallHit>> {
        let query = Query::of(query);
        if query.terms.is_empty() || most == 0 {
            return Ok(Vec::new());
        }
        // In this order: the index catches up with what it is asked for, and only then knows how rare a word is.
        let records = history::hits(journal, places, &query, most).await?;
        let extracts = extracts::hits(journal, places, &query, most).await?;
        let weighed = Weighed::new(journal, query).await?;
        let items = extracts::candidates(journal, places, &weighed, extracts).await?;
        let records = history::candidates(journal, places, records, most).await?;
        let mut candidates = pages::candidates(places, &weighed);
        candidates.extend(each_once(items, records));
        Ok(ordered(candidates).into_iter().take(most).map(|candidate| candidate.found).collect())
    }
}

/// Items and the records that they came from are the same things: of these the items are shown, as well placed as the best of them.
fn each_once(mut items: Vec<Candidate>, records: Vec<Candidate>) -> Vec<Candidate> {
    let mut besides = Vec::new();
    for record in records {
        let RecallPlace::Record { session, seq } = record.found.place else { continue };
        let told = items.iter_mut().find(|item| is_told_by(item, session, seq));
        match told {
            Some(item) => item.score = item.score.max(record.score),
            None => besides.push(record),
        }
    }
    items.append(&mut besides);
    let mut seen = HashSet::new();
    // The same words twice are one thing, as it was said last.
    items.sort_by_key(|candidate| std::cmp::Reverse(candidate.found.at));
    items.retain(|candidate| seen.insert(candidate.found.excerpt.to_lowercase()));
    items
}

fn is_told_by(item: &Candidate, session: SessionId, seq: Seq) -> bool {
    matches!(&item.found.place, RecallPlace::Item { session: of, .. } if *of == session)
        && item.found.sources.contains(&seq)
}

/// The best first.
fn ordered(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    let mut rest = candidates.as_mut_slice();
    while let Some(best) = rest.first() {
        let least = best.score * (1.0 - AS_GOOD);
        let equals = rest.iter().take_while(|candidate| candidate.score >= least).count().max(1);
        let (as_good, worse) = rest.split_at_mut(equals);
        as_good.sort_by_key(|Candidate { found, used, .. }| {
            std::cmp::Reverse((found.at.0.div_euclid(DAY_MS), *used, found.at))
        });
        rest = worse;
    }
    candidates
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
