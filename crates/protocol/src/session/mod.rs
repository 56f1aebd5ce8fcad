//! The kinds of record in `session/<id>`. Their names are settled; their fields grow with the features that
//! write them.

mod calls;
mod carried;
mod compaction;
mod import;
mod questions;
mod tasks;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{AttemptId, BlobRef, Image, InputId, Item, JoinMode, Order, Seq, SessionId};

pub use calls::{Effect, FileSeen, FileWrite, ToolFinished, ToolStarted};
pub use carried::{
    Carried, CarriedCounting, CarriedOutput, CarriedStall, CarriedTask, OpenTurn, WaitingInput,
};
pub use compaction::{
    CompactDone, CompactFailed, CompactStart, CompactedBy, Kept, Place, Stubbed, Summary, SystemMessage,
    TextContent,
};
pub use import::Imported;
pub use questions::{Answered, Question};
pub use tasks::{EndedTask, Note, Notification, TaskEnded, TaskNews, TaskStarted, TaskStatus};

record_kinds! {
    /// What happens in a session, in the order in which it was committed.
    SessionRecord {
        /// The first record of every session.
        "session_created" => SessionCreated(SessionCreated),
        /// The context begins anew; everything that outlives an epoch is carried here.
        "epoch_started" => EpochStarted(EpochStarted),
        /// An input was taken from the inbox.
        "input_taken" => InputTaken(InputTaken),
        /// An order was taken from the inbox.
        "order_taken" => OrderTaken(OrderTaken),
        /// A turn began.
        "turn_started" => TurnStarted(TurnStarted),
        /// A step of a turn began.
        "step_started" => StepStarted(StepStarted),
        /// A model call is about to be tried.
        "attempt_started" => AttemptStarted(AttemptStarted),
        /// A block of an answer is complete. It counts only through `attempt_ended`.
        "block" => Block(Block),
        /// Text of a block that is not complete yet.
        "checkpoint" => Checkpoint(Checkpoint),
        /// A try at a model call is over.
        "attempt_ended" => AttemptEnded(AttemptEnded),
        /// What an attempt cost.
        "usage" => Usage(Usage),
        /// A tool is about to run.
        "tool_started" => ToolStarted(ToolStarted),
        /// A tool ran.
        "tool_finished" => ToolFinished(ToolFinished),
        /// A command goes on in the background.
        "task_started" => TaskStarted(TaskStarted),
        /// A task is over.
        "task_ended" => TaskEnded(TaskEnded),
        /// The model is told of the end of a task.
        "notification" => Notification(Notification),
        /// The runtime tells the model something.
        "note" => Note(Note),
        /// A person is asked something.
        "question" => Question(Question),
        /// A question was settled.
        "answered" => Answered(Answered),
        /// The session came from a file of another home.
        "imported" => Imported(Imported),
        /// A compaction began.
        "compact_start" => CompactStart(CompactStart),
        /// A message that the runtime composed for the new epoch.
        "system_message" => SystemMessage(SystemMessage),
        /// A compaction succeeded.
        "compact_done" => CompactDone(CompactDone),
        /// A compaction failed, and the context is as it was.
        "compact_failed" => CompactFailed(CompactFailed),
        /// Old tool output was replaced by stubs.
        "stubbed" => Stubbed(Stubbed),
        /// Another model answers from here on.
        "model_changed" => ModelChanged(ModelChanged),
        /// Something that a person should know.
        "warning" => Warning(Warning),
        /// A turn is over.
        "turn_ended" => TurnEnded(TurnEnded),
    }
}

/// The first record of every session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCreated {
    /// The session's id, which never changes.
    pub id: SessionId,
    /// The key that it was created under.
    pub key: String,
    /// The folder that it works in, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_dir: Option<String>,
    /// Where it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The version of the program that created it.
    pub version: String,
}

/// The record at which a session was forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The session that it was forked from.
    pub session: SessionId,
    /// The last record that they share.
    pub seq: Seq,
}

/// The context begins anew. Whoever loads a session reads from its newest record of this kind and nothing before
/// it, so it carries all that outlives an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochStarted {
    /// The number of the epoch, from 1.
    pub epoch: u64,
    /// Why a new one began.
    pub reason: EpochReason,
    /// The system prompt.
    pub system: BlobRef,
    /// The tools' schemas.
    pub tools: BlobRef,
    /// How many turns had started before.
    pub turns: u64,
    /// How far the inbox had been taken.
    pub inbox_through: Seq,
    /// What must stay in the context word for word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<Pin>,
    /// The todo list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<Todo>,
    /// Where to begin reading, if this epoch goes on with the context of an earlier one: the record with which that one
    /// started. Only the system prompt and the tools are new then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds_from: Option<Seq>,
    /// Tasks that were running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskStarted>,
    /// Tasks that had ended and are still listed, or of which the model had not been told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedTask>,
    /// Questions that were open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The record with which the epoch before began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Seq>,
    /// What the summary of everything before says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Box<Summary>>,
    /// What stays of the context before, as it was. It stands after what the `system_message` records say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// What else outlives the epoch before, where this one does not go on with its context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Box<Carried>>,
}

impl EpochStarted {
    /// An epoch that carries nothing over.
    pub fn new(epoch: u64, reason: EpochReason, system: BlobRef, tools: BlobRef) -> Self {
        let (pins, todo, tasks, ended, questions) = (vec![], vec![], vec![], vec![], vec![]);
        let (turns, inbox_through, folds_from) = (0, 0, None);
        let (previous, summary, kept, carried) = (None, None, vec![], None);
        Self {
            epoch,
            reason,
            system,
            tools,
            turns,
            inbox_through,
            pins,
            todo,
            folds_from,
            tasks,
            ended,
            questions,
            previous,
            summary,
            kept,
            carried,
        }
    }
}

/// Why an epoch began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EpochReason {
    /// The session began.
    Created,
    /// The context was compacted.
    Compacted,
    /// Old tool output became stubs.
    Stubbed,
    /// The system prompt or the tools changed.
    Changed,
}

/// Something that is never summarised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// What it is, such as `first_request` or `file_changed`.
    pub name: String,
    /// Its words.
    pub text: String,
}

/// One line of the todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    /// What is to be done.
    pub text: String,
    /// How far it is.
    pub status: TodoStatus,
}

/// How far a todo is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Done,
}

/// An input was taken from the inbox. It holds the words too: a context is made of the session's stream alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputTaken {
    /// The input.
    pub id: InputId,
    /// How far the inbox is taken with this record; the input itself stands there.
    pub inbox_through: Seq,
    /// The words.
    pub text: String,
    /// Pictures that came with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// What it asked for.
    pub mode: JoinMode,
}

/// An order was taken from the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderTaken {
    /// How far the inbox is taken with this record.
    pub inbox_through: Seq,
    /// The order.
    pub order: Order,
}

/// A turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStarted {
    /// The turn, counted from 1.
    pub turn: u64,
}

/// A step of a turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStarted {
    /// The step, counted from 1 within its turn.
    pub step: u64,
    /// Inputs that would join, and that there is no room for: they wait for the next turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<InputId>,
}

impl StepStarted {
    /// A step that everything joins which waits for it.
    pub fn new(step: u64) -> Self {
        Self { step, later: vec![] }
    }
}

/// A model call is about to be tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptStarted {
    /// The attempt.
    pub attempt: AttemptId,
    /// The model, as `provider/model`.
    pub model: String,
}

/// A block of an answer is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The attempt that it belongs to.
    pub attempt: AttemptId,
    /// Its place in the answer, from 0.
    pub index: u32,
    /// What it holds.
    pub item: Item,
}

/// Text of a block that is not complete yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The attempt that it belongs to.
    pub attempt: AttemptId,
    /// What came since the checkpoint before.
    pub text: String,
}

/// A try at a model call is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptEnded {
    /// The attempt.
    pub attempt: AttemptId,
    /// How many of its blocks count: the first so many.
    pub kept: u32,
    /// Why the model stopped, in the provider's word, if it got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The answer was cut at its greatest length, and goes on in the next step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
    /// The prompt was too long for the model: so many tokens, by our own count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_long: Option<u64>,
}

/// What an attempt cost. Unknown is absent, not zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// The attempt.
    pub attempt: AttemptId,
    /// What it was for, if it was no step of a turn: `summary`, `extract` or `consolidate`. It says nothing about the size of the context then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Tokens sent, the cached ones too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens that the provider had in its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Tokens that the provider put into its cache, where that has a price of its own. They are among the tokens sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<u64>,
    /// Money, in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// What the prompt was estimated at before it was sent, uncorrected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<u64>,
    /// How large the context was taken to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What the provider says about how much more it takes, as it says it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

impl Usage {
    /// What an attempt cost of which nothing is known yet.
    pub fn of(attempt: AttemptId) -> Self {
        Self {
            attempt,
            purpose: None,
            input: None,
            output: None,
            cache_written: None,
            cached: None,
            cost: None,
            estimated: None,
            window: None,
            limits: BTreeMap::new(),
        }
    }
}

/// Another model answers from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChanged {
    /// The one before.
    pub from: String,
    /// The one from here on.
    pub to: String,
    /// Why.
    pub reason: String,
}

/// Something that a person should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// For programs.
    pub code: String,
    /// For people.
    pub text: String,
    /// The task that it is about, and how far that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskNews>,
}

impl Warning {
    /// A warning that is about no task.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Self { code: code.into(), text: text.into(), task: None }
    }
}

/// A turn is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnded {
    /// The turn.
    pub turn: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Which limit was reached, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// The final answer.
    pub text: String,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The same, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How far the inbox is taken, if nothing that was taken still waits: the session has nothing to do until more is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_through: Option<Seq>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum Outcome {
    Completed,
    Cancelled,
    Failed,
    Limit,
}

/// Which limit ended a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum Limit {
    Steps,
    Tokens,
    Cost,
    Time,
    Loop,
}
