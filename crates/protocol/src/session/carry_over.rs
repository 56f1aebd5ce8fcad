use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ActiveSkill, FileSeen, Outcome, SessionPermission, TaskNews};
use crate::{At, BlobRef, CallId, Cause, ClientRequest, Hash, Image, InputId, JoinMode, Sender, Seq, TaskId};

/// The state that a new epoch takes over, in addition to the fields of `EpochStarted`. Loading a session reads no
/// record from before its newest epoch, so all other state is lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// The open turn, between two of its steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<OpenTurn>,
    /// Inputs that were taken but not yet sent to the model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<PendingInput>,
    /// Texts of `add_context` orders that were taken while the turn was open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub added: Vec<AddedContext>,
    /// A requested turn without an input: `retry` or `continue`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<Outcome>,
    /// The partial answer of the last turn, if it was interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<String>,
    /// The file contents that the model has seen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<FileSeen>,
    /// Changed files, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The whole outputs of calls whose results are truncated in the context.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<CarriedOutput>,
    /// The skills in use, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<ActiveSkill>,
    /// What the records of tasks in `EpochStarted` do not say about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<CarriedTask>,
    /// The last model that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model that the user chose for this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_model: Option<String>,
    /// The token calibration of each model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counting: BTreeMap<String, CarriedCounting>,
    /// The provider's last rate-limit headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rate_limits: BTreeMap<String, String>,
    /// Codes of the one-time warnings that the user has got.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub warned: BTreeSet<String>,
    /// Steps with an answer in all epochs.
    pub answers: u64,
    /// Compactions so far, including this one.
    pub compactions: u64,
    /// Compactions since the last step with an answer, including this one.
    pub since_answer: u32,
    /// The last record that a compaction covers.
    pub covered_through: Seq,
    /// The turn whose request the last turn answered.
    pub asked_in: u64,
    /// The permission mode, and what the user always allows.
    #[serde(skip_serializing_if = "SessionPermission::is_default")]
    pub permission: SessionPermission,
}

/// The open turn, between two of its steps. The fields are those of the state's turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenTurn {
    pub number: u64,
    pub answers: u64,
    pub steps: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
    pub awaited_ms: u64,
    pub tokens: u64,
    pub cost_nano: u64,
    #[serde(skip_serializing_if = "Cause::is_turn")]
    pub cause: Cause,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_nano: Option<u64>,
    /// Soft limits that the user has agreed to pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub consents: Vec<String>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
}

/// An input that was taken but not yet sent to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingInput {
    pub id: InputId,
    pub mode: JoinMode,
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cancelled: bool,
    /// The `seq` of its record `input_taken`.
    #[serde(default)]
    pub taken: Seq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Box<ClientRequest>>,
    #[serde(default, skip_serializing_if = "Sender::is_person")]
    pub sender: Sender,
}

impl PendingInput {
    /// Whether it may be taken back. A cancelled one has its turn already, and a client of the OpenAI-compatible API waits for its own.
    pub fn can_be_withdrawn(&self) -> bool {
        !self.cancelled && self.client.is_none() && self.sender.can_withdraw()
    }
}

/// A text that waits for the next step of the open turn, or for its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddedContext {
    /// The `seq` of its record `order_taken`.
    pub taken: Seq,
    pub text: String,
}

/// The whole output of a call whose result is truncated in the context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedOutput {
    pub call: CallId,
    pub whole: BlobRef,
}

/// What the records of a task in `EpochStarted` do not say about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarriedTask {
    pub task_id: TaskId,
    /// The model needs no notification of its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unneeded: bool,
    /// The progress that the model has seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub news: Option<TaskNews>,
    /// Set if it seems to wait for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<TaskStall>,
    /// An order to end it was given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_to_end: bool,
}

/// A task that seems to wait for input: it is silent after what looks like a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStall {
    /// Bytes that it had printed.
    #[serde(rename = "printed")]
    pub printed_bytes: u64,
    /// The note to the model.
    pub text: String,
    /// The model has read the note.
    #[serde(rename = "is_told")]
    pub is_announced: bool,
}

/// The token calibration of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CarriedCounting {
    /// Pairs of estimated and counted tokens, the newest last.
    pub samples: Vec<(u64, u64)>,
    /// Tokens of the last prompt that the server truncated silently, as the server counted them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_at: Option<u64>,
    /// The assumed context window at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_window: Option<u64>,
    /// The size of a prompt that was refused as too long, by the runtime's own count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_at: Option<u64>,
}
