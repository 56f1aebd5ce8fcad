use serde::{Deserialize, Serialize};

use crate::{CallId, Seq};

/// A compaction began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactStart {
    /// Why.
    pub reason: String,
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
}

/// Old tool output was replaced by stubs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stubbed {
    /// The calls whose results are stubs from here on.
    pub calls: Vec<CallId>,
}
