//! The handle of the scheduler: starts and stops it, sets its interval, and reports its status.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_protocol::{At, SessionId};
use tokio::sync::{Notify, watch};

use super::scheduler::{self, SessionJob};
use crate::runtime::{RuntimeShared, lock};
use crate::{Error, Result};

/// A shorter interval would be a busy loop.
const MIN_INTERVAL: Duration = Duration::from_millis(1);

/// Starts and stops the scheduler of a runtime, and reports its status.
pub(crate) struct SchedulerHandle {
    pub(super) interval: watch::Sender<Duration>,
    /// Stops the scheduler. The channel is closed when the scheduler has ended.
    stop: Mutex<Option<watch::Sender<bool>>>,
    pub(super) last_check: Mutex<LastCheck>,
    pub(super) ended_turns: EndedTurns,
}

/// Sessions whose turns have ended in this process and that the scheduler has not queued yet.
#[derive(Default)]
pub(super) struct EndedTurns {
    pub(super) sessions: Mutex<HashMap<SessionId, String>>,
    pub(super) notify: Notify,
}

#[derive(Default)]
pub(super) struct LastCheck {
    pub(super) at: Option<At>,
    pub(super) error: Option<String>,
}

/// The status of a runtime's scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleStatus {
    /// Whether it runs.
    pub running: bool,
    /// When it last checked the sessions.
    pub last_check: Option<At>,
    /// Why the last check could not list the sessions, if it failed.
    pub trouble: Option<String>,
}

impl SchedulerHandle {
    pub(crate) fn new(interval: Duration) -> Self {
        let interval = watch::Sender::new(interval.max(MIN_INTERVAL));
        Self {
            interval,
            stop: Mutex::default(),
            last_check: Mutex::default(),
            ended_turns: EndedTurns::default(),
        }
    }

    /// Starts the scheduler, unless it runs. If one is about to end, waits for it, so that there are never two.
    pub(crate) async fn start(&self, runtime: &Arc<RuntimeShared>, jobs: &Arc<[SessionJob]>) -> Result<()> {
        loop {
            let Some(ending) = self.start_now(runtime, jobs)? else { return Ok(()) };
            ending.closed().await;
        }
    }

    /// Starts the scheduler, unless it runs. If another one has to end first, returns that one.
    fn start_now(
        &self,
        runtime: &Arc<RuntimeShared>,
        jobs: &Arc<[SessionJob]>,
    ) -> Result<Option<watch::Sender<bool>>> {
        let mut slot = lock(&self.stop);
        if let Some(stop) = slot.as_ref().filter(|stop| !stop.is_closed()) {
            let is_ending = *stop.borrow();
            return Ok(is_ending.then(|| stop.clone()));
        }
        let (stop, stopped) = watch::channel(false);
        if !runtime.spawn(scheduler::run(runtime.clone(), jobs.clone(), stopped)) {
            return Err(Error::Suspended);
        }
        *slot = Some(stop);
        Ok(None)
    }

    /// Stops the scheduler and the jobs of sessions at once, and returns when they have ended.
    pub(crate) async fn stop(&self) {
        let stop = lock(&self.stop).clone();
        if let Some(stop) = stop {
            stop.send_replace(true);
            stop.closed().await;
        }
    }

    /// Records that a turn has ended in this process. Ignored if no scheduler runs.
    pub(crate) fn turn_ended(&self, id: SessionId, key: &str) {
        if self.is_running() {
            lock(&self.ended_turns.sessions).insert(id, key.to_owned());
            self.ended_turns.notify.notify_one();
        }
    }

    fn is_running(&self) -> bool {
        lock(&self.stop).as_ref().is_some_and(|stop| !stop.is_closed())
    }

    pub(crate) fn set_interval(&self, interval: Duration) {
        self.interval.send_replace(interval.max(MIN_INTERVAL));
    }

    pub(crate) fn interval(&self) -> Duration {
        *self.interval.borrow()
    }

    pub(crate) fn status(&self) -> IdleStatus {
        let running = self.is_running();
        let last_check = lock(&self.last_check);
        IdleStatus { running, last_check: last_check.at, trouble: last_check.error.clone() }
    }
}

#[cfg(test)]
#[path = "idle_tests.rs"]
mod tests;
