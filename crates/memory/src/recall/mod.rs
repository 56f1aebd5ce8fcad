//! Recall: finding things again in pages, extracts and records.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `query` | the terms of a question |
//! | `score` | how well a short text matches, by the measure of the journal's search index |
//! | `pages`, `extracts`, `history` | candidates from the three kinds of places |
//! | `lexical` | the search of all three by words, and the order of hits |

mod extracts;
mod history;
mod lexical;
mod pages;
mod query;
mod score;

pub use lexical::recall;
use longhaul_protocol::{At, Seq, SessionId, Speaker};

use crate::PageSet;

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
