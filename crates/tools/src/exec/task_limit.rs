//! K14: limits how many tasks of a session run at once.

use std::sync::Arc;

use longhaul_protocol::TaskId;

use super::ExecSettings;
use crate::blocking_run::run_to_completion;
use crate::{ToolInvocation, ToolOutcome};

/// The limit, and the tasks that count against it.
#[derive(Clone)]
pub(super) struct TaskSlots {
    settings: Arc<ExecSettings>,
    /// The tasks that run as far as the session knows, with their descriptions.
    running: Arc<[(TaskId, String)]>,
}

impl TaskSlots {
    pub(super) fn new(call: &ToolInvocation, settings: &Arc<ExecSettings>) -> Self {
        let running = call.tasks.iter().filter(|task| task.ended.is_none());
        let running = running.map(|task| (task.started.task_id, task.started.description.clone()));
        Self { settings: Arc::clone(settings), running: running.collect() }
    }

    /// An error that the model can act on, if no more tasks may run.
    pub(super) async fn check(&self) -> Result<(), ToolOutcome> {
        let running_tasks = self.running_tasks().await;
        if running_tasks.len() < self.settings.max_tasks {
            return Ok(());
        }
        let names: Vec<String> = running_tasks.iter().map(|(id, what)| format!("{id} ({what})")).collect();
        Err(ToolOutcome::error(format!(
            "exec was not run: {} tasks run, and at most {} may: {}. Wait for one with task_output and `wait`, or end one with task_kill",
            running_tasks.len(),
            self.settings.max_tasks,
            names.join(", ")
        )))
    }

    pub(super) async fn is_full(&self) -> bool {
        self.running_tasks().await.len() >= self.settings.max_tasks
    }

    /// The running tasks. The session may not know yet that one has ended.
    async fn running_tasks(&self) -> Vec<(TaskId, String)> {
        let slots = self.clone();
        let looked = run_to_completion(move || {
            let has_ended = |id| slots.settings.tasks.status(id).is_ok_and(|status| status.is_some());
            Ok(slots.running.iter().filter(|(id, _)| !has_ended(*id)).cloned().collect())
        });
        looked.await.unwrap_or_else(|_| self.running.to_vec())
    }
}
