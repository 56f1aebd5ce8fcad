//! The state of a task.

use longhaul_keeper::{Error, Found, Result, Status, Task, Tasks};
use longhaul_protocol::{CommandReport, TaskId, TaskStatus};

use crate::exec::result::{EXPIRED, LOST, UNKNOWN, out_of_time};
use crate::output::{report_status, unix_millis_now};
use crate::{SessionTask, ToolOutcome};

const FOLDER_GONE: &str = "the folder of this task is gone, so it is not known how it ended";

#[derive(Debug)]
pub(crate) struct TaskState {
    pub(crate) status: TaskStatus,
    pub(crate) exit_code: Option<i32>,
    pub(crate) duration_ms: Option<u64>,
    pub(crate) message: Option<String>,
    /// It was killed, and neither the model nor the user asked for that.
    pub(crate) unasked: bool,
    /// The task while it runs and its keeper can be reached.
    pub(crate) task: Option<Task>,
    /// Another node has the command and its output. The message says so.
    pub(crate) is_elsewhere: bool,
}

impl TaskState {
    fn new(status: TaskStatus, message: Option<&str>) -> Self {
        let message = message.map(str::to_owned);
        Self {
            status,
            exit_code: None,
            duration_ms: None,
            message,
            unasked: false,
            task: None,
            is_elsewhere: false,
        }
    }

    /// The state of a task whose keeper is on another node. It runs until that node reports its end, or was given up.
    fn on_node(node: &str) -> Self {
        let message = format!(
            "node {node} has it; its output can't be read here, and it can't be ended from here; you are told when it ends"
        );
        Self { is_elsewhere: true, ..Self::new(TaskStatus::Running, Some(&message)) }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.status != TaskStatus::Running
    }

    pub(crate) fn report(&self, id: TaskId) -> CommandReport {
        CommandReport {
            exit_code: self.exit_code,
            duration_ms: self.duration_ms,
            task_id: Some(id),
            ..report_status(self.status)
        }
    }
}

/// Loads the state of a session's task. Blocks.
pub(crate) fn load_task_state(
    tasks: &Tasks,
    known: &SessionTask,
) -> std::result::Result<TaskState, ToolOutcome> {
    let id = known.started.task_id;
    if let Some(ended) = &known.ended {
        // Its files may be gone by now; where they are not, they say the same.
        return Ok(TaskState {
            exit_code: ended.exit_code,
            duration_ms: Some(ended.duration_ms),
            message: ended.message.clone(),
            ..TaskState::new(ended.status, None)
        });
    }
    if known.started.session.is_some() {
        return Ok(subagent_state(known));
    }
    let mut state = match &known.other_node {
        Some(node) => TaskState::on_node(node),
        None => keeper_state(tasks, id)
            .map_err(|error| ToolOutcome::error(format!("the state of {id} can't be read now: {error}")))?,
    };
    if let (TaskStatus::Running, Some(started_at)) = (state.status, known.started.started_at) {
        state.duration_ms = u64::try_from(unix_millis_now() - started_at.0).ok();
    }
    Ok(state)
}

/// The state of a subagent whose end is not on record. It runs, unless it was asked and has ended.
fn subagent_state(known: &SessionTask) -> TaskState {
    let status = known.subagent.as_ref().map_or(TaskStatus::Running, |asked| asked.status);
    let message = known.subagent.as_ref().and_then(|asked| asked.message.as_deref());
    let so_far = || u64::try_from(unix_millis_now() - known.started.started_at?.0).ok();
    let ended_after = known.subagent.as_ref().and_then(|asked| asked.duration_ms);
    TaskState { duration_ms: ended_after.or_else(so_far), ..TaskState::new(status, message) }
}

/// The state of a task by its keeper and the files that it left. Blocks.
pub(crate) fn keeper_state(tasks: &Tasks, id: TaskId) -> Result<TaskState> {
    match tasks.find(id) {
        Ok(Found::Running(task)) => {
            Ok(TaskState { task: Some(task), ..TaskState::new(TaskStatus::Running, None) })
        }
        Ok(Found::Ended(status)) => Ok(ended(tasks, id, &status)),
        Ok(Found::Lost) => Ok(TaskState::new(TaskStatus::Lost, Some(LOST))),
        Ok(Found::Unknown) => Ok(TaskState::new(TaskStatus::Lost, Some(UNKNOWN))),
        Ok(Found::Expired) => Ok(TaskState::new(TaskStatus::Lost, Some(EXPIRED))),
        Ok(Found::NotStarted) => Ok(TaskState::new(TaskStatus::Lost, Some(FOLDER_GONE))),
        Err(error @ Error::Newer { .. }) => Err(error),
        // While a keeper has the task, an error is not its end.
        Err(error) => match tasks.is_kept(id) {
            Ok(true) => Ok(TaskState::new(TaskStatus::Running, None)),
            _ => Err(error),
        },
    }
}

fn ended(tasks: &Tasks, id: TaskId, status: &Status) -> TaskState {
    let limit = || tasks.spec(id).ok().flatten().and_then(|spec| spec.max_runtime_s);
    let how = match (status.never_started(), status.status) {
        (Some(reason), _) => Some(format!("could not start the command: {reason}")),
        (None, TaskStatus::TimedOut) => limit().map(out_of_time),
        (None, _) => None,
    };
    let said: Vec<String> = match status.never_started() {
        Some(_) => how.into_iter().collect(),
        None => how.into_iter().chain(status.message.clone()).collect(),
    };
    TaskState {
        exit_code: status.exit_code,
        duration_ms: Some(status.duration_ms),
        message: (!said.is_empty()).then(|| said.join("; ")),
        unasked: status.unasked,
        ..TaskState::new(status.status, None)
    }
}
