use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{Seq, SessionId, Usage};

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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Extracted {
    /// The memory that it belongs to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub scope: String,
    /// The first record of the span.
    pub from: Seq,
    /// The last one. The next span starts after it.
    pub through: Seq,
    /// What was found; nothing is a success too.
    pub items: Vec<ExtractedItem>,
    /// What the model wrote and was not taken, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What the calls cost, those that failed before included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
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
    /// What the user said, word for word: a whole input, or whole sentences of it, out of one of the sources. `text` is the model's paraphrase.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PagesChanged {
    /// Who wrote them.
    #[serde(default, skip_serializing_if = "ChangedBy::is_usual")]
    pub by: ChangedBy,
    /// Why.
    pub reason: String,
    /// How far each extract stream had been read when this was decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extracts: Vec<Source>,
    /// The changes; none, if what was read changes nothing.
    pub pages: Vec<PageChange>,
    /// The change that this one takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<Seq>,
    /// What the model wrote and was not taken, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What the calls cost, those that failed before included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub usage: Vec<Usage>,
}

/// Who wrote a version of a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedBy {
    /// The machine, from extracts.
    #[default]
    Consolidation,
    /// A person, by hand. It wins over what the machine writes.
    Person,
    /// Somebody asked for something to be remembered.
    Note,
    /// A person took a change back.
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
    /// The session.
    pub session: SessionId,
    /// The last extract that was read.
    pub through: Seq,
}

/// One page from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageChange {
    /// The name of the page.
    pub page: String,
    /// Its text from now on; absent if the page was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Why this page.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it was made from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ItemSource>,
    /// What was left out on purpose.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
}

/// An extracted item, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ItemSource {
    /// The session.
    pub session: SessionId,
    /// The record in its extract stream.
    pub seq: Seq,
    /// Its number there, from 0.
    pub item: usize,
}
