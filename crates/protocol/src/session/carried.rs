use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{FileSeen, Outcome, TaskNews};
use crate::{At, BlobRef, CallId, Hash, Image, InputId, JoinMode, Seq, TaskId};

/// What outlives an epoch besides what it has fields for. Whoever loads the session reads nothing from before the epoch, so
/// whatever is not here, or there, is forgotten.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// The turn that is open, between two of its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<OpenTurn>,
    /// Inputs that were taken and that the model has not seen yet.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingInput>,
    /// A turn that was asked for without an input: `retry` or `continue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    /// How the last turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<Outcome>,
    /// What there was of the answer that the last turn did not get to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<String>,
    /// What the model knows of files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<FileSeen>,
    /// The files that were changed, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Outputs of which the context has only head and tail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<CarriedOutput>,
    /// What is known of the tasks besides that they run or have ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<CarriedTask>,
    /// The model that was asked last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How each model counts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counting: BTreeMap<String, CarriedCounting>,
    /// What the provider said last about how much more it takes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rate_limits: BTreeMap<String, String>,
    /// The codes of warnings that are given once.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub warned: BTreeSet<String>,
    /// How many steps have come to their answer in all epochs, and how many compactions there were with this one.
    pub answers: u64,
    #[allow(missing_docs, reason = "the line above says it")]
    pub compactions: u64,
    /// How many compactions there were since the last step that came to its answer, with this one.
    pub since_answer: u32,
    /// The last record that a compaction covers.
    pub covered_through: Seq,
    /// The turn in which that was asked which the last turn was to answer.
    pub asked_in: u64,
}

/// A turn that is open, between two of its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[allow(missing_docs, reason = "they are the fields of the state's turn of the same names, which says it")]
pub struct OpenTurn {
    pub number: u64,
    pub answers: u64,
    pub steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
    pub awaited_ms: u64,
    pub tokens: u64,
    pub cost_nano: u64,
    pub hurried: u64,
    pub goes_on: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub carried: String,
    pub cuts: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<String>,
    pub answered: bool,
    pub called: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    pub too_long: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<Hash>,
}

/// An input that was taken and that the model has not seen yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingInput {
    /// The input.
    pub id: InputId,
    /// What it asked for.
    pub mode: JoinMode,
    /// Its words.
    pub text: String,
    /// Pictures that came with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Somebody does not want it to be worked on any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// The record with which it was taken.
    #[serde(default)]
    pub taken: Seq,
}

/// The whole of an output of which the context has only head and tail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedOutput {
    /// The call.
    pub call: CallId,
    /// All of it.
    pub whole: BlobRef,
}

/// What is known of a task besides that it runs or has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedTask {
    /// The task.
    pub task_id: TaskId,
    /// Nobody needs to be told of its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unneeded: bool,
    /// How far the model knows what it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<TaskNews>,
    /// It seems to wait for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<CarriedStall>,
    /// Somebody wants it to end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_to_end: bool,
}

/// A task that seems to wait for input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedStall {
    /// How much it had printed.
    pub printed: u64,
    /// What is said about that.
    pub text: String,
    /// The model was told.
    pub is_told: bool,
}

/// What is known about how a model counts tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CarriedCounting {
    /// Estimated and counted, the newest last.
    pub samples: Vec<(u64, u64)>,
    /// So much of the last prompt was read that its server cut without a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_at: Option<u64>,
    /// How large the context was taken to be then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_window: Option<u64>,
    /// So many tokens were too many for it, by our own count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_at: Option<u64>,
}
