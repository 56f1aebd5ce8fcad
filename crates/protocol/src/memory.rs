use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{Seq, SessionId, Usage};

record_kinds! {
    /// The records of `extract/<session>`.
    ExtractRecord {
        "extracted" => Extracted(Extracted),
        "extraction_failed" => ExtractionFailed(ExtractionFailed),
    }
}

record_kinds! {
    /// The records of `memory/<scope>`.
    MemoryRecord {
        "pages_changed" => PagesChanged(PagesChanged),
    }
}

/// What was worth remembering in a span of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Extracted {
    /// The memory scope.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The first record of the span.
    pub from: Seq,
    /// The last record of the span. The next span starts after it.
    pub through: Seq,
    /// The extracted items; empty if nothing was worth remembering.
    pub items: Vec<ExtractedItem>,
    /// Items of the model that were rejected, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The cost of the model calls, with that of failed ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// The model gave no usable answer about a span. The span is kept, and the model is asked about it again only after enough
/// has come since.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExtractionFailed {
    /// The first record of the span.
    pub from: Seq,
    /// The last record of the span.
    pub through: Seq,
    /// The cost of the model calls, with that of failed ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// One thing worth remembering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractedItem {
    pub kind: ExtractedKind,
    pub text: String,
    /// The records that it came from.
    pub sources: Vec<Seq>,
    pub speaker: Speaker,
    /// The user's words: a whole input, or whole sentences of it, from one of the sources. `text` is the model's
    /// paraphrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
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

/// Who said something. Only what the user said can become a fact about the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    User,
    Assistant,
    /// A web page, a file or a command's output.
    Untrusted,
}

/// Pages were written by a consolidation, a person or an undo: one record, however many pages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PagesChanged {
    #[serde(default, skip_serializing_if = "ChangedBy::is_usual")]
    pub by: ChangedBy,
    pub reason: String,
    /// How far each extract stream was read for this change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extracts: Vec<Source>,
    /// The changes; empty if the extracts change nothing.
    pub pages: Vec<PageChange>,
    /// The change that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Seq>,
    /// Changes of the model that were rejected, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The cost of the model calls, with that of failed ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// Who wrote a version of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedBy {
    /// A consolidation, from extracts.
    #[default]
    Consolidation,
    /// A person, by hand. A consolidation must respect it.
    Person,
    /// A user asked the agent to remember something.
    Note,
    /// A person undid a change.
    Undo,
}

impl ChangedBy {
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}

/// A position in a session's extracts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    pub session: SessionId,
    /// The last extract that was read.
    pub through: Seq,
}

/// The new version of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageChange {
    pub page: String,
    /// Its new text; absent if the page was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it was made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ItemSource>,
    /// What the model left out on purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

/// The place of an extracted item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ItemSource {
    pub session: SessionId,
    /// The record in its extract stream.
    pub seq: Seq,
    /// Its number there, from 0.
    pub item: usize,
}
