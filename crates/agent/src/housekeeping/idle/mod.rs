//! The idle worker: one task of a runtime, which at every check interval looks for sessions that have fallen idle and has its jobs
//! done for them; and, when a turn has ended here, whether enough is new in its session to be gone through for memory.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `activity` | when a session was last active, by two clocks. Pure but for the asking of them |
//! | `delays` | sessions that fail: when they are tried again, and what was told. Pure |
//! | `rounds` | the task: waits, lists, starts jobs and takes in what they came to |
//! | `looking` | one look at one session |
//!
//! A check only lists. What costs something (loading a session, and the jobs themselves) is done in tasks of their own, a few at
//! once, so that a slow one holds up neither the checks nor most of the others. Nothing of this is kept: after a restart each
//! recent session is looked at once.

mod activity;
mod backoff;
mod check;
mod rounds;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) use activity::Activity;
use longhaul_protocol::{At, SessionId};
use tokio::sync::{Notify, watch};

use crate::compaction::compact_if_idle;
use crate::memory::{consolidate_if_due, extract_if_idle};
use crate::runtime::slot::Shared;
use crate::runtime::{Inner, lock};
use crate::session::state::State;
use crate::{Error, Result};

/// The context of a session that nobody has spoken to for so long is left alone: it is made smaller when somebody comes back, so that
/// starting the program does not spend money on everything that was ever left.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);
/// What was said longer ago than this is remembered only once somebody comes back.
const THIS_WEEK: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A shorter interval would be a check without end.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

/// Something that is done for an idle session.
pub(crate) struct Job {
    /// For sessions that were active within this.
    within: Duration,
    /// Returns when it is done or was not due: whether something was done.
    act: Act,
}

type Act = Box<dyn for<'a> Fn(&'a Arc<Inner>, &'a Arc<Shared>, &'a State) -> Doing<'a> + Send + Sync>;
type Doing<'a> = Pin<Box<dyn Future<Output = Result<bool>> + Send + 'a>>;

/// What is done for idle sessions, in this order. Each is shown the session as it was before the first of them.
pub(crate) fn jobs() -> Arc<[Job]> {
    let compact: Act = Box::new(|runtime, shared, state| Box::pin(compact_if_idle(runtime, shared, state)));
    let extract: Act = Box::new(|runtime, shared, _| Box::pin(extract_if_idle(runtime, shared)));
    let consolidate: Act = Box::new(|runtime, shared, _| Box::pin(consolidate_if_due(runtime, shared)));
    Arc::new([
        Job { within: RECENT, act: compact },
        Job { within: THIS_WEEK, act: extract },
        Job { within: THIS_WEEK, act: consolidate },
    ])
}

/// The idle worker of a runtime, as the runtime has it.
pub(crate) struct Idle {
    interval: watch::Sender<Duration>,
    /// Stops the task, and is closed once that has ended.
    stop: Mutex<Option<watch::Sender<bool>>>,
    seen: Mutex<Seen>,
    turns: Turns,
}

/// Sessions whose turns have ended here, and that are not looked at yet.
#[derive(Default)]
struct Turns {
    ended: Mutex<HashMap<SessionId, String>>,
    came: Notify,
}

#[derive(Default)]
struct Seen {
    last_check: Option<At>,
    trouble: Option<String>,
}

/// How the idle worker of a runtime is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleStatus {
    /// Whether it runs.
    pub running: bool,
    /// When it last looked.
    pub last_check: Option<At>,
    /// Why it could not list the sessions then.
    pub trouble: Option<String>,
}

impl Idle {
    pub(crate) fn new(interval: Duration) -> Self {
        let interval = watch::Sender::new(interval.max(SHORTEST_INTERVAL));
        Self { interval, stop: Mutex::default(), seen: Mutex::default(), turns: Turns::default() }
    }

    /// Starts the task, unless it runs. One that is about to end is waited for: there are never two.
    pub(crate) async fn start(&self, runtime: &Arc<Inner>, jobs: &Arc<[Job]>) -> Result<()> {
        loop {
            let Some(ending) = self.start_now(runtime, jobs)? else { return Ok(()) };
            ending.closed().await;
        }
    }

    /// Starts the task, unless it runs; the one that has to end first, if there is one.
    fn start_now(&self, runtime: &Arc<Inner>, jobs: &Arc<[Job]>) -> Result<Option<watch::Sender<bool>>> {
        let mut slot = lock(&self.stop);
        if let Some(stop) = slot.as_ref().filter(|stop| !stop.is_closed()) {
            let is_ending = *stop.borrow();
            return Ok(is_ending.then(|| stop.clone()));
        }
        let (stop, stopped) = watch::channel(false);
        if !runtime.spawn(rounds::run(runtime.clone(), jobs.clone(), stopped)) {
            return Err(Error::Suspended);
        }
        *slot = Some(stop);
        Ok(None)
    }

    /// Stops the task and what it does, at once, and returns when it is gone.
    pub(crate) async fn stop(&self) {
        let stop = lock(&self.stop).clone();
        if let Some(stop) = stop {
            stop.send_replace(true);
            stop.closed().await;
        }
    }

    /// A turn has ended here. Where nothing runs, nobody looks at that.
    pub(crate) fn turn_ended(&self, id: SessionId, key: &str) {
        if self.is_running() {
            lock(&self.turns.ended).insert(id, key.to_owned());
            self.turns.came.notify_one();
        }
    }

    fn is_running(&self) -> bool {
        lock(&self.stop).as_ref().is_some_and(|stop| !stop.is_closed())
    }

    pub(crate) fn set_interval(&self, interval: Duration) {
        self.interval.send_replace(interval.max(SHORTEST_INTERVAL));
    }

    pub(crate) fn interval(&self) -> Duration {
        *self.interval.borrow()
    }

    pub(crate) fn status(&self) -> IdleStatus {
        let running = self.is_running();
        let seen = lock(&self.seen);
        IdleStatus { running, last_check: seen.last_check, trouble: seen.trouble.clone() }
    }
}

#[cfg(test)]
#[path = "idle_tests.rs"]
mod tests;
