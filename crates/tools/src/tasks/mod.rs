//! The tools for tasks: commands that go on in the background.
//!
//! A session has the tasks that its records name, and no others. How one is its keeper says; what is on record of its end counts
//! where the keeper's own files are gone.

mod output_search;
mod prompt;
mod state;
mod task_end;
pub(crate) mod task_kill;
pub(crate) mod task_list;
pub(crate) mod task_output;
pub(crate) mod task_wait;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use longhaul_keeper::Tasks;
use longhaul_protocol::TaskId;

use crate::{Call, Finished, KnownTask, Redact, Tool};

pub use prompt::looks_like_a_prompt;
pub use task_end::{Ended, task_end};

/// A task is quiet when nothing came for so long.
const DEFAULT_QUIET_TIME: Duration = Duration::from_secs(2);

/// What the tools for tasks need besides what the model writes.
#[derive(Clone)]
pub struct TaskSettings {
    /// Where tasks are kept.
    pub tasks: Arc<Tasks>,
    /// Takes secrets out of what was printed.
    pub redact: Redact,
    /// A task is quiet when nothing came for so long: what comes then is news.
    pub quiet: Duration,
}

impl TaskSettings {
    /// The usual ones.
    pub fn new(tasks: Arc<Tasks>, redact: Redact) -> Self {
        Self { tasks, redact, quiet: DEFAULT_QUIET_TIME }
    }
}

impl fmt::Debug for TaskSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskSettings").field("quiet", &self.quiet).finish_non_exhaustive()
    }
}

/// The tools for tasks, always in this order: what comes first in a request must not change.
pub fn task_tools(settings: &TaskSettings) -> Vec<Arc<dyn Tool>> {
    vec![
        task_list::tool(settings.clone()),
        task_output::tool(settings.clone()),
        task_wait::tool(settings.clone()),
        task_kill::tool(settings.clone()),
    ]
}

/// The task of this session that is meant. Another session's is none.
fn find_task(call: &Call, task_id: &str) -> Result<KnownTask, Finished> {
    let there = || {
        let ids: Vec<String> = call.tasks.iter().map(|task| task.started.task_id.to_string()).collect();
        if ids.is_empty() {
            "this session has none".to_owned()
        } else {
            format!("there are {}", ids.join(", "))
        }
    };
    let id: TaskId = task_id.parse().map_err(|error| Finished::error(format!("{error}; {}", there())))?;
    let task = call.task(id).cloned();
    task.ok_or_else(|| Finished::error(format!("there is no task {id}; {}", there())))
}
