use serde::{Deserialize, Serialize};

use crate::{CallId, Item, Seq};

/// A compaction began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactStart {
    pub reason: String,
    /// What the summary should focus on, if the user said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
}

/// Where and when an item entered the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The record that added it.
    pub seq: Seq,
    /// The turn, from 1. 0 is before the first turn.
    pub turn: u64,
    /// The step of the turn, from 1. 0 is before its first step.
    pub step: u64,
    /// The record with its text, if that is another one: an input is taken from the inbox before it enters the
    /// context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Seq>,
    /// The text is an input that no person wrote ([`crate::Sender`]).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_agent: bool,
}

impl Place {
    /// The place of an item that its own record brought.
    pub fn new(seq: Seq, turn: u64, step: u64) -> Self {
        Self { seq, turn, step, said: None, by_agent: false }
    }
}

/// An item of the context that a new epoch keeps unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    #[serde(flatten)]
    pub place: Place,
    pub item: Item,
}

/// A summary of the context, one field for each of its headings. Each entry of a list is one line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub goal: String,
    /// Standing instructions of the user, in the user's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub directives: Vec<String>,
    /// Constraints, in the words of the summary's author.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// Decisions, each with its reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_progress: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next_action: String,
    /// Blocked work, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// Relevant files, each with what is in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Commands that were run, each with its result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Text without a heading.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

impl Summary {
    /// Every text in it: the goal, the next action and the notes, then each entry of the lists.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let Self {
            goal,
            directives,
            constraints,
            decisions,
            done,
            in_progress,
            next_action,
            blocked,
            files,
            commands,
            notes,
        } = self;
        let lists = [directives, constraints, decisions, done, in_progress, blocked, files, commands];
        [goal, next_action, notes].into_iter().chain(lists.into_iter().flatten()).map(String::as_str)
    }
}

/// How a note of the runtime begins. These marks tell the runtime's own messages from other texts and stand in records,
/// so they never change.
pub const NOTE_MARK: &str = "[runtime note]";
/// The first line of a message with a summary.
pub const SUMMARY_MARK: &str = "[Compacted context summary]";
/// The first line of a todo list.
pub const TODO_MARK: &str = "[Session todo snapshot]";
/// The first line of the memory of earlier sessions.
pub const MEMORY_MARK: &str = "[Memory]";
/// The first line of the list of skills.
pub const SKILLS_MARK: &str = "[Skills]";
/// What the heading of a skill in use begins with.
pub const SKILL_MARK: &str = "[Skill in use: ";
/// What the heading of the pinned first request begins with.
pub const FIRST_REQUEST_MARK: &str = "[First request of this session";
/// The name of the [`Pin`](crate::Pin) with the first request.
pub const FIRST_REQUEST_PIN: &str = "first_request";
/// How the headings begin under which a summary quotes its sources.
pub const QUOTING_HEADINGS: [&str; 2] = ["# Directives", "# Constraints"];
/// Marks a truncated text in a summary.
pub const SHORTENED_MARK: &str = "[shortened]";

/// A message that the runtime composed for the new epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SystemMessage {
    pub content: Vec<TextContent>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TextContent {
    pub text: String,
}

/// A compaction succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactDone {
    /// The new epoch.
    pub epoch: u64,
    pub by: CompactedBy,
    pub before: u64,
    pub after: u64,
    /// The first record that it covers.
    pub from: Seq,
    /// The last record that it covers.
    pub through: Seq,
}

/// How a compaction was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CompactedBy {
    /// A model wrote a summary.
    Model,
    /// A rule dropped the oldest whole exchanges.
    Rule,
}

/// A compaction failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompactFailed {
    pub reason: String,
    /// Tokens of the context. Absent if the compaction was cancelled, which does not count as a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The next request does not fit into the window without a compaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub was_needed: bool,
}

/// Old tool output was replaced by stubs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stubbed {
    /// The calls whose results are stubs from now on.
    pub calls: Vec<CallId>,
}
