//! The kinds of record in `session/<id>`. Their names are fixed; their fields may grow.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `mod` | creation, epochs, inputs and orders, turns, steps, attempts, usage |
//! | `calls` | tool calls and their effects |
//! | `tasks`, `questions` | background tasks and notifications; questions to a person |
//! | `permission` | the permission mode, and what the user always allows |
//! | `compaction` | compactions, summaries, stubs |
//! | `environment` | where the session works, as the model is told |
//! | `carry_over` | the state that a new epoch takes over from the previous one |
//! | `import` | the mark of an imported session |
//! | `unread_inputs` | the inputs that can be taken back, for readers of the records |

mod calls;
mod carry_over;
mod compaction;
mod environment;
mod import;
mod permission;
mod questions;
mod tasks;
mod unread_inputs;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{
    AttemptId, BlobRef, Cause, ClientRequest, Image, Input, InputId, Item, JoinMode, Order, ParentLink,
    Sender, Seq, SessionId,
};

pub use calls::{
    ActiveSkill, Effect, FileChange, FileSeen, FileWrite, SkillShown, ToolFinished, ToolStarted, ToolTask,
};
pub use carry_over::{
    AddedContext, Carried, CarriedCounting, CarriedOutput, CarriedTask, OpenTurn, PendingInput, TaskStall,
};
pub use compaction::{
    CompactDone, CompactFailed, CompactStart, CompactedBy, FIRST_REQUEST_MARK, FIRST_REQUEST_PIN, Kept,
    MEMORY_MARK, NOTE_MARK, Place, QUOTING_HEADINGS, SHORTENED_MARK, SKILL_MARK, SKILLS_MARK, SUMMARY_MARK,
    Stubbed, Summary, SystemMessage, TODO_MARK, TextContent,
};
pub use environment::{Environment, GitState};
pub use import::Imported;
pub use permission::{ApprovalGrant, ModeChanged, PermissionMode, SessionPermission, UnknownMode};
pub use questions::{Answer, Answered, AnsweredBy, Question, QuestionKind};
pub use tasks::{EndedTask, Note, Notification, TaskEnded, TaskNews, TaskStarted, TaskStatus};
pub use unread_inputs::UnreadInputs;

record_kinds! {
    /// What happens in a session, in the order in which it was committed.
    SessionRecord {
        /// The first record of every session.
        "session_created" => SessionCreated(SessionCreated),
        /// A new context begins. The record contains everything that outlives an epoch.
        "epoch_started" => EpochStarted(EpochStarted),
        "input_taken" => InputTaken(InputTaken),
        "order_taken" => OrderTaken(OrderTaken),
        "turn_started" => TurnStarted(TurnStarted),
        "step_started" => StepStarted(StepStarted),
        /// A model call is about to start.
        "attempt_started" => AttemptStarted(AttemptStarted),
        /// A block of an answer is complete. It counts only if `attempt_ended` keeps it.
        "block" => Block(Block),
        /// Text of a block that is not complete yet.
        "checkpoint" => Checkpoint(Checkpoint),
        /// A model call ended.
        "attempt_ended" => AttemptEnded(AttemptEnded),
        "usage" => Usage(Usage),
        /// A tool is about to run.
        "tool_started" => ToolStarted(ToolStarted),
        /// A call goes on at a server, as a task that can be asked about.
        "tool_task" => ToolTask(ToolTask),
        "tool_finished" => ToolFinished(ToolFinished),
        /// A command continues in the background.
        "task_started" => TaskStarted(TaskStarted),
        "task_ended" => TaskEnded(TaskEnded),
        /// The model is notified of the end of a task.
        "notification" => Notification(Notification),
        /// A message of the runtime to the model.
        "note" => Note(Note),
        "question" => Question(Question),
        "answered" => Answered(Answered),
        /// The session was imported from a file.
        "imported" => Imported(Imported),
        "mode_changed" => ModeChanged(ModeChanged),
        "compact_start" => CompactStart(CompactStart),
        /// A message that the runtime composed for the new epoch.
        "system_message" => SystemMessage(SystemMessage),
        "compact_done" => CompactDone(CompactDone),
        /// A compaction failed, and the context is unchanged.
        "compact_failed" => CompactFailed(CompactFailed),
        /// Old tool output was replaced by stubs.
        "stubbed" => Stubbed(Stubbed),
        "model_changed" => ModelChanged(ModelChanged),
        /// A warning for the user.
        "warning" => Warning(Warning),
        "turn_ended" => TurnEnded(TurnEnded),
    }
}

/// The first record of every session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCreated {
    pub id: SessionId,
    /// The key at its creation.
    pub key: String,
    /// Its work folder, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_dir: Option<String>,
    /// Where it was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// The session that started it as a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Box<ParentLink>>,
    /// The version of the program that created it.
    pub version: String,
}

/// The record at which a session was forked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The session that it was forked from.
    pub session: SessionId,
    /// The last record that both sessions share.
    pub seq: Seq,
}

/// A new context begins. Loading a session starts at its newest record of this kind, so the record contains
/// everything that outlives an epoch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochStarted {
    /// The number of the epoch, from 1.
    pub epoch: u64,
    pub reason: EpochReason,
    pub system: BlobRef,
    pub tools: BlobRef,
    /// How many turns had started before this epoch.
    pub turns: u64,
    /// The last record that was taken from the inbox.
    pub inbox_through: Seq,
    /// Texts that must stay in the context word for word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<Pin>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub todo: Vec<Todo>,
    /// The first record of an earlier epoch whose context this one continues. Loading starts there. Then only the
    /// system prompt and the tools are new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folds_from: Option<Seq>,
    /// Tasks that were running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskStarted>,
    /// Ended tasks that are still listed, or whose end the model does not know yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedTask>,
    /// Questions that were open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<Question>,
    /// The first record of the previous epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Seq>,
    /// The summary of everything before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Box<Summary>>,
    /// Items from the previous context that are kept unchanged. They follow the texts of the `system_message`
    /// records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Kept>,
    /// The other state that is carried over. Absent if this epoch continues the context of the previous one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carried: Option<Box<Carried>>,
    /// The surroundings of the session at its beginning, which the system prompt names. Absent in epochs of older
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Box<Environment>>,
}

impl EpochStarted {
    /// An epoch that carries nothing over.
    pub fn new(epoch: u64, reason: EpochReason, system: BlobRef, tools: BlobRef) -> Self {
        let (pins, todo, tasks, ended, questions) = (vec![], vec![], vec![], vec![], vec![]);
        let (turns, inbox_through, folds_from) = (0, 0, None);
        let (previous, summary, kept, carried, environment) = (None, None, vec![], None, None);
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
            environment,
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
    /// Old tool output was replaced by stubs.
    Stubbed,
    /// The system prompt or the tools changed.
    Changed,
    /// The turns of heartbeats that found nothing to do were dropped.
    QuietDropped,
}

/// A text that is never summarised.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Its purpose, such as `first_request` or `file_changed`.
    pub name: String,
    pub text: String,
}

/// One line of the todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Todo {
    pub text: String,
    pub status: TodoStatus,
}

/// The progress of a todo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum TodoStatus {
    Pending,
    InProgress,
    Done,
}

/// An input was taken from the inbox. The record repeats its text, because a context is built only from the session's
/// own stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputTaken {
    pub id: InputId,
    /// The input's position in the inbox.
    pub inbox_through: Seq,
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    pub mode: JoinMode,
    /// As in the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Box<ClientRequest>>,
    /// As in the input.
    #[serde(default, skip_serializing_if = "Sender::is_person")]
    pub sender: Sender,
}

impl InputTaken {
    /// Takes the input at this position of the inbox.
    pub fn of(input: Input, inbox_through: Seq) -> Self {
        let Input { id, text, images, mode, client, sender } = input;
        Self { id, inbox_through, text, images, mode, client, sender }
    }
}

/// An order was taken from the inbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrderTaken {
    /// The order's position in the inbox.
    pub inbox_through: Seq,
    pub order: Order,
}

/// A turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnStarted {
    /// The turn, counted from 1.
    pub turn: u64,
    /// Why it began. Unset in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

impl TurnStarted {
    /// A turn whose inputs say why it began.
    pub fn new(turn: u64) -> Self {
        Self { turn, cause: None }
    }
}

/// A step of a turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStarted {
    /// The step, counted from 1 within its turn.
    pub step: u64,
    /// Inputs that would join this step but do not fit into the context. They wait for the next turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub later: Vec<InputId>,
}

impl StepStarted {
    /// A step that all waiting inputs join.
    pub fn new(step: u64) -> Self {
        Self { step, later: vec![] }
    }
}

/// A model call is about to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptStarted {
    pub attempt: AttemptId,
    /// The model, as `provider/model`.
    pub model: String,
}

/// A block of an answer is complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    pub attempt: AttemptId,
    /// Its position in the answer, from 0.
    pub index: u32,
    pub item: Item,
}

/// Text of a block that is not complete yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    pub attempt: AttemptId,
    /// The text since the previous checkpoint.
    pub text: String,
}

/// A model call ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptEnded {
    pub attempt: AttemptId,
    /// How many of its blocks count, from the first.
    pub kept: u32,
    /// The provider's stop reason, if the answer reached its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The answer was truncated at the output limit, and continues in the next step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goes_on: bool,
    /// The prompt's tokens by the runtime's own count, if the prompt was too long for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_long: Option<u64>,
}

impl AttemptEnded {
    /// The error of an attempt that its process left open. The next process closes it.
    pub const INTERRUPTED: &str = "interrupted";

    /// Whether the process that made the attempt died or stopped in the middle of it. Watchers may have seen more of
    /// its text than is on record.
    pub fn is_interrupted(&self) -> bool {
        self.error.as_deref() == Some(Self::INTERRUPTED)
    }
}

/// The usage of an attempt. An unknown value is absent, not zero.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub attempt: AttemptId,
    /// Why the model was called. Absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The model that was called. Absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `summary`, `extract` or `consolidate`. Absent for a step of a turn. Only a step's usage tells the size of the
    /// context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// Tokens sent, including cached ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<u64>,
    /// Tokens received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<u64>,
    /// Tokens that the provider read from its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<u64>,
    /// Tokens that the provider wrote to its cache, if it charges for that separately. `input` includes them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_written: Option<u64>,
    /// US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The runtime's estimate of the prompt's tokens before it was sent, without calibration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<u64>,
    /// The model's context window, as the runtime assumed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The parts of the prompt, as the runtime estimated them before it was sent, without calibration. Only for a step of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<PromptParts>,
    /// The provider's rate-limit headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, String>,
}

impl Usage {
    /// Tokens of the context that a step sent: as the provider counted them, else as the runtime estimated them. `None` for calls
    /// that don't send the context, such as a summary.
    pub fn context_tokens(&self) -> Option<u64> {
        self.input.or(self.estimated).filter(|_| self.purpose.is_none())
    }
}

/// Tokens of each part of a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[allow(missing_docs, reason = "the words say it")]
pub struct PromptParts {
    #[serde(default)]
    pub system: u64,
    #[serde(default)]
    pub tools: u64,
    #[serde(default)]
    pub memory: u64,
    #[serde(default)]
    pub summary: u64,
    #[serde(default)]
    pub pins: u64,
    #[serde(default)]
    pub turns: u64,
    #[serde(default)]
    pub tool_output: u64,
}

impl Usage {
    /// A usage without values.
    pub fn of(attempt: AttemptId) -> Self {
        Self {
            attempt,
            cause: None,
            model: None,
            purpose: None,
            input: None,
            output: None,
            cache_written: None,
            cached: None,
            cost: None,
            estimated: None,
            window: None,
            parts: None,
            limits: BTreeMap::new(),
        }
    }
}

/// Another model answers from here on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChanged {
    pub from: String,
    pub to: String,
    pub reason: String,
    /// The user chose it for this session, which keeps it: a fallback or another config does not end the choice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub chosen: bool,
}

/// A warning for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// The code, for programs.
    pub code: String,
    /// The message, for people.
    pub text: String,
    /// The task that it is about, with its progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskNews>,
}

impl Warning {
    /// A warning that is not about a task.
    pub fn new(code: impl Into<String>, text: impl Into<String>) -> Self {
        Self { code: code.into(), text: text.into(), task: None }
    }
}

/// A turn is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnEnded {
    pub turn: u64,
    pub outcome: Outcome,
    /// The limit that was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// The final answer.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The error's code, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The last record that was taken from the inbox, if no taken input still waits for its turn. Then the session is
    /// idle until the inbox has more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inbox_through: Option<Seq>,
}

impl TurnEnded {
    /// The code of a turn whose answer reached the limit of tokens that its client had set.
    pub const MAX_OUTPUT_TOKENS: &'static str = "max_output_tokens";
    /// The code of a quiet turn: a heartbeat that only looked and found nothing to do. The next epoch drops it from the context,
    /// and memory passes over it.
    pub const NOTHING_TO_DO: &'static str = "nothing_to_do";

    pub fn is_quiet(&self) -> bool {
        self.outcome == Outcome::Completed && self.code.as_deref() == Some(Self::NOTHING_TO_DO)
    }
}

/// What the agent answers if a heartbeat finds nothing to do.
pub const NOTHING_TO_DO: &str = "nothing to do";

/// Whether an answer says only [`NOTHING_TO_DO`], in any case and with any punctuation.
pub fn says_nothing_to_do(answer: &str) -> bool {
    let words = answer.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ").eq_ignore_ascii_case(NOTHING_TO_DO)
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum Limit {
    Steps,
    Tokens,
    Cost,
    Time,
    Loop,
}
