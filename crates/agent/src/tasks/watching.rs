//! Watching tasks: one job each, which waits for the keeper's word and tells the session. It costs nothing while nothing happens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_keeper::{Following, Found, Task};
use longhaul_protocol::{TaskId, TaskNews};
use longhaul_tools::{last_line, looks_like_a_prompt};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::runtime::{Inner, lock};
use crate::shared::Shared;

/// A keeper that can't be talked to is looked at again after this.
const PAUSE: Duration = Duration::from_secs(1);

/// The tasks that this process watches, and how much each has printed.
#[derive(Default)]
pub(crate) struct Watching(Mutex<HashMap<TaskId, Arc<AtomicU64>>>);

impl Watching {
    /// How much a task has printed, as far as its keeper has said.
    pub(crate) fn printed(&self, id: TaskId) -> Option<u64> {
        lock(&self.0).get(&id).map(|printed| printed.load(Ordering::Relaxed))
    }
}

/// Watches a task until it is over or the runtime ends, and tells its session. Once is enough.
pub(crate) fn watch(runtime: &Arc<Inner>, shared: &Arc<Shared>, id: TaskId) {
    watch_from(runtime, shared, id, Duration::ZERO);
}

/// The same for one that was said to be over and could not be looked at, after a pause.
pub(crate) fn watch_again(runtime: &Arc<Inner>, shared: &Arc<Shared>, id: TaskId) {
    watch_from(runtime, shared, id, PAUSE);
}

fn watch_from(runtime: &Arc<Inner>, shared: &Arc<Shared>, id: TaskId, pause: Duration) {
    let printed = {
        let mut watched = lock(&runtime.watching.0);
        if watched.contains_key(&id) {
            return;
        }
        watched.entry(id).or_default().clone()
    };
    let (inner, shared) = (runtime.clone(), shared.clone());
    let job = async move {
        let mut suspension = inner.suspension();
        let watcher = Watcher { runtime: inner.clone(), shared: shared.clone(), id, printed };
        let is_over = tokio::select! {
            biased;
            _ = suspension.wait_for(|suspended| *suspended) => false,
            () = watcher.until_it_is_over(pause) => true,
        };
        lock(&inner.watching.0).remove(&id);
        if is_over {
            shared.task_is_over(id);
            shared.wake(&inner);
        }
    };
    if !runtime.spawn(job) {
        lock(&runtime.watching.0).remove(&id);
    }
}

struct Watcher {
    runtime: Arc<Inner>,
    shared: Arc<Shared>,
    id: TaskId,
    printed: Arc<AtomicU64>,
}

impl Watcher {
    async fn until_it_is_over(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
        loop {
            let (tasks, id) = (Arc::clone(&self.runtime.tasks), self.id);
            let connected = spawn_blocking(move || match tasks.find(id) {
                Ok(Found::Running(task)) => Some(follow(&task)),
                // Nobody can tell now, which may pass as long as somebody keeps it.
                Err(_) if tasks.is_kept(id).unwrap_or(true) => Some(None),
                Ok(_) | Err(_) => None,
            });
            match connected.await.ok().flatten() {
                None => return,
                Some(Some((stream, following))) => self.follow(stream, following).await,
                Some(None) => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Hears what the keeper says until it closes the connection.
    async fn follow(&self, stream: std::os::unix::net::UnixStream, mut following: Following) {
        let Ok(mut stream) = UnixStream::from_std(stream) else { return };
        let (mut silent_since, mut is_reported) = (Instant::now(), false);
        let mut bytes = [0; 512];
        self.printed.store(following.printed(), Ordering::Relaxed);
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
                    if self.printed.swap(following.printed(), Ordering::Relaxed) != following.printed() {
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
            Some((output.printed().ok()?, last_line(&output).ok()?))
        });
        let Ok(Some((printed, line))) = looking.await else { return };
        if looks_like_a_prompt(&line) {
            self.printed.store(printed, Ordering::Relaxed);
            let line = self.runtime.redactor.redact(&line).into_owned();
            self.shared.task_waits(TaskNews { task_id: self.id, printed, ended: false }, line);
            self.shared.wake(&self.runtime);
        }
    }
}

/// A connection to the keeper that tells of more output, and closes at the end.
fn follow(task: &Task) -> Option<(std::os::unix::net::UnixStream, Following)> {
    let (stream, following) = task.follow().ok()?;
    stream.set_nonblocking(true).ok()?;
    Some((stream, following))
}
