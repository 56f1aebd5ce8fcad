//! Recall: finding things again in pages, extracts and records.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `score` | how well a short text matches, by the measure of the journal's search |
//! | `pages`, `extracts`, `history` | candidates from the three kinds of places |
//! | `lexical` | the search of all three by words, the order of hits, and how many are shown |
//! | `embedding`, `fusion` | a second way of finding records, by vectors; two rankings become one |

mod embedding;
mod extracts;
mod fusion;
mod history;
mod lexical;
mod pages;
mod score;

use async_trait::async_trait;
pub use embedding::{Embedder, EmbeddingFinder, embed_session};
pub use lexical::{recall, recall_with};
use longhaul_journal::{Journal, SearchHit, SearchQuery};
use longhaul_protocol::{At, Seq, SessionId, Speaker};

use crate::{PageSet, Result};

/// A way of finding records beside their words.
#[async_trait]
pub trait Finder: Send + Sync {
    /// The records that fit a question, the best first. Their scores are not compared with others.
    async fn find(&self, journal: &dyn Journal, search: &SearchQuery) -> Result<Vec<SearchHit>>;
}

/// Where recall searches. It never finds anything outside of this.
#[derive(Debug, Clone)]
pub struct RecallScope {
    pub book: PageSet,
    /// The sessions and their keys.
    pub sessions: Vec<(SessionId, String)>,
    /// The caller's session and the first of its records that recall skips: those of its context, with the question itself, or all.
    pub present: Option<(SessionId, Seq)>,
    /// When the question is asked, for words such as `yesterday`; `None` for now.
    pub asked_at: Option<At>,
}

impl RecallScope {
    /// The sessions of which it may find records.
    fn sessions_with_records(&self) -> impl Iterator<Item = SessionId> {
        let is_skipped =
            |session| self.present.is_some_and(|(present, from)| present == session && from <= 1);
        self.sessions.iter().map(|(session, _)| *session).filter(move |session| !is_skipped(*session))
    }
}

/// How much recall shows: entries up to either limit, but always the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecallBudget {
    pub entries: usize,
    pub tokens: u64,
}

impl RecallBudget {
    /// This many entries, whatever their size.
    pub fn entries(entries: usize) -> Self {
        Self { entries, tokens: u64::MAX }
    }
}

/// What recall found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recalled {
    /// The best first.
    pub hits: Vec<RecallHit>,
    /// Records that are not searched yet, because the index is being built anew. Usually 0.
    pub unindexed: u64,
    /// Why the search went by words alone, if more was wanted.
    pub warning: Option<String>,
}

/// Says that a search has not seen everything; `None` if it has.
pub fn unindexed_notice(unindexed: u64) -> Option<String> {
    (unindexed > 0).then(|| {
        format!("the search index is being rebuilt: {unindexed} records are not searched yet; search again in a moment")
    })
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
    /// For an answer, the user's input before it.
    pub request: Option<Seq>,
}
