//! Finding things again: in pages, in extracts, and in what was said.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `query` | what a question asks for: its words without those that every question has, in any of their forms |
//! | `scoring` | how well a short text fits, by the same measure by which the journal's index ranks records |
//! | `pages`, `extracts`, `history` | the three kinds of places |
//! | `words` | the finder that looks in all three, and what stands before what |

mod extracts;
mod history;
mod pages;
mod query;
mod scoring;
mod words;

use std::collections::HashMap;

use async_trait::async_trait;
use longhaul_journal::Journal;
use longhaul_protocol::{At, Seq, SessionId, Speaker};
pub use words::LexicalFinder;

use crate::{PageSet, Result};

/// Where several finders are asked, a place that one of them has at rank r counts 1 / (this + r): being named by two counts more than
/// being first with one.
const RANK_OFFSET: f64 = 60.0;

/// Where to look. Nothing outside of it is ever found.
#[derive(Debug, Clone)]
pub struct RecallScope {
    /// The pages.
    pub book: PageSet,
    /// The sessions of the scope, with their keys.
    pub sessions: Vec<(SessionId, String)>,
    /// What is being said now, from a record of a session on. Whoever asks has it before their eyes, the question itself
    /// too.
    pub present: Option<(SessionId, Seq)>,
}

/// Something that was found, by its place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecallPlace {
    /// A page.
    Page(String),
    /// An extracted item.
    Item {
        /// The session.
        session: SessionId,
        /// The record in its extracts.
        seq: Seq,
        /// Its number there.
        item: usize,
    },
    /// A record of a session.
    Record {
        /// The session.
        session: SessionId,
        /// The record.
        seq: Seq,
    },
}

/// Something that was found, the best first.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallHit {
    /// Where it is.
    pub place: RecallPlace,
    /// Whose words they are; where they are several people's, the one least to be trusted.
    pub speaker: Speaker,
    /// When it was written.
    pub at: At,
    /// The part that says why it was found.
    pub excerpt: String,
    /// The records that it came from, where it is an item; those that are shown with it, where it is a record.
    pub sources: Vec<Seq>,
}

/// One way of finding things. Words are the one there is; embeddings would be another, and their lists are merged by rank.
#[async_trait]
pub trait Finder: Send + Sync {
    /// What fits the query, the best first, at most so many.
    async fn find(
        &self,
        journal: &dyn Journal,
        places: &RecallScope,
        query: &str,
        most: usize,
    ) -> Result<Vec<RecallHit>>;
}

/// What fits a query, by all finders together: the best first, at most so many.
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
    let mut merged = by_rank(lists);
    merged.truncate(most);
    Ok(merged)
}

/// Several lists as one. A single one stays as it is.
fn by_rank(mut lists: Vec<Vec<RecallHit>>) -> Vec<RecallHit> {
    if lists.len() == 1 {
        return lists.remove(0);
    }
    let mut merged: Vec<(f64, RecallHit)> = Vec::new();
    let mut known: HashMap<RecallPlace, usize> = HashMap::new();
    for list in lists {
        let mut score = RANK_OFFSET;
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
