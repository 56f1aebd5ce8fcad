//! Orphans: processes that a command left running when it ended, such as `server &`. They belong to its task, are listed
//! with it and killed with it.

use std::fmt;

use longhaul_protocol::{SessionId, TaskId, TaskStarted};

use crate::task::known_status;
use crate::{Result, Tasks, liveness, process_table};

/// The orphans of a task that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// The session that started it.
    pub session: Option<SessionId>,
    /// The task, from the keeper's files. A command that ended in the foreground has no record `task_started`.
    pub started: TaskStarted,
    /// How many still run; at least one.
    pub processes: usize,
}

impl fmt::Display for LeftBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processes {
            1 => f.write_str("left 1 process running"),
            several => write!(f, "left {several} processes running"),
        }
    }
}

/// See [`Tasks::left_behind`].
pub(crate) fn left_behind(tasks: &Tasks, id: TaskId) -> Result<Option<LeftBehind>> {
    let Some(folder) = tasks.folder_of(id)? else { return Ok(None) };
    if known_status(&folder)?.is_none() || !liveness::is_alive(&folder)? {
        return Ok(None);
    }
    let Some(keeper) = liveness::keeper_by_record(&folder) else { return Ok(None) };
    let init = liveness::recorded_processes(&folder).init.map(|init| init.pid);
    let left = process_table::descendants(keeper.pid).into_iter();
    let left = left.filter(|entry| !entry.is_over && Some(entry.pid.as_raw_nonzero().get()) != init);
    let processes = left.count();
    let Some(spec) = tasks.spec(id)?.filter(|_| processes > 0) else { return Ok(None) };
    let started = TaskStarted {
        task_id: id,
        command: spec.command,
        description: spec.description.unwrap_or_default(),
        target: spec.target,
        started_at: tasks.started_at(id)?,
        session: None,
    };
    Ok(Some(LeftBehind { session: spec.session, started, processes }))
}
