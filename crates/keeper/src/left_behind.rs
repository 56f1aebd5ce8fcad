//! Processes that a command left running when it ended, such as `server &`. They belong to its task: listed with it, and ended with it.

use std::fmt;

use longhaul_protocol::{SessionId, TaskId, TaskStarted};

use crate::task::known_status;
use crate::{Result, Tasks, holder, process_table};

/// A task that has ended, and how many of its processes run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftBehind {
    /// The session that started it.
    pub session: Option<SessionId>,
    /// What was started. A command that ended in the foreground is on no record, so this is by the keeper's own files.
    pub started: TaskStarted,
    /// At least one.
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

impl Tasks {
    /// What a command left running when it ended. [`Tasks::kill`] ends it.
    pub fn left_behind(&self, id: TaskId) -> Result<Option<LeftBehind>> {
        let Some(folder) = self.folder_of(id)? else { return Ok(None) };
        if known_status(&folder)?.is_none() || !holder::lives(&folder)? {
            return Ok(None);
        }
        let Some(keeper) = holder::by_record(&folder) else { return Ok(None) };
        let init = holder::recorded(&folder).init.map(|init| init.pid);
        let left = process_table::descendants(keeper.pid).into_iter();
        let left = left.filter(|entry| !entry.is_over && Some(entry.pid.as_raw_nonzero().get()) != init);
        let processes = left.count();
        let Some(spec) = self.spec(id)?.filter(|_| processes > 0) else { return Ok(None) };
        let started = TaskStarted {
            task_id: id,
            command: spec.command,
            description: spec.description.unwrap_or_default(),
            target: spec.target,
            started_at: self.started_at(id)?,
        };
        Ok(Some(LeftBehind { session: spec.session, started, processes }))
    }

    /// Every task that left something running, the oldest first. Those whose folders can't be read are left out.
    pub fn all_left_behind(&self) -> Vec<LeftBehind> {
        let all = self.all().unwrap_or_default().into_iter();
        all.filter_map(|id| self.left_behind(id).ok().flatten()).collect()
    }
}
