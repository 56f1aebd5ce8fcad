//! Y4: exponential backoff by key, for everything that is retried while no user waits: jobs of idle sessions, workers
//! that fail repeatedly, sessions that can't be read. A failure is reported once for each reason. [`RetryDelay`] is the
//! same for a loop that retries one thing.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;

use longhaul_protocol::SessionId;
use tokio::time::Instant;

use crate::runtime::lock;
use crate::runtime::slot::SessionSlot;

/// The keys that have failed, and when each may be tried again.
#[derive(Debug)]
pub(crate) struct Backoff<K> {
    failing: HashMap<K, Failing>,
    max_delay: Duration,
}

#[derive(Debug)]
struct Failing {
    failures: u32,
    until: Instant,
    reason: String,
}

/// The result of recording a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FailureReport {
    /// Failures of the key in a row.
    pub(crate) failures: u32,
    /// The reason differs from the last one, so it should be reported.
    pub(crate) is_new_reason: bool,
}

impl<K: Hash + Eq> Backoff<K> {
    /// `max_delay` is the longest delay, however often a key fails.
    pub(crate) fn new(max_delay: Duration) -> Self {
        Self { failing: HashMap::new(), max_delay }
    }

    /// Records a failure of work that began at `started`. The delay counts from then. It is `first_delay` after the
    /// first failure and doubles with each further one.
    pub(crate) fn record_failure(
        &mut self,
        key: K,
        reason: String,
        started: Instant,
        first_delay: Duration,
    ) -> FailureReport {
        let before = self.failing.get(&key);
        let failures = before.map_or(0, |before| before.failures).saturating_add(1);
        let is_new_reason = before.is_none_or(|before| before.reason != reason);
        let until = started + backoff_delay(first_delay, failures, self.max_delay);
        self.failing.insert(key, Failing { failures, until, reason });
        FailureReport { failures, is_new_reason }
    }

    pub(crate) fn is_backing_off(&self, key: &K, now: Instant) -> bool {
        self.failing.get(key).is_some_and(|failing| now < failing.until)
    }

    /// Forgets the failures of a key that succeeded.
    pub(crate) fn clear(&mut self, key: &K) {
        self.failing.remove(key);
    }

    /// Forgets all keys that are not wanted.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&K) -> bool) {
        self.failing.retain(|key, _| is_wanted(key));
    }
}

/// The delay after this many failures in a row.
fn backoff_delay(first: Duration, failures: u32, max: Duration) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(max)
}

/// The delays of a loop that retries. Each is twice as long as the one before it, up to a maximum.
#[derive(Debug)]
pub(crate) struct RetryDelay {
    next: Duration,
    max: Duration,
}

impl RetryDelay {
    pub(crate) const fn new(first: Duration, max: Duration) -> Self {
        Self { next: first, max }
    }

    /// The delay before the next retry.
    pub(crate) fn next(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).min(self.max);
        delay
    }
}

/// The delay after the first failure of a session's worker.
const FIRST_WORKER_DELAY: Duration = Duration::from_secs(2);
const MAX_WORKER_DELAY: Duration = Duration::from_secs(600);

/// Sessions whose workers fail. They are woken less and less often.
pub(crate) struct WorkerBackoff(Mutex<Backoff<SessionId>>);

impl Default for WorkerBackoff {
    fn default() -> Self {
        Self(Mutex::new(Backoff::new(MAX_WORKER_DELAY)))
    }
}

impl WorkerBackoff {
    /// Records a failure. Returns the number of failures in a row.
    pub(crate) fn record_failure(&self, slot: &SessionSlot) -> u32 {
        let Some(id) = slot.id.get() else { return 0 };
        lock(&self.0).record_failure(*id, String::new(), Instant::now(), FIRST_WORKER_DELAY).failures
    }

    /// Forgets the failures of a session that came to rest.
    pub(crate) fn clear(&self, slot: &SessionSlot) {
        if let Some(id) = slot.id.get() {
            lock(&self.0).clear(id);
        }
    }

    pub(crate) fn is_backing_off(&self, id: SessionId) -> bool {
        lock(&self.0).is_backing_off(&id, Instant::now())
    }
}

#[cfg(test)]
#[path = "backoff_tests.rs"]
mod tests;
