//! The tasks of a home. The records of their sessions say which there are; their keepers say how they are now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Journal, NodeReport, NodeState};
use longhaul_keeper::{Found, Launcher, LeftBehind, Status, Tasks};
use longhaul_protocol::{
    At, ChildSession, SessionId, StreamName, TaskEnded, TaskId, TaskStarted, TaskStatus,
};
use longhaul_tools::SubagentStatus;
use tokio::time::Instant;

use super::output_reader::TaskOutput;
use super::run_blocking;
use crate::clock::now;
use crate::replay::load;
use crate::session::TaskState;
use crate::subagents::child::{ChildState, order_kill, order_stop, parent_link, read_child};
use crate::subagents::status_of;
use crate::subagents::tree::parents;
use crate::worker::task_monitor::TaskRef;
use crate::{Error, Result};

/// How long a kill waits for the end of a subagent. With no runtime alive, it ends when its session next runs.
const STOP_GRACE: Duration = Duration::from_secs(5);
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The tasks of a home. A clone is cheap.
#[derive(Clone)]
pub struct TaskRegistry {
    journal: Arc<dyn Journal>,
    /// `None` in a home in which no command was ever started.
    tasks: Option<Arc<Tasks>>,
    folder: PathBuf,
}

/// A task of a session.
#[derive(Debug, Clone)]
pub struct TaskEntry {
    /// The session's key.
    pub session: String,
    /// The record of its start, or what its keeper knows of that.
    pub started: TaskStarted,
    /// The record of its end.
    pub record: Option<TaskEnded>,
    /// Its condition when it was listed.
    pub now: TaskCondition,
}

/// The present condition of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCondition {
    /// Whether it runs, or how it ended.
    pub status: TaskStatus,
    /// The exit status of the command.
    pub exit_code: Option<i32>,
    /// When it ended.
    pub ended_at: Option<At>,
    /// How long it ran, or has been running.
    pub duration_ms: Option<u64>,
    /// Bytes printed so far.
    pub printed: Option<u64>,
    /// Anything unusual about its end.
    pub message: Option<String>,
    /// Processes that still run after the task ended.
    pub left: usize,
}

impl TaskRegistry {
    /// The tasks of the home in this folder. Creates nothing.
    pub fn new(journal: Arc<dyn Journal>, home: &Path) -> Result<Self> {
        let folder = home.join("tasks");
        let launcher = Launcher::this_program()
            .map_err(|error| Error::Folder { path: folder.clone(), reason: error.to_string() })?;
        let tasks = Tasks::existing(&folder, launcher)?;
        Ok(Self { journal, tasks: tasks.map(Arc::new), folder })
    }

    /// The tasks of a running home.
    pub(crate) fn of_runtime(journal: Arc<dyn Journal>, tasks: Arc<Tasks>, home: &Path) -> Self {
        Self { journal, tasks: Some(tasks), folder: home.join("tasks") }
    }

    /// The journal with the records of the tasks.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// The folder of tasks. It may not exist.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The keepers of the tasks.
    pub fn tasks(&self) -> Result<&Arc<Tasks>> {
        let gone =
            || Error::Folder { path: self.folder.clone(), reason: "the folder of tasks is gone".to_owned() };
        self.tasks.as_ref().ok_or_else(gone)
    }

    /// The tasks of all sessions, and a message for each session that can't be read. Only sessions with a task folder are loaded.
    pub async fn all(&self) -> Result<(Vec<TaskEntry>, Vec<String>)> {
        let tasks = self.tasks.clone();
        let work = move || match tasks {
            Some(tasks) => Ok::<_, Error>((sessions_with_tasks(&tasks)?, tasks.all_left_behind())),
            None => Ok((BTreeSet::new(), vec![])),
        };
        let (mut sessions, left) = run_blocking(work).await??;
        sessions.extend(parents(&*self.journal).await?);
        let (mut listed, mut unreadable) = (Vec::new(), Vec::new());
        for id in sessions {
            let Some(entry) = self.journal.session_with_id(id).await? else { continue };
            let left = left.iter().filter(|left| left.session == Some(id)).cloned().collect();
            match self.list(&entry.key, id, left).await {
                Ok(mut tasks) => listed.append(&mut tasks),
                Err(error) => {
                    unreadable.push(format!("can't list the tasks of {}: {error}", entry.key));
                }
            }
        }
        listed.sort_by_key(TaskEntry::id);
        Ok((listed, unreadable))
    }

    /// The tasks of a session, the oldest first.
    pub async fn of_session(&self, key: &str, id: SessionId) -> Result<Vec<TaskEntry>> {
        let tasks = self.tasks.clone();
        let left = run_blocking(move || left_behind(tasks.as_deref(), id)).await?;
        self.list(key, id, left).await
    }

    /// The tasks of a session whose leftover processes are known. A foreground command is listed while processes of it run after its end,
    /// or while it runs without a runtime.
    async fn list(&self, key: &str, id: SessionId, left: Vec<LeftBehind>) -> Result<Vec<TaskEntry>> {
        let state = load(&*self.journal, key, id).await?;
        let holder = self.journal.holder(&StreamName::session(id)).await?;
        // A live runtime waits for its foreground commands itself.
        let is_abandoned = holder.is_none_or(|holder| holder.is_gone());
        let calls = state.turn.iter().flat_map(|turn| &turn.calls).filter(|call| call.is_open());
        let open: Vec<TaskId> = calls.filter(|_| is_abandoned).map(|call| call.id.into()).collect();
        let (tasks, key) = (self.tasks.clone(), key.to_owned());
        let states = state.tasks.all().to_vec();
        let work = move || {
            let known: BTreeSet<TaskId> = states.iter().map(TaskState::id).collect();
            let open = open.into_iter().filter_map(|call| running_call(tasks.as_deref()?, call, id));
            let others = left.into_iter().map(|left| left.started).chain(open);
            let others = others.filter(|task| !known.contains(&task.task_id));
            let others = others.map(|started| (started, None));
            let all = states.into_iter().map(|state| (state.started, state.ended)).chain(others);
            all.map(|(started, record)| TaskEntry::new(tasks.as_deref(), &key, started, record)).collect()
        };
        let mut entries: Vec<TaskEntry> = run_blocking(work).await?;
        for entry in &mut entries {
            if let Some(child) = entry.running_child() {
                entry.now = child_condition(&*self.journal, &entry.started, child).await?;
            } else if let Some(elsewhere) = condition_elsewhere(&*self.journal, entry).await? {
                entry.now = elsewhere;
            }
        }
        Ok(entries)
    }

    /// The task with this id, by its keeper's files: no session but its own is loaded.
    pub async fn with_id(&self, id: TaskId) -> Result<Option<TaskEntry>> {
        let tasks = self.tasks.clone();
        let spec = run_blocking(move || tasks?.spec(id).ok().flatten()).await?;
        let session = match spec.and_then(|spec| spec.session) {
            Some(session) => Some(session),
            None => parent_of_task(&*self.journal, id).await?,
        };
        let Some(session) = session else { return Ok(None) };
        let Some(entry) = self.journal.session_with_id(session).await? else { return Ok(None) };
        let listed = self.of_session(&entry.key, entry.id).await?;
        Ok(listed.into_iter().find(|task| task.id() == id))
    }

    /// Kills a task with all its processes, and returns its condition afterwards. One that has ended stays as it was.
    pub async fn kill(&self, task: &TaskEntry) -> Result<TaskCondition> {
        if let Some(child) = task.running_child() {
            self.stop_subagent(task, child).await?;
            return self.condition(task).await;
        }
        self.refuse_elsewhere(task).await?;
        if let Some(tasks) = self.tasks.clone() {
            let id = task.id();
            run_blocking(move || tasks.kill(id)).await??;
        }
        self.condition(task).await
    }

    /// Stops a subagent: its parent hears that this was on purpose. Waits a while for its end.
    async fn stop_subagent(&self, task: &TaskEntry, child: SessionId) -> Result<()> {
        if let Some(parent) = self.journal.session(&task.session).await? {
            order_kill(&*self.journal, parent.id, task.id()).await?;
            let _ = self.journal.wake_holder(&StreamName::session(parent.id)).await;
        }
        order_stop(&*self.journal, child).await?;
        let _ = self.journal.wake_holder(&StreamName::session(child)).await;
        let deadline = Instant::now() + STOP_GRACE;
        while Instant::now() < deadline {
            if !matches!(read_child(&*self.journal, child).await?, ChildState::Running(_)) {
                return Ok(());
            }
            tokio::time::sleep(STOP_CHECK_INTERVAL).await;
        }
        Ok(())
    }

    /// The output of a task: all that its keeper has, or what the record of its end has once its files are gone.
    pub async fn output(&self, task: &TaskEntry) -> Result<TaskOutput> {
        if let Some(child) = task.started.session
            && let state @ (ChildState::Running(_) | ChildState::Ended(_)) =
                read_child(&*self.journal, child).await?
        {
            return Ok(TaskOutput::Recorded(status_of(&state).said.into_bytes()));
        }
        if let Some(tasks) = self.tasks.clone() {
            let id = task.id();
            if let Ok(output) = run_blocking(move || tasks.output(id)).await? {
                return Ok(TaskOutput::Kept(output));
            }
        }
        self.refuse_elsewhere(task).await?;
        let Some(ended) = &task.record else { return Ok(TaskOutput::Gone) };
        Ok(match &ended.output {
            Some(blob) => TaskOutput::Recorded(self.journal.blob(blob.hash).await?),
            None => TaskOutput::RecordedEnd(ended.tail.clone().into_bytes()),
        })
    }

    /// The present condition of a task.
    pub async fn condition(&self, task: &TaskEntry) -> Result<TaskCondition> {
        if let Some(child) = task.running_child() {
            return child_condition(&*self.journal, &task.started, child).await;
        }
        let (tasks, listed) = (self.tasks.clone(), task.clone());
        let look = move || condition_of(tasks.as_deref(), &listed.started, listed.record.as_ref());
        let now = run_blocking(look).await?;
        Ok(condition_elsewhere(&*self.journal, task).await?.unwrap_or(now))
    }

    /// Refuses what only the node can do that has the command.
    async fn refuse_elsewhere(&self, task: &TaskEntry) -> Result<()> {
        match condition_elsewhere(&*self.journal, task).await? {
            Some(TaskCondition { status: TaskStatus::Running, .. }) => {
                Err(Error::TaskOnOtherNode { task: task.id(), node: task.started.target.clone() })
            }
            _ => Ok(()),
        }
    }
}

/// The condition of a task without a recorded end whose keeper is on another node. It runs until that node reports its end, or was
/// given up. `None` if this node has the task.
async fn condition_elsewhere(journal: &dyn Journal, task: &TaskEntry) -> Result<Option<TaskCondition>> {
    let Some(cluster) = journal.cluster() else { return Ok(None) };
    let node = TaskRef::from(&task.started).node.filter(|node| **node != *cluster.node());
    let Some(node) = node.filter(|_| task.record.is_none()) else { return Ok(None) };
    let report = cluster.nodes().await?.into_iter().find(|report| *report.id == *node);
    let (status, message) = match report {
        None | Some(NodeReport { state: NodeState::Gone, .. }) => {
            (TaskStatus::Lost, format!("node {node} was given up; how it ended is unknown"))
        }
        Some(NodeReport { state: NodeState::Live | NodeState::Draining, .. }) => {
            (TaskStatus::Running, format!("on node {node}"))
        }
        Some(away) => (TaskStatus::Running, format!("on node {node}, {}", away.last_seen())),
    };
    let so_far = task.started.started_at.map(ms_since).filter(|_| status == TaskStatus::Running);
    Ok(Some(TaskCondition {
        status,
        exit_code: None,
        ended_at: None,
        duration_ms: so_far,
        printed: None,
        message: Some(message),
        left: 0,
    }))
}

/// The processes that commands of a session left running.
pub fn left_behind(tasks: Option<&Tasks>, session: SessionId) -> Vec<LeftBehind> {
    let all = tasks.map(Tasks::all_left_behind).into_iter().flatten();
    all.filter(|left| left.session == Some(session)).collect()
}

/// The command of an open call whose runtime is gone, if it still runs. The records have it as a call, its keeper as a task.
fn running_call(tasks: &Tasks, id: TaskId, session: SessionId) -> Option<TaskStarted> {
    let spec = tasks.spec(id).ok().flatten().filter(|spec| spec.session == Some(session))?;
    matches!(tasks.find(id), Ok(Found::Running(_))).then(|| TaskStarted {
        task_id: id,
        command: spec.command,
        description: spec.description.unwrap_or_default(),
        target: spec.target,
        started_at: tasks.started_at(id).ok().flatten(),
        session: None,
    })
}

fn sessions_with_tasks(tasks: &Tasks) -> Result<BTreeSet<SessionId>> {
    let of = |id: TaskId| tasks.spec(id).ok().flatten()?.session;
    Ok(tasks.all()?.into_iter().filter_map(of).collect())
}

impl TaskEntry {
    fn new(tasks: Option<&Tasks>, key: &str, started: TaskStarted, record: Option<TaskEnded>) -> Self {
        let now = condition_of(tasks, &started, record.as_ref());
        Self { session: key.to_owned(), started, record, now }
    }

    /// The session of a subagent whose end is not on record.
    fn running_child(&self) -> Option<SessionId> {
        self.started.session.filter(|_| self.record.is_none())
    }

    /// The id of the task.
    pub fn id(&self) -> TaskId {
        self.started.task_id
    }

    /// Whether it ran when it was listed.
    pub fn is_running(&self) -> bool {
        self.now.status == TaskStatus::Running
    }
}

/// The condition of a subagent by its session.
async fn child_condition(
    journal: &dyn Journal,
    started: &TaskStarted,
    child: SessionId,
) -> Result<TaskCondition> {
    let SubagentStatus { status, duration_ms, message, .. } = status_of(&read_child(journal, child).await?);
    let ended_at = started.started_at.zip(duration_ms).map(|(at, duration)| add_ms(at, duration));
    let duration_ms = duration_ms.or_else(|| started.started_at.map(ms_since));
    Ok(TaskCondition { status, exit_code: None, ended_at, duration_ms, printed: None, message, left: 0 })
}

/// The session that started a subagent, by the id of its task.
async fn parent_of_task(journal: &dyn Journal, id: TaskId) -> Result<Option<SessionId>> {
    let Some(entry) = journal.session(&ChildSession::key_of(id.call())).await? else { return Ok(None) };
    Ok(parent_link(journal, entry.id).await?.map(|parent| parent.session))
}

/// The condition by the keeper, or by the records where the keeper has nothing any more.
fn condition_of(tasks: Option<&Tasks>, started: &TaskStarted, record: Option<&TaskEnded>) -> TaskCondition {
    let mut condition = by_keeper_or_record(tasks, started, record);
    if let Some(left) = tasks.and_then(|tasks| tasks.left_behind(started.task_id).ok().flatten()) {
        condition.message = Some(left.to_string());
        condition.left = left.processes;
    }
    condition
}

fn by_keeper_or_record(
    tasks: Option<&Tasks>,
    started: &TaskStarted,
    record: Option<&TaskEnded>,
) -> TaskCondition {
    let id = started.task_id;
    let printed = tasks.and_then(|tasks| tasks.output(id).ok()?.printed().ok());
    if let Some(ended) = record {
        // Only the keeper knows when the task ended.
        let status = tasks.and_then(|tasks| tasks.status(id).ok().flatten());
        let by_record = started.started_at.map(|at| add_ms(at, ended.duration_ms));
        return TaskCondition {
            status: ended.status,
            exit_code: ended.exit_code,
            ended_at: status.as_ref().map(|status| status.ended_at).or(by_record),
            duration_ms: Some(ended.duration_ms),
            printed: status.map(|status| status.printed).or(printed),
            message: ended.message.clone(),
            left: 0,
        };
    }
    let so_far = started.started_at.map(ms_since);
    let unknown = |status, message: Option<String>| TaskCondition {
        status,
        exit_code: None,
        ended_at: None,
        duration_ms: so_far.filter(|_| status == TaskStatus::Running),
        printed,
        message,
        left: 0,
    };
    match tasks.map_or(Ok(Found::NotStarted), |tasks| tasks.find(id)) {
        Ok(Found::Running(_)) => unknown(TaskStatus::Running, None),
        Ok(Found::Ended(status)) => TaskCondition::from(status),
        Ok(Found::Lost | Found::Unknown) => {
            unknown(TaskStatus::Lost, Some("its supervisor was killed; how it ended is unknown".to_owned()))
        }
        Ok(Found::NotStarted | Found::Expired) => {
            unknown(TaskStatus::Lost, Some("its files are gone; how it ended is unknown".to_owned()))
        }
        Err(error) => unknown(TaskStatus::Running, Some(format!("can't reach its supervisor: {error}"))),
    }
}

impl From<Status> for TaskCondition {
    fn from(status: Status) -> Self {
        Self {
            status: status.status,
            exit_code: status.exit_code,
            ended_at: Some(status.ended_at),
            duration_ms: Some(status.duration_ms),
            printed: Some(status.printed),
            message: status.message,
            left: 0,
        }
    }
}

fn add_ms(at: At, milliseconds: u64) -> At {
    At(at.0.saturating_add(i64::try_from(milliseconds).unwrap_or(i64::MAX)))
}

fn ms_since(at: At) -> u64 {
    u64::try_from(now().0.saturating_sub(at.0)).unwrap_or(0)
}
