//! The tools for tasks: commands and subagents that go on in the background.
//!
//! A session has only the tasks that its records name. The keeper knows the state of a task; where its files are gone,
//! the recorded end counts.

mod output_read;
mod output_search;
mod prompt;
mod state;
mod subagent;
mod task_end;
pub(crate) mod task_kill;
mod task_list;
pub(crate) mod task_output;
mod task_wait;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use longhaul_keeper::Tasks;
use longhaul_protocol::TaskId;

use crate::{Redact, SessionTask, Tool, ToolInvocation, ToolOutcome};

pub use prompt::looks_like_a_prompt;
pub use subagent::{NoSubagents, SubagentStatus, SubagentTasks};
pub use task_end::{FinishedTask, task_end};

const DEFAULT_QUIET_TIME: Duration = Duration::from_secs(2);

/// The settings of the task tools.
#[derive(Clone)]
pub struct TaskSettings {
    /// Where tasks are kept.
    pub tasks: Arc<Tasks>,
    /// The tasks that are subagents.
    pub subagents: Arc<dyn SubagentTasks>,
    /// Removes secrets from the output.
    pub redact: Redact,
    /// A task is quiet after this time without output. Output after that is news.
    pub quiet: Duration,
}

impl TaskSettings {
    /// The default settings.
    pub fn new(tasks: Arc<Tasks>, redact: Redact) -> Self {
        let subagents = Arc::new(NoSubagents);
        Self { tasks, subagents, redact, quiet: DEFAULT_QUIET_TIME }
    }

    /// Sets how subagents are asked and stopped.
    #[must_use]
    pub fn with_subagents(self, subagents: Arc<dyn SubagentTasks>) -> Self {
        Self { subagents, ..self }
    }
}

impl fmt::Debug for TaskSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskSettings").field("quiet", &self.quiet).finish_non_exhaustive()
    }
}

/// The task tools. The order is fixed: the beginning of a request must not change.
pub fn task_tools(settings: &TaskSettings) -> Vec<Arc<dyn Tool>> {
    vec![task_output::tool(settings.clone()), task_kill::tool(settings.clone())]
}

/// Finds a task of this session. Another session's task is an error.
fn find_task(call: &ToolInvocation, task_id: &str) -> Result<SessionTask, ToolOutcome> {
    let there = || {
        let ids: Vec<String> = call.tasks.iter().map(|task| task.started.task_id.to_string()).collect();
        if ids.is_empty() {
            "this session has none".to_owned()
        } else {
            format!("there are {}", ids.join(", "))
        }
    };
    let id: TaskId = task_id.parse().map_err(|error| ToolOutcome::error(format!("{error}; {}", there())))?;
    let task = call.task(id).cloned();
    task.ok_or_else(|| ToolOutcome::error(format!("there is no task {id}; {}", there())))
}
