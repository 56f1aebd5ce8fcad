use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::rfc3339;
use crate::{
    AnsweredBy, At, AttemptId, CallId, Cause, ChildSession, CommandReport, CompactedBy, Effect, InputId,
    Limit, Outcome, PermissionMode, QuestionId, QuestionKind, Role, Seq, SessionRecord, TaskEnded, TaskId,
    TaskStarted, TaskStatus, TextContent, ToolFinished, ToolStarted, TurnEnded,
};

/// What a watcher sees. `--json` prints one object on each line, and server-sent events have the same objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The record of the event. Absent for transient events such as text deltas. A watcher that reconnects reads the
    /// records after the last `seq` that it saw, so it misses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    #[serde(with = "rfc3339")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub at: At,
    /// The key of the session.
    pub session: String,
    /// The running turn, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// The kinds of event. Their names and fields are a contract with scripts and clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[allow(missing_docs, reason = "each field says what the record of the same name says of it")]
pub enum EventKind {
    InputAccepted {
        input_seq: Seq,
        id: InputId,
    },
    InputTaken {
        id: InputId,
    },
    InputWithdrawn {
        id: InputId,
    },
    TurnStarted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
    },
    StepStarted,
    TextDelta {
        text: String,
    },
    ReasoningDelta {
        text: String,
    },
    Partial {
        attempt: AttemptId,
        text: String,
    },
    Message {
        role: Role,
        content: String,
    },
    ToolStarted {
        call_id: CallId,
        name: String,
        arguments: String,
        effect: Effect,
    },
    ToolFinished {
        call_id: CallId,
        name: String,
        is_error: bool,
        content: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<u64>,
        /// Of a command or a task.
        #[serde(flatten)]
        report: Box<CommandReport>,
    },
    ModelChanged {
        from: String,
        to: String,
        reason: String,
    },
    TaskStarted {
        task_id: TaskId,
        description: String,
    },
    TaskEnded {
        task_id: TaskId,
        status: TaskStatus,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    /// A subagent started.
    ChildStarted {
        task_id: TaskId,
        /// The key of its session. `session` is that of its parent.
        child: String,
        description: String,
    },
    ChildEnded {
        task_id: TaskId,
        /// The key of its session. `session` is that of its parent.
        child: String,
        status: TaskStatus,
    },
    Notification {
        task_id: TaskId,
    },
    Note {
        text: String,
    },
    Question {
        id: QuestionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<QuestionKind>,
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        choices: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
    },
    Answered {
        id: QuestionId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<AnsweredBy>,
    },
    ModeChanged {
        from: PermissionMode,
        to: PermissionMode,
    },
    Imported {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        work_dir: Option<String>,
        mine: bool,
    },
    RetryWait {
        class: String,
        attempt: u32,
        of: u32,
        delay_ms: u64,
        reason: String,
    },
    AttemptDiscarded {
        attempt: AttemptId,
        kept_blocks: u32,
    },
    CompactStart {
        reason: String,
    },
    CompactDone {
        epoch: u64,
        by: CompactedBy,
        before: u64,
        after: u64,
    },
    CompactFailed {
        reason: String,
    },
    SystemMessage {
        content: Vec<TextContent>,
    },
    ExtractDone {
        through: Seq,
    },
    MemoryChanged {
        pages: Vec<String>,
    },
    Usage {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cached: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_written: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        /// The model that was called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        limits: BTreeMap<String, String>,
    },
    Warning {
        code: String,
        text: String,
    },
    TurnEnded {
        outcome: Outcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<Limit>,
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
    },
}

impl EventKind {
    /// The task or the subagent that the event shows as started, with its description.
    pub fn started_task(&self) -> Option<(TaskId, &str)> {
        match self {
            Self::TaskStarted { task_id, description } | Self::ChildStarted { task_id, description, .. } => {
                Some((*task_id, description))
            }
            _ => None,
        }
    }

    /// The task or the subagent that the event shows as ended, with the exit code of a command.
    pub fn ended_task(&self) -> Option<(TaskId, TaskStatus, Option<i32>)> {
        match self {
            Self::TaskEnded { task_id, status, exit_code } => Some((*task_id, *status, *exit_code)),
            Self::ChildEnded { task_id, status, .. } => Some((*task_id, *status, None)),
            _ => None,
        }
    }

    /// The event that shows a record. None if a record has no event, and for the end of an attempt and an order, whose event
    /// depends on the records before it.
    #[allow(clippy::too_many_lines, reason = "one arm for each kind of record")]
    pub fn of_record(record: SessionRecord) -> Option<Self> {
        Some(match record {
            SessionRecord::InputTaken(input) => Self::InputTaken { id: input.id },
            SessionRecord::TurnStarted(started) => Self::TurnStarted { cause: started.cause },
            SessionRecord::StepStarted(_) => Self::StepStarted,
            SessionRecord::Usage(usage) => Self::Usage {
                input: usage.input,
                output: usage.output,
                cached: usage.cached,
                cache_written: usage.cache_written,
                cost: usage.cost,
                cause: usage.cause,
                model: usage.model,
                limits: usage.limits,
            },
            SessionRecord::ToolStarted(ToolStarted { call, name, arguments, effect, .. }) => {
                Self::ToolStarted { call_id: call, name, arguments, effect }
            }
            SessionRecord::ToolFinished(ToolFinished {
                call,
                name,
                is_error,
                content,
                diff,
                lines,
                report,
                ..
            }) => {
                let report = Box::new(report);
                Self::ToolFinished { call_id: call, name, is_error, content, diff, lines, report }
            }
            SessionRecord::TaskStarted(TaskStarted { task_id, description, session, .. }) => match session {
                Some(_) => {
                    Self::ChildStarted { task_id, child: ChildSession::key_of(task_id.call()), description }
                }
                None => Self::TaskStarted { task_id, description },
            },
            SessionRecord::TaskEnded(TaskEnded { task_id, status, exit_code, session, .. }) => {
                match session {
                    Some(_) => {
                        Self::ChildEnded { task_id, child: ChildSession::key_of(task_id.call()), status }
                    }
                    None => Self::TaskEnded { task_id, status, exit_code },
                }
            }
            SessionRecord::Notification(notification) => Self::Notification { task_id: notification.task_id },
            SessionRecord::Note(note) => Self::Note { text: note.text },
            SessionRecord::Question(question) => Self::Question {
                id: question.id,
                kind: Some(question.kind),
                text: question.text,
                choices: question.choices,
                call_id: question.call,
                diff: question.diff,
            },
            SessionRecord::Answered(answered) => {
                Self::Answered { id: answered.id, answer: Some(answered.answer), by: answered.by }
            }
            SessionRecord::ModeChanged(changed) => Self::ModeChanged { from: changed.from, to: changed.to },
            SessionRecord::Imported(imported) => {
                Self::Imported { work_dir: imported.work_dir, mine: imported.mine }
            }
            SessionRecord::CompactStart(start) => Self::CompactStart { reason: start.reason },
            SessionRecord::SystemMessage(message) => Self::SystemMessage { content: message.content },
            SessionRecord::CompactDone(done) => {
                Self::CompactDone { epoch: done.epoch, by: done.by, before: done.before, after: done.after }
            }
            SessionRecord::CompactFailed(failed) => Self::CompactFailed { reason: failed.reason },
            SessionRecord::ModelChanged(changed) => {
                Self::ModelChanged { from: changed.from, to: changed.to, reason: changed.reason }
            }
            SessionRecord::Warning(warning) => Self::Warning { code: warning.code, text: warning.text },
            SessionRecord::TurnEnded(TurnEnded { outcome, limit, text, error, code, .. }) => {
                Self::TurnEnded { outcome, limit, text, error, code }
            }
            SessionRecord::SessionCreated(_)
            | SessionRecord::EpochStarted(_)
            | SessionRecord::OrderTaken(_)
            | SessionRecord::AttemptStarted(_)
            | SessionRecord::AttemptEnded(_)
            | SessionRecord::Block(_)
            | SessionRecord::Checkpoint(_)
            | SessionRecord::ToolTask(_)
            | SessionRecord::Stubbed(_)
            | SessionRecord::Unknown { .. } => return None,
        })
    }
}
