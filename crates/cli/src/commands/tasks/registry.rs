//! The tasks of a home. The records of their sessions say which there are; their keepers say how they are now.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use longhaul_agent::keeper::{Found, Launcher, LeftBehind, Status, Tasks};
use longhaul_agent::session::{TaskState, load};
use longhaul_journal::Journal;
use longhaul_protocol::{At, SessionId, StreamName, TaskEnded, TaskId, TaskStarted, TaskStatus};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;

use crate::commands::sessions::list::now;
use crate::output::truncate;
use crate::session_lookup::find_session;
use crate::short_id::{IdMatch, short};
use crate::{bad_usage, short_id};

/// Tasks that an error names.
const MAX_NAMED_TASKS: usize = 10;

#[derive(Clone)]
pub(crate) struct TaskRegistry {
    pub(crate) journal: Arc<dyn Journal>,
    /// `None` in a home in which no command was ever started.
    tasks: Option<Arc<Tasks>>,
    folder: PathBuf,
}

#[derive(Debug, Clone)]
pub(crate) struct TaskEntry {
    /// A session key.
    pub(crate) session: String,
    pub(crate) started: TaskStarted,
    /// The record of its end.
    pub(crate) record: Option<TaskEnded>,
    pub(crate) now: TaskCondition,
}

/// The present condition of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskCondition {
    pub(crate) status: TaskStatus,
    pub(crate) exit_code: Option<i32>,
    pub(crate) ended_at: Option<At>,
    pub(crate) duration_ms: Option<u64>,
    /// Bytes printed so far.
    pub(crate) printed: Option<u64>,
    pub(crate) message: Option<String>,
    /// Processes that still run after the task ended.
    pub(crate) left: usize,
}

impl TaskRegistry {
    /// The tasks of the home in this folder. Creates nothing.
    pub(crate) fn new(journal: Arc<dyn Journal>, home: &Path) -> anyhow::Result<Self> {
        let folder = home.join("tasks");
        let tasks = Tasks::existing(&folder, Launcher::this_program()?)?;
        Ok(Self { journal, tasks: tasks.map(Arc::new), folder })
    }

    /// The folder of tasks. It may not exist.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn tasks(&self) -> anyhow::Result<&Arc<Tasks>> {
        self.tasks.as_ref().context("the folder of tasks is gone")
    }

    /// The tasks of all sessions, and a message for each session that can't be read. Only sessions with a task folder are loaded.
    pub(crate) async fn all(&self) -> anyhow::Result<(Vec<TaskEntry>, Vec<String>)> {
        let Some(tasks) = self.tasks.clone() else { return Ok((vec![], vec![])) };
        let work = move || anyhow::Ok((sessions_with_tasks(&tasks)?, tasks.all_left_behind()));
        let (sessions, left) = spawn_blocking(work).await??;
        let (mut listed, mut unreadable) = (Vec::new(), Vec::new());
        for id in sessions {
            let Some(entry) = self.journal.session_with_id(id).await? else { continue };
            let left = left.iter().filter(|left| left.session == Some(id)).cloned().collect();
            match self.list(&entry.key, id, left).await {
                Ok(mut tasks) => listed.append(&mut tasks),
                Err(error) => {
                    unreadable.push(format!("can't list the tasks of {}: {error:#}", entry.key));
                }
            }
        }
        listed.sort_by_key(TaskEntry::id);
        Ok((listed, unreadable))
    }

    /// The tasks of a session, the oldest first.
    pub(crate) async fn of_session(&self, key: &str, id: SessionId) -> anyhow::Result<Vec<TaskEntry>> {
        let tasks = self.tasks.clone();
        let left = spawn_blocking(move || left_behind(tasks.as_deref(), id)).await?;
        self.list(key, id, left).await
    }

    /// The tasks of a session whose leftover processes are known. A foreground command is listed while processes of it run after its end,
    /// or while it runs without a runtime.
    async fn list(&self, key: &str, id: SessionId, left: Vec<LeftBehind>) -> anyhow::Result<Vec<TaskEntry>> {
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
        Ok(spawn_blocking(work).await?)
    }

    /// The tasks of the named session, or of all sessions.
    pub(crate) async fn select(
        &self,
        session: Option<&str>,
    ) -> anyhow::Result<(Vec<TaskEntry>, Vec<String>)> {
        match session {
            Some(key) => {
                let entry = find_session(&*self.journal, key).await?;
                Ok((self.of_session(&entry.key, entry.id).await?, vec![]))
            }
            None => self.all().await,
        }
    }

    /// The task whose id is, starts or ends with `name`.
    pub(crate) async fn find(&self, session: Option<&str>, name: &str) -> anyhow::Result<TaskEntry> {
        let (listed, _) = self.select(session).await?;
        match short_id::find_task(listed.iter().map(TaskEntry::id), name) {
            IdMatch::One(id) => {
                listed.into_iter().find(|task| task.id() == id).ok_or_else(|| unknown_task(&[], name))
            }
            IdMatch::Several(ids) => {
                let several = listed.iter().filter(|task| ids.contains(&task.id()));
                let several: Vec<String> = several.map(|task| format!("\n  {}", task.short_line())).collect();
                Err(bad_usage(format!("{name:?} matches several tasks:{}", several.concat())))
            }
            IdMatch::Nothing => {
                if let Some(key) = session {
                    self.refuse_foreign(key, name).await?;
                }
                Err(unknown_task(&listed, name))
            }
        }
    }

    /// Refuses a task of another session, and names that session.
    async fn refuse_foreign(&self, key: &str, name: &str) -> anyhow::Result<()> {
        let (all, _) = self.all().await?;
        if let IdMatch::One(id) = short_id::find_task(all.iter().map(TaskEntry::id), name)
            && let Some(task) = all.iter().find(|task| task.id() == id)
        {
            let (owner, key) = (truncate(&task.session, 80), truncate(key, 80));
            return Err(bad_usage(format!("task {} belongs to {owner}, not {key}", short(id))));
        }
        Ok(())
    }

    pub(crate) async fn condition(&self, task: &TaskEntry) -> anyhow::Result<TaskCondition> {
        let (tasks, task) = (self.tasks.clone(), task.clone());
        Ok(spawn_blocking(move || condition_of(tasks.as_deref(), &task.started, task.record.as_ref()))
            .await?)
    }
}

/// The processes that commands of a session left running.
pub(crate) fn left_behind(tasks: Option<&Tasks>, session: SessionId) -> Vec<LeftBehind> {
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
    })
}

fn sessions_with_tasks(tasks: &Tasks) -> anyhow::Result<BTreeSet<SessionId>> {
    let of = |id: TaskId| tasks.spec(id).ok().flatten()?.session;
    Ok(tasks.all()?.into_iter().filter_map(of).collect())
}

fn unknown_task(listed: &[TaskEntry], name: &str) -> anyhow::Error {
    let there = match listed {
        [] => "there are none; use -s KEY to see a session's old tasks".to_owned(),
        some => {
            let names =
                some.iter().rev().take(MAX_NAMED_TASKS).map(|task| format!("\n  {}", task.short_line()));
            let more = if some.len() > MAX_NAMED_TASKS { "\n  …" } else { "" };
            format!("there are:{}{more}", names.collect::<String>())
        }
    };
    bad_usage(format!("no task {name:?}; {there}"))
}

impl TaskEntry {
    fn new(tasks: Option<&Tasks>, key: &str, started: TaskStarted, record: Option<TaskEnded>) -> Self {
        let now = condition_of(tasks, &started, record.as_ref());
        Self { session: key.to_owned(), started, record, now }
    }

    pub(crate) fn id(&self) -> TaskId {
        self.started.task_id
    }

    pub(crate) fn is_running(&self) -> bool {
        self.now.status == TaskStatus::Running
    }

    /// `a6k87v (running): what it does`.
    fn short_line(&self) -> String {
        format!("{} ({}): {}", short(self.id()), status_word(self.now.status), self.description())
    }

    pub(crate) fn description(&self) -> String {
        description(&self.started)
    }

    pub(crate) fn as_json(&self) -> Value {
        let TaskCondition { status, exit_code, ended_at, duration_ms, printed, message, left } = &self.now;
        let mut form = json!({
            "task_id": self.id(),
            "session": self.session,
            "status": status,
            "description": self.started.description,
            "command": self.started.command,
            "started_at": self.started.started_at.map(|at| at.to_string()),
        });
        let more = [
            ("ended_at", ended_at.map(|at| json!(at.to_string()))),
            ("exit_code", exit_code.map(|code| json!(code))),
            ("duration_ms", duration_ms.map(|milliseconds| json!(milliseconds))),
            ("printed", printed.map(|bytes| json!(bytes))),
            ("message", message.as_ref().map(|message| json!(message))),
            ("left_processes", (*left > 0).then(|| json!(left))),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                form[name] = value;
            }
        }
        form
    }
}

/// The description of a task, or its command where the model gave none.
pub(crate) fn description(started: &TaskStarted) -> String {
    let words = if started.description.is_empty() { &started.command } else { &started.description };
    truncate(words, 90)
}

pub(crate) fn status_word(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Running => "running",
        TaskStatus::Completed => "completed",
        TaskStatus::Failed => "failed",
        TaskStatus::Killed => "killed",
        TaskStatus::TimedOut => "timed out",
        TaskStatus::Lost => "lost",
    }
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
