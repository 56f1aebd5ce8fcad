use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{Seq, SessionId};

record_kinds! {
    /// What stands in `extract/<session>`.
    ExtractRecord {
        /// What was worth remembering in a span of the session.
        "extracted" => Extracted(Extracted),
    }
}

record_kinds! {
    /// What stands in `memory/<scope>`.
    MemoryRecord {
        /// Pages were written, by a consolidation, a person or an undo.
        "pages_changed" => PagesChanged(PagesChanged),
    }
}

/// What was worth remembering in a span of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extracted {
    /// The first record of the span.
    pub from: Seq,
    /// The last one. The next span starts after it.
    pub through: Seq,
    /// What was found; nothing is a success too.
    pub items: Vec<ExtractedItem>,
}

/// One thing worth remembering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractedItem {
    /// What kind of thing it is.
    pub kind: ExtractedKind,
    /// What to remember.
    pub text: String,
    /// The records that it came from.
    pub sources: Vec<Seq>,
    /// Who said it.
    pub speaker: Speaker,
}

/// Kinds of things worth remembering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum ExtractedKind {
    Decision,
    Fact,
    Preference,
    Attempt,
    Request,
    Discussion,
}

/// Who said a thing. Only what a person said can become a fact about that person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A person.
    User,
    /// The model.
    Assistant,
    /// A web page, a file or a command's output.
    Untrusted,
}

/// Pages were written: one record, however many pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PagesChanged {
    /// Why.
    pub reason: String,
    /// How far each extract stream had been read when this was decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extracts: Vec<Source>,
    /// The changes.
    pub pages: Vec<PageChange>,
}

/// A position in a session's extracts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The session.
    pub session: SessionId,
    /// The last extract that was read.
    pub through: Seq,
}

/// One page, before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageChange {
    /// The name of the page.
    pub page: String,
    /// Its text from now on; absent if the page was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}
