//! Monitors background tasks. Each task has one job, which waits for its keeper, or for the session of a subagent, and wakes the
//! session when the task has ended, waits for input or asks something. It costs nothing while the task is silent.

use std::collections::{HashMap, HashSet};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_keeper::{Following, Found, Task};
use longhaul_protocol::{QuestionId, SessionId, TaskId, TaskNews, TaskStarted};
use longhaul_tools::{last_output_line, looks_like_a_prompt};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::housekeeping::backoff::RetryDelay;
use crate::replay::load;
use crate::runtime::slot::SessionSlot;
use crate::runtime::{RuntimeShared, lock};
use crate::subagents::LOCAL_TARGET;
use crate::subagents::child::{ChildState, end_child_tasks, read_child, stop_child};
use crate::subagents::watch::ChildWatch;

/// The first delay before a keeper or a session is checked again. It doubles up to the maximum.
const FIRST_RETRY_DELAY: Duration = Duration::from_secs(1);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);
const RETRY_DELAY: RetryDelay = RetryDelay::new(FIRST_RETRY_DELAY, MAX_RETRY_DELAY);

/// How often to check whether the node of a task was given up.
const NODE_CHECK_INTERVAL: Duration = Duration::from_secs(3);

/// The tasks that this process monitors, and those that it is killing.
#[derive(Default)]
pub(crate) struct TaskMonitor {
    monitored: Mutex<HashMap<TaskId, Arc<MonitoredTask>>>,
    killing: Mutex<HashSet<TaskId>>,
}

struct MonitoredTask {
    session_key: String,
    printed_bytes: AtomicU64,
    /// Notified when the end of the task is recorded.
    recorded: Notify,
    /// A subagent's own tasks could not be ended in time.
    has_leftovers: AtomicBool,
}

impl TaskMonitor {
    /// How many bytes a task has printed, according to its keeper.
    pub(crate) fn printed_bytes(&self, id: TaskId) -> Option<u64> {
        lock(&self.monitored).get(&id).map(|task| task.printed_bytes.load(Ordering::Relaxed))
    }

    /// Whether the tasks of a subagent could not be ended in time, so that its end is recorded without that.
    pub(super) fn has_leftovers(&self, id: TaskId) -> bool {
        lock(&self.monitored).get(&id).is_some_and(|task| task.has_leftovers.load(Ordering::Relaxed))
    }

    /// Stops monitoring the tasks of a session that no longer run.
    pub(super) fn retain_session_tasks(&self, key: &str, is_running: impl Fn(TaskId) -> bool) {
        let mut monitored = lock(&self.monitored);
        for (_, task) in monitored.extract_if(|id, task| task.session_key == key && !is_running(*id)) {
            task.recorded.notify_one();
        }
    }

    /// Registers a task. `None` if it is already monitored.
    fn insert(&self, id: TaskId, session_key: &str) -> Option<Arc<MonitoredTask>> {
        let mut monitored = lock(&self.monitored);
        if monitored.contains_key(&id) {
            return None;
        }
        let task = Arc::new(MonitoredTask {
            session_key: session_key.to_owned(),
            printed_bytes: AtomicU64::new(0),
            recorded: Notify::new(),
            has_leftovers: AtomicBool::new(false),
        });
        monitored.insert(id, task.clone());
        Some(task)
    }

    /// Removes this entry, unless the task was registered anew.
    fn remove(&self, id: TaskId, task: &Arc<MonitoredTask>) {
        lock(&self.monitored)
            .extract_if(|known, other| *known == id && Arc::ptr_eq(other, task))
            .for_each(drop);
    }
}

/// A task as it is monitored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskRef {
    pub(crate) id: TaskId,
    /// The session of a subagent.
    pub(crate) child: Option<SessionId>,
    /// The node whose keeper has the command, where several nodes share the journal.
    pub(crate) node: Option<Arc<str>>,
}

impl From<&TaskStarted> for TaskRef {
    fn from(started: &TaskStarted) -> Self {
        let is_of_node = started.session.is_none() && started.target != LOCAL_TARGET;
        let node = is_of_node.then(|| started.target.as_str().into());
        Self { id: started.task_id, child: started.session, node }
    }
}

/// Monitors a task until its end is recorded or the runtime is suspended, and wakes its session. A second call does
/// nothing.
pub(crate) fn monitor_task(runtime: &Arc<RuntimeShared>, slot: &Arc<SessionSlot>, started: TaskRef) {
    let TaskRef { id, child, node } = started;
    let node = node.filter(|node| runtime.is_other_node(node));
    let Some(task) = runtime.task_monitor.insert(id, &slot.key) else { return };
    let asked = Mutex::default();
    let job = MonitorJob {
        runtime: runtime.clone(),
        slot: slot.clone(),
        id,
        child,
        node,
        asked,
        task: task.clone(),
    };
    let entry = task.clone();
    let run = async move {
        let mut suspension = job.runtime.suspension();
        tokio::select! {
            biased;
            _ = suspension.wait_for(|suspended| *suspended) => {}
            () = task.recorded.notified() => {}
            () = job.wake_until_recorded() => {}
        }
        job.runtime.task_monitor.remove(id, &task);
    };
    if !runtime.spawn(run) {
        runtime.task_monitor.remove(id, &entry);
    }
}

struct MonitorJob {
    runtime: Arc<RuntimeShared>,
    slot: Arc<SessionSlot>,
    id: TaskId,
    child: Option<SessionId>,
    /// The other node that has the command.
    node: Option<Arc<str>>,
    /// The questions of the subagent when its parent last looked.
    asked: Mutex<Vec<QuestionId>>,
    task: Arc<MonitoredTask>,
}

impl MonitorJob {
    /// Waits for the task's end and wakes the session, repeatedly until the end is recorded. Another process may hold
    /// the session and stop before it records the end, and output that can't be read now may be readable later.
    async fn wake_until_recorded(&self) {
        let mut delay = RETRY_DELAY;
        loop {
            let since = Instant::now();
            self.wait_for_end().await;
            if since.elapsed() > MAX_RETRY_DELAY {
                delay = RETRY_DELAY;
            }
            self.slot.queue_task_check(self.id);
            self.slot.wake(&self.runtime);
            loop {
                tokio::time::sleep(delay.next()).await;
                if self.is_end_recorded().await {
                    return;
                }
                // The process that holds the session also monitors the task.
                if !self.is_held_elsewhere().await {
                    break;
                }
            }
        }
    }

    async fn is_end_recorded(&self) -> bool {
        let Some(session) = self.slot.id.get() else { return false };
        let state = load(&*self.runtime.journal, &self.slot.key, *session).await;
        state.is_ok_and(|state| state.tasks.get(self.id).is_none_or(|task| !task.is_running()))
    }

    async fn is_held_elsewhere(&self) -> bool {
        let Some(session) = self.slot.id.get() else { return false };
        self.runtime.is_held_elsewhere(*session).await
    }

    /// Returns when the task has probably ended: its keeper closed the connection, or is gone.
    async fn wait_for_end(&self) {
        if let Some(child) = self.child {
            return self.wait_for_child(child).await;
        }
        if let Some(node) = &self.node {
            // That node reports the end, unless it was given up.
            while !self.runtime.is_node_gone(node).await {
                tokio::time::sleep(NODE_CHECK_INTERVAL).await;
            }
            return;
        }
        loop {
            let (tasks, id) = (Arc::clone(&self.runtime.tasks), self.id);
            let connect = spawn_blocking(move || match tasks.find(id) {
                Ok(Found::Running(task)) => Some(connect(&task)),
                // The keeper is alive but can't be asked now.
                Err(_) if tasks.is_kept(id).unwrap_or(true) => Some(None),
                Ok(_) | Err(_) => None,
            });
            match connect.await {
                Ok(None) => return,
                // A keeper with too many connections closes the oldest one. Then the worker finds that the task still
                // runs.
                Ok(Some(Some((stream, following)))) => return self.follow_output(stream, following).await,
                Ok(Some(None)) | Err(_) => tokio::time::sleep(FIRST_RETRY_DELAY).await,
            }
        }
    }

    /// Returns when the subagent has ended with all that it left running, or its open questions are others than before.
    async fn wait_for_child(&self, child: SessionId) {
        let mut watch = ChildWatch::new(&self.runtime, child).await;
        watch.wake().await;
        loop {
            match read_child(&*self.runtime.journal, child).await {
                Ok(ChildState::Ended(_)) => match end_child_tasks(&self.runtime, child).await {
                    Ok(leftovers) => {
                        return self.task.has_leftovers.store(leftovers > 0, Ordering::Relaxed);
                    }
                    Err(_) => {
                        tokio::time::sleep(FIRST_RETRY_DELAY).await;
                        continue;
                    }
                },
                Ok(ChildState::Gone) => return,
                Ok(ChildState::Running(running)) => {
                    let open: Vec<QuestionId> =
                        running.questions.iter().map(|question| question.id).collect();
                    if std::mem::replace(&mut *lock(&self.asked), open.clone()) != open {
                        return;
                    }
                }
                Ok(ChildState::NotStarted) => {}
                // The event that led here is consumed, so wait before reading again.
                Err(_) => {
                    tokio::time::sleep(FIRST_RETRY_DELAY).await;
                    continue;
                }
            }
            watch.wait_for_news().await;
        }
    }

    /// Follows the task's output until the keeper closes the connection. After a silence, checks for a prompt.
    async fn follow_output(&self, stream: StdUnixStream, mut following: Following) {
        let Ok(mut stream) = UnixStream::from_std(stream) else { return };
        let (mut silent_since, mut is_checked) = (Instant::now(), false);
        let mut bytes = [0; 512];
        self.task.printed_bytes.store(following.printed(), Ordering::Relaxed);
        loop {
            let silence = async {
                if is_checked {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep_until(silent_since + self.runtime.config.stall_time).await;
            };
            tokio::select! {
                read = stream.read(&mut bytes) => {
                    let Ok(count @ 1..) = read else { return };
                    following.hear(&bytes[..count]);
                    let printed = following.printed();
                    if self.task.printed_bytes.swap(printed, Ordering::Relaxed) != printed {
                        (silent_since, is_checked) = (Instant::now(), false);
                    }
                }
                () = silence => {
                    is_checked = true;
                    self.check_for_prompt().await;
                }
            }
        }
    }

    /// Wakes the session if the last line of the output looks like a prompt.
    async fn check_for_prompt(&self) {
        let (tasks, id) = (Arc::clone(&self.runtime.tasks), self.id);
        let read = spawn_blocking(move || {
            let output = tasks.output(id).ok()?;
            Some((output.printed().ok()?, last_output_line(&output).ok()?))
        });
        let Ok(Some((printed, line))) = read.await else { return };
        if looks_like_a_prompt(&line) {
            self.task.printed_bytes.store(printed, Ordering::Relaxed);
            let line = self.runtime.redactor.redact(&line).into_owned();
            self.slot.queue_stalled_task(TaskNews { task_id: self.id, printed, ended: false }, line);
            self.slot.wake(&self.runtime);
        }
    }
}

/// Kills a task, with retries and back-off. A second call meanwhile does nothing. If the runtime ends first, the next
/// one kills the task.
pub(super) fn kill_task(runtime: &Arc<RuntimeShared>, task: TaskRef) {
    let TaskRef { id, child, node } = task;
    if node.is_some_and(|node| runtime.is_other_node(&node)) {
        return;
    }
    if !lock(&runtime.task_monitor.killing).insert(id) {
        return;
    }
    let inner = runtime.clone();
    runtime.spawn(async move {
        let mut suspension = inner.suspension();
        let mut delay = RETRY_DELAY;
        loop {
            let tasks = Arc::clone(&inner.tasks);
            let is_killed = match child {
                // A subagent whose worker was suspended ends when the next process runs it.
                Some(child) => tokio::select! {
                    stopped = stop_child(&inner, child) => stopped.is_ok(),
                    _ = suspension.wait_for(|suspended| *suspended) => break,
                },
                None => matches!(spawn_blocking(move || tasks.kill(id)).await, Ok(Ok(()))),
            };
            if is_killed {
                break;
            }
            tokio::select! {
                _ = suspension.wait_for(|suspended| *suspended) => break,
                () = tokio::time::sleep(delay.next()) => {}
            }
        }
        lock(&inner.task_monitor.killing).remove(&id);
    });
}

/// Connects to the keeper, which reports output and closes the connection at the task's end.
fn connect(task: &Task) -> Option<(StdUnixStream, Following)> {
    let (stream, following) = task.follow().ok()?;
    stream.set_nonblocking(true).ok()?;
    Some((stream, following))
}
