//! Watching tasks: one job each, which waits for the keeper's word and tells the session. It costs nothing while nothing happens.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_keeper::{Following, Found, Task};
use longhaul_protocol::{StreamName, TaskId, TaskNews};
use longhaul_tools::{last_output_line, looks_like_a_prompt};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::replay::load;
use crate::runtime::slot::Shared;
use crate::runtime::{Inner, lock};

/// A keeper that can't be talked to is looked at again after this.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The tasks that this process watches, and those that it is ending.
#[derive(Default)]
pub(crate) struct Watching {
    all: Mutex<HashMap<TaskId, Arc<Watched>>>,
    ending: Mutex<HashSet<TaskId>>,
}

/// A task that is watched.
struct Watched {
    /// The session that it belongs to.
    key: String,
    /// How much it has printed.
    printed: AtomicU64,
    /// Its end is on record.
    recorded: Notify,
}

impl Watching {
    /// How much a task has printed, as far as its keeper has said.
    pub(crate) fn printed(&self, id: TaskId) -> Option<u64> {
        lock(&self.all).get(&id).map(|watched| watched.printed.load(Ordering::Relaxed))
    }

    /// Those of a session's tasks that don't run any more, by its records, need not be watched.
    pub(crate) fn keep(&self, key: &str, runs: impl Fn(TaskId) -> bool) {
        for (_, watched) in lock(&self.all).extract_if(|id, watched| watched.key == key && !runs(*id)) {
            watched.recorded.notify_one();
        }
    }

    /// Lets go of this one, unless the task is watched anew by now.
    fn remove(&self, id: TaskId, watched: &Arc<Watched>) {
        lock(&self.all).extract_if(|known, other| *known == id && Arc::ptr_eq(other, watched)).for_each(drop);
    }
}

/// Watches a task until its end is on record or the runtime ends, and tells its session. Once is enough.
pub(crate) fn watch(runtime: &Arc<Inner>, shared: &Arc<Shared>, id: TaskId) {
    let watched = {
        let mut all = lock(&runtime.watching.all);
        if all.contains_key(&id) {
            return;
        }
        let (key, printed, recorded) = (shared.key.clone(), AtomicU64::new(0), Notify::new());
        all.entry(id).insert_entry(Arc::new(Watched { key, printed, recorded })).get().clone()
    };
    let watcher = Watcher { runtime: runtime.clone(), shared: shared.clone(), id, watched: watched.clone() };
    let (inner, entry) = (runtime.clone(), watched.clone());
    let job = async move {
        let mut suspension = inner.suspension();
        tokio::select! {
            biased;
            _ = suspension.wait_for(|suspended| *suspended) => {}
            () = watched.recorded.notified() => {}
            () = watcher.until_somebody_has_recorded_it() => {}
        }
        inner.watching.remove(id, &watched);
    };
    if !runtime.spawn(job) {
        runtime.watching.remove(id, &entry);
    }
}

struct Watcher {
    runtime: Arc<Inner>,
    shared: Arc<Shared>,
    id: TaskId,
    watched: Arc<Watched>,
}

impl Watcher {
    /// Says that it is over, again and again: another process may have the session and leave without a look, and what can't be
    /// read now may be readable later.
    async fn until_somebody_has_recorded_it(&self) {
        let mut pause = PAUSE;
        loop {
            let since = Instant::now();
            self.until_it_is_over().await;
            if since.elapsed() > LONGEST_PAUSE {
                pause = PAUSE;
            }
            self.shared.task_is_over(self.id);
            self.shared.wake(&self.runtime);
            loop {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                if self.is_on_record().await {
                    return;
                }
                // Whoever else has the session looks after it as long as they do.
                if !self.is_held_elsewhere().await {
                    break;
                }
            }
        }
    }

    async fn is_on_record(&self) -> bool {
        let Some(session) = self.shared.id.get() else { return false };
        let state = load(&*self.runtime.journal, &self.shared.key, *session).await;
        state.is_ok_and(|state| state.tasks.get(self.id).is_none_or(|task| !task.is_running()))
    }

    async fn is_held_elsewhere(&self) -> bool {
        let Some(session) = self.shared.id.get() else { return false };
        let holder = self.runtime.journal.holder(&StreamName::session(*session)).await;
        holder.is_ok_and(|holder| holder.is_some_and(|holder| holder.is_another()))
    }

    /// Returns when the task is over, as far as can be told without looking closely.
    async fn until_it_is_over(&self) {
        loop {
            let (tasks, id) = (Arc::clone(&self.runtime.tasks), self.id);
            let connected = spawn_blocking(move || match tasks.find(id) {
                Ok(Found::Running(task)) => Some(follow(&task)),
                // Nobody can tell now, which may pass as long as somebody keeps it.
                Err(_) if tasks.is_kept(id).unwrap_or(true) => Some(None),
                Ok(_) | Err(_) => None,
            });
            match connected.await {
                Ok(None) => return,
                // A keeper with too many connections closes the oldest; whoever looks finds out.
                Ok(Some(Some((stream, following)))) => return self.follow(stream, following).await,
                Ok(Some(None)) | Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Hears what the keeper says until it closes the connection.
    async fn follow(&self, stream: std::os::unix::net::UnixStream, mut following: Following) {
        let Ok(mut stream) = UnixStream::from_std(stream) else { return };
        let (mut silent_since, mut is_reported) = (Instant::now(), false);
        let mut bytes = [0; 512];
        self.watched.printed.store(following.printed(), Ordering::Relaxed);
        loop {
            let silence = async {
                if is_reported {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep_until(silent_since + self.runtime.config.stall_time).await;
            };
            tokio::select! {
                read = stream.read(&mut bytes) => {
                    let Ok(count @ 1..) = read else { return };
                    following.hear(&bytes[..count]);
                    if self.watched.printed.swap(following.printed(), Ordering::Relaxed) != following.printed() {
                        (silent_since, is_reported) = (Instant::now(), false);
                    }
                }
                () = silence => {
                    is_reported = true;
                    self.look_for_a_prompt().await;
                }
            }
        }
    }

    /// Whether the task seems to wait for somebody who types.
    async fn look_for_a_prompt(&self) {
        let (tasks, id) = (Arc::clone(&self.runtime.tasks), self.id);
        let looking = spawn_blocking(move || {
            let output = tasks.output(id).ok()?;
            Some((output.printed().ok()?, last_output_line(&output).ok()?))
        });
        let Ok(Some((printed, line))) = looking.await else { return };
        if looks_like_a_prompt(&line) {
            self.watched.printed.store(printed, Ordering::Relaxed);
            let line = self.runtime.redactor.redact(&line).into_owned();
            self.shared.task_waits(TaskNews { task_id: self.id, printed, ended: false }, line);
            self.shared.wake(&self.runtime);
        }
    }
}

/// Ends a task, and tries again as long as that fails; once is enough. What is not done when the runtime ends is done by the next
/// one.
pub(crate) fn end(runtime: &Arc<Inner>, id: TaskId) {
    if !lock(&runtime.watching.ending).insert(id) {
        return;
    }
    let inner = runtime.clone();
    runtime.spawn(async move {
        let mut suspension = inner.suspension();
        let mut pause = PAUSE;
        loop {
            let tasks = Arc::clone(&inner.tasks);
            if let Ok(Ok(())) = spawn_blocking(move || tasks.kill(id)).await {
                break;
            }
            tokio::select! {
                _ = suspension.wait_for(|suspended| *suspended) => break,
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
            }
        }
        lock(&inner.watching.ending).remove(&id);
    });
}

/// A connection to the keeper that tells of more output, and closes at the end.
fn follow(task: &Task) -> Option<(std::os::unix::net::UnixStream, Following)> {
    let (stream, following) = task.follow().ok()?;
    stream.set_nonblocking(true).ok()?;
    Some((stream, following))
}
