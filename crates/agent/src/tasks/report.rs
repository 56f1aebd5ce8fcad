//! A task as programs see it.

use longhaul_protocol::{TaskId, TaskStatus};
use schemars::JsonSchema;
use serde::Serialize;

use super::TaskEntry;

/// A task as programs see it: the JSON of `longhaul tasks --json` and of the HTTP API.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct TaskReport {
    /// The id of the task.
    #[schemars(with = "String")]
    pub task_id: TaskId,
    /// The key of the session that started it.
    pub session: String,
    /// How it is doing.
    #[schemars(with = "String", extend("enum" = ["running", "completed", "failed", "killed", "timed_out", "lost"]))]
    pub status: TaskStatus,
    /// What the model said about it. May be empty.
    pub description: String,
    /// The command as it was started.
    pub command: String,
    /// When it was started. Null if that is unknown.
    pub started_at: Option<String>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// The exit status of the command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it ran, or has been running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Bytes printed so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub printed: Option<u64>,
    /// Anything unusual about its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Processes that still run after the task ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_processes: Option<usize>,
}

impl From<&TaskEntry> for TaskReport {
    fn from(task: &TaskEntry) -> Self {
        let now = &task.now;
        Self {
            task_id: task.id(),
            session: task.session.clone(),
            status: now.status,
            description: task.started.description.clone(),
            command: task.started.command.clone(),
            started_at: task.started.started_at.map(|at| at.to_string()),
            ended_at: now.ended_at.map(|at| at.to_string()),
            exit_code: now.exit_code,
            duration_ms: now.duration_ms,
            printed: now.printed,
            message: now.message.clone(),
            left_processes: Some(now.left).filter(|left| *left > 0),
        }
    }
}
