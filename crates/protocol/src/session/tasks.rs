use serde::{Deserialize, Serialize};

use super::{Environment, PermissionMode};
use crate::{At, BlobRef, SessionId, TaskId};

/// A command continues in the background, or a subagent starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStarted {
    pub task_id: TaskId,
    pub command: String,
    /// Its purpose.
    pub description: String,
    /// The machine that runs it. `local` is this one.
    pub target: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
    /// The session of a subagent. Absent for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// A task is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnded {
    pub task_id: TaskId,
    pub status: TaskStatus,
    /// The exit code, if the command exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    pub duration_ms: u64,
    /// Its output, truncated to head and tail if it is long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<BlobRef>,
    /// The end of the output, for the notification.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// A remark about its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// It was killed, but the session did not ask for that: the machine went down, or its keeper was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
    /// The session of a subagent. Absent for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
}

/// An ended task, with what a later epoch needs of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTask {
    /// The task as it was started.
    pub task: TaskStarted,
    pub end: TaskEnded,
    /// The model was notified, or need not be.
    pub told: bool,
}

/// The task progress that the model has seen. The runtime does not report it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskNews {
    pub task_id: TaskId,
    /// Bytes that it had printed.
    pub printed: u64,
    pub ended: bool,
}

/// The state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "the words say it")]
pub enum TaskStatus {
    Running,
    Completed,
    Failed,
    Killed,
    TimedOut,
    Lost,
}

impl TaskStatus {
    /// The word for it, in records, results and notifications.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Killed => "killed",
            Self::TimedOut => "timed_out",
            Self::Lost => "lost",
        }
    }
}

/// The model is notified of the end of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    pub task_id: TaskId,
    /// What the model reads.
    pub text: String,
}

/// A message of the runtime to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub text: String,
    /// The running tasks, if the note lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Vec<TaskId>>,
    /// The task that seems to wait for input, if the note is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<TaskNews>,
    /// The surroundings now, if the note tells what has changed in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<Box<Environment>>,
    /// The permission mode, if the note is about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
}

impl Note {
    /// A note that is only text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), running: None, waiting: None, environment: None, mode: None }
    }
}
