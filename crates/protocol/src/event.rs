use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::time::rfc3339;
use crate::{
    At, AttemptId, CallId, CompactedBy, Effect, InputId, Limit, Outcome, QuestionId, Role, Seq, TaskId,
    TaskStatus, TextContent,
};

/// What a watcher sees. `--json` prints one object on each line, and server-sent events have the same objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The record of the event. Absent for transient events such as text deltas. A watcher that reconnects reads the
    /// records after the last `seq` that it saw, so it misses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    #[serde(with = "rfc3339")]
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
    TurnStarted,
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
    Notification {
        task_id: TaskId,
    },
    Note {
        text: String,
    },
    Question {
        id: QuestionId,
        text: String,
    },
    Answered {
        id: QuestionId,
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
