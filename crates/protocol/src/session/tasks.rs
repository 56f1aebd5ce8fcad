use serde::{Deserialize, Serialize};

use crate::{At, BlobRef, TaskId};

/// A command goes on in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskStarted {
    /// The task.
    pub task_id: TaskId,
    /// The command.
    pub command: String,
    /// What it is for.
    pub description: String,
    /// Where it runs; `local` is this machine.
    pub target: String,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<At>,
}

/// A task is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskEnded {
    /// The task.
    pub task_id: TaskId,
    /// How it ended.
    pub status: TaskStatus,
    /// The exit code, if the command came to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it ran.
    pub duration_ms: u64,
    /// What it printed, head and tail if it was much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<BlobRef>,
    /// The last of it, which the model is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// What else there is to say about its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// It was killed, and nobody who has to do with the session asked for that: the machine went down, or somebody ended its
    /// keeper.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unasked: bool,
}

/// A task that is over, as a later epoch needs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedTask {
    /// What it was.
    pub task: TaskStarted,
    /// How it ended.
    pub end: TaskEnded,
    /// The model was told, or need not be.
    pub told: bool,
}

/// How far the model knows what a task did, so that it is not told the same again as if it were news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskNews {
    /// The task.
    pub task_id: TaskId,
    /// How many bytes it had printed.
    pub printed: u64,
    /// Whether it had ended.
    pub ended: bool,
}

/// How a task is or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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

/// The model is told of the end of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// The task.
    pub task_id: TaskId,
    /// What the model reads.
    pub text: String,
}

/// The runtime tells the model something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// What it says.
    pub text: String,
    /// The tasks that run, if it says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<Vec<TaskId>>,
    /// The task that seems to wait for input, if it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<TaskNews>,
}

impl Note {
    /// A note that only says something.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), running: None, waiting: None }
    }
}
