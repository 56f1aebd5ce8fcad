//! Recall: finding things again in pages, extracts and records.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `query` | the terms of a question |
//! | `scoring` | how well a short text matches, by the measure of the journal's search index |
//! | `pages`, `extracts`, `history` | candidates from the three kinds of places |
//! | `lexical` | the finder that searches all three by words, and the order of hits |

mod extracts;
mod history;
mod lexical;
mod pages;
mod query;
mod scoring;

use std::collections::HashMap;

use async_trait::async_trait;
pub use lexical::LexicalFinder;
use longhaul_journal::Journal;
use longhaul_protocol::{At, Seq, SessionId, Speaker};

use crate::{PageSet, Result};

/// Reciprocal rank fusion: with several finders, a hit at rank r scores 1 / (this + r). A hit of two finders beats the
/// first hit of one.
const RANK_FUSION_OFFSET: f64 = 60.0;

/// Where recall searches. It never finds anything outside of this.
#[derive(Debug, Clone)]
pub struct RecallScope {
    pub book: PageSet,
    /// The sessions and their keys.
    pub sessions: Vec<(SessionId, String)>,
    /// The caller's session and the first record of its context. Recall skips these records and the question itself.
    pub present: Option<(SessionId, Seq)>,
}

/// The place of a hit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecallPlace {
    Page(String),
    Item {
        session: SessionId,
        /// The record in the session's extract stream.
        seq: Seq,
        item: usize,
    },
    Record {
        session: SessionId,
        /// The record in the session's stream.
        seq: Seq,
    },
}

/// Something that recall found.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallHit {
    pub place: RecallPlace,
    /// The speaker. If there are several, the least trusted one.
    pub speaker: Speaker,
    pub at: At,
    /// The part that matches.
    pub excerpt: String,
    /// For an item, the records that it came from. For a record, the records that are shown with it.
    pub sources: Vec<Seq>,
}

/// A way of finding things. Lexical search is the only one so far. Embeddings could be another: the lists are fused
/// by rank.
#[async_trait]
pub trait Finder: Send + Sync {
    /// At most `most` hits, the best first.
    async fn find(
        &self,
        journal: &dyn Journal,
        places: &RecallScope,
        query: &str,
        most: usize,
    ) -> Result<Vec<RecallHit>>;
}

/// The hits of all finders together, the best first.
pub async fn recall(
    finders: &[&dyn Finder],
    journal: &dyn Journal,
    places: &RecallScope,
    query: &str,
    most: usize,
) -> Result<Vec<RecallHit>> {
    let mut lists = Vec::new();
    for finder in finders {
        lists.push(finder.find(journal, places, query, most).await?);
    }
    let mut merged = fuse_ranks(lists);
    merged.truncate(most);
    Ok(merged)
}

/// Fuses several lists. A single list is returned unchanged.
fn fuse_ranks(mut lists: Vec<Vec<RecallHit>>) -> Vec<RecallHit> {
    if lists.len() == 1 {
        return lists.remove(0);
    }
    let mut merged: Vec<(f64, RecallHit)> = Vec::new();
    let mut known: HashMap<RecallPlace, usize> = HashMap::new();
    for list in lists {
        let mut score = RANK_FUSION_OFFSET;
        for found in list {
            score += 1.0;
            match known.get(&found.place) {
                Some(index) => merged[*index].0 += score.recip(),
                None => {
                    known.insert(found.place.clone(), merged.len());
                    merged.push((score.recip(), found));
                }
            }
        }
    }
    merged.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    merged.into_iter().map(|(_, found)| found).collect()
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
