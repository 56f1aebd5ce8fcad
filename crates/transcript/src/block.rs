//! Blocks: what a transcript consists of, whatever it is rendered to.

use std::time::Duration;

use longhaul_protocol::{
    At, CallId, Cause, CompactedBy, Effect, Limit, OrderKind, Outcome, PermissionMode, QuestionId,
    QuestionKind, Role, Seq, TaskId, TaskStatus,
};

use serde::Serialize;

use crate::cost::SessionCost;

/// Counts the blocks of one transcript from 1. It is not stored: another transcript of the same session may count differently.
pub type BlockId = u64;

/// One thing that happens in a session and that people may want to see.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Block {
    pub id: BlockId,
    /// The record that started the block, if it is on record.
    pub seq: Option<Seq>,
    /// The turn that ran when the block started. For an input, the turn in which the model gets it.
    pub turn: Option<u64>,
    pub started_at: At,
    pub ended_at: Option<At>,
    pub state: BlockState,
    pub content: BlockContent,
}

impl Block {
    /// How long the block ran, or has run until `now`. Zero if the clock went backwards.
    pub fn elapsed(&self, now: At) -> Duration {
        Duration::from_millis(milliseconds_between(self.started_at, self.ended_at.unwrap_or(now)))
    }
}

pub(crate) fn milliseconds_between(from: At, to: At) -> u64 {
    u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0)
}

/// How far a block has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BlockState {
    Running,
    Finished,
    Failed,
    /// The attempt broke off, and the part of the message that arrived counts.
    Truncated,
    /// The attempt broke off, and the message does not count. The model is asked again.
    Discarded,
    /// The block was cut short by something else: the end of the turn, a call, a crash.
    Interrupted,
}

/// What a block is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum BlockContent {
    TurnStart {
        /// What began the turn: a person, a schedule, the end of a task, the agent above. None if an older version recorded it.
        cause: Option<Cause>,
    },
    /// What a user or a program said. Only records have the text.
    Input {
        text: String,
        images: usize,
        /// Who sent it, unless a person did: `schedule nightly`.
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        /// Where to fork the session before this input: the end of the last turn before the turn in which the model gets it. None if
        /// that turn is the first.
        fork_at: Option<Seq>,
    },
    Message {
        role: Role,
        text: String,
    },
    Reasoning {
        text: String,
    },
    Call(Call),
    /// A background command. The description is known if the transcript saw the task start.
    Task {
        task: TaskId,
        description: Option<String>,
        status: TaskStatus,
        exit_code: Option<i32>,
    },
    /// A question to the user. `diff` is what would change. The answer is known once a person gave it.
    Question {
        question: QuestionId,
        kind: QuestionKind,
        /// With the choices of a question of the agent, one a line.
        text: Option<String>,
        diff: Option<String>,
        answer: Option<String>,
    },
    /// The wait before the next attempt.
    Retry(Retry),
    /// A compaction; without an outcome while it runs.
    Compaction {
        reason: Option<String>,
        outcome: Option<CompactionOutcome>,
    },
    /// The text that the context begins with after a compaction.
    Summary {
        text: String,
    },
    /// Old results that were replaced by a line each.
    Stubs {
        results: usize,
    },
    /// The system prompt or the tools changed.
    PromptChange,
    /// The model of the first attempt, or of the first one after a change that is not on record.
    Model {
        name: String,
    },
    /// The user took an input back before a turn took it.
    WithdrawnInput,
    /// The permission mode changed.
    ModeChange {
        from: PermissionMode,
        to: PermissionMode,
    },
    ModelChange {
        from: String,
        to: String,
        reason: String,
    },
    /// An attempt ended with an error.
    AttemptFailure {
        error: String,
    },
    /// What a user asked of the session beside an input.
    Order(OrderKind),
    MemoryChange {
        pages: Vec<String>,
    },
    Extraction {
        through: Seq,
    },
    /// The model was told about the end of a task.
    Notification {
        task: TaskId,
    },
    /// The runtime told the model something.
    Note {
        text: String,
    },
    Warning {
        code: String,
        text: String,
    },
    Import {
        work_dir: Option<String>,
        mine: bool,
    },
    TurnEnd(TurnEnd),
    /// The records end before the turn does.
    UnfinishedTurn {
        turn: u64,
    },
    /// A record whose content was erased.
    ErasedRecord {
        seq: Seq,
        kind: String,
        at: At,
        reason: String,
    },
    /// A record that can't be read.
    DamagedRecord {
        seq: Seq,
        reason: String,
    },
}

/// A tool call, with its result once it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Call {
    pub call: CallId,
    pub name: String,
    /// As the model wrote them, usually JSON. Empty if the transcript did not see the call start.
    pub arguments: String,
    pub effect: Option<Effect>,
    pub result: Option<CallResult>,
}

/// What the model reads as the result of a call, and what is known besides.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallResult {
    pub content: String,
    pub is_error: bool,
    /// The change that the call made to files, as a unified diff.
    pub diff: Option<String>,
    /// Lines of the whole output, if `content` has only its head and tail.
    pub lines: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Retry {
    /// The class of the error, such as `throttled`.
    pub class: String,
    /// Counted from 1.
    pub attempt: u32,
    /// The most attempts; 0 if there is no bound.
    pub max_attempts: u32,
    pub delay_ms: u64,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CompactionOutcome {
    Done {
        epoch: u64,
        by: CompactedBy,
        /// Tokens.
        before: u64,
        after: u64,
    },
    Failed {
        reason: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TurnEnd {
    pub outcome: Outcome,
    pub limit: Option<Limit>,
    /// The final answer.
    pub text: String,
    pub error: Option<String>,
    pub code: Option<String>,
    /// Milliseconds; none if the transcript did not see the turn start.
    pub took_ms: Option<u64>,
    /// Only records tell; 0 and nothing spent otherwise.
    pub steps: u64,
    pub spend: SessionCost,
}

/// What [`apply`](crate::Transcript::apply) changed, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// A block started and goes on. It ends later.
    Started(Block),
    /// Text was added to a message or a reasoning block that is open.
    Appended { block: BlockId, target: TextTarget, text: String },
    /// A block ended; it never changes again. A block of no duration has only this update.
    Ended(Block),
}

/// What kind of block text is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextTarget {
    Message,
    Reasoning,
}
