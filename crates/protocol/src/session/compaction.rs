use serde::{Deserialize, Serialize};

use crate::{CallId, Item, Seq};

/// A compaction began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactStart {
    /// Why.
    pub reason: String,
    /// What the summary should dwell on, if somebody said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}

/// Where an item came into the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The record that put it there.
    pub seq: Seq,
    /// The turn, from 1; 0 before the first.
    pub turn: u64,
    /// The step of the turn, from 1; 0 for what came before its first.
    pub step: u64,
    /// The record that has its words, if that is another one: an input is taken before it is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Seq>,
}

/// Something that a new epoch keeps of the context before it, as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Where it came into the context.
    #[serde(flatten)]
    pub place: Place,
    /// What it is.
    pub item: Item,
}

/// What a summary says, under its headings. Each list is one line an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// What all of it is for.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// What a person said that holds until they say otherwise, in their words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directives: Vec<String>,
    /// Constraints, in the words of whoever wrote the summary.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// What was decided, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// What is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    /// What is being done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_progress: Vec<String>,
    /// What comes next.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next_action: String,
    /// What can't go on, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// Files that matter, and what is in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Commands that were run, and what came of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// What stood under no heading.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// A message that the runtime composed for the new epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMessage {
    /// Its parts.
    pub content: Vec<TextContent>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextContent {
    /// Its words.
    pub text: String,
}

/// A compaction succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactDone {
    /// The epoch that it started.
    pub epoch: u64,
    /// How it was made.
    pub by: CompactedBy,
    /// Tokens before.
    pub before: u64,
    /// Tokens after.
    pub after: u64,
    /// The first record that it covers.
    pub from: Seq,
    /// The last one.
    pub through: Seq,
}

/// How a compaction was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactedBy {
    /// A model wrote a summary.
    Model,
    /// Oldest whole exchanges were dropped by rule.
    Rule,
}

/// A compaction failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactFailed {
    /// Why.
    pub reason: String,
    /// How many tokens the context had, if this counts as a failure: one that somebody cancelled does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The next request did not fit, and can't be made to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_needed: bool,
}

/// Old tool output was replaced by stubs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stubbed {
    /// The calls whose results are stubs from here on.
    pub calls: Vec<CallId>,
}
