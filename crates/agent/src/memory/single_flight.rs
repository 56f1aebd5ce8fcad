//! Single flight: one job at a time for each key. Concurrent callers share its result.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};

use crate::runtime::lock;

/// The running jobs. A caller whose job already runs waits for it and gets its result. If that job was cancelled, the
/// caller runs its own.
pub(super) struct SingleFlight<K, T> {
    slots: Mutex<HashMap<K, Weak<JobSlot<T>>>>,
}

struct JobSlot<T> {
    gate: tokio::sync::Mutex<()>,
    finished: Mutex<FinishedJobs<T>>,
}

struct FinishedJobs<T> {
    count: u64,
    last: Option<T>,
}

impl<K, T> Default for SingleFlight<K, T> {
    fn default() -> Self {
        Self { slots: Mutex::default() }
    }
}

impl<K: Hash + Eq, T: Clone> SingleFlight<K, T> {
    /// Runs the job, or waits for the running one and shares its result.
    pub(super) async fn run_shared(&self, key: K, job: impl Future<Output = T>) -> T {
        let slot = self.slot(key);
        let before = lock(&slot.finished).count;
        let _alone = slot.gate.lock().await;
        {
            let done = lock(&slot.finished);
            if let Some(last) = done.last.as_ref().filter(|_| done.count != before) {
                return last.clone();
            }
        }
        let result = job.await;
        let mut done = lock(&slot.finished);
        done.count += 1;
        done.last = Some(result.clone());
        result
    }

    /// Runs the job after the running one, which may have started too early to include what this caller needs.
    pub(super) async fn run_exclusive(&self, key: K, job: impl Future<Output = T>) -> T {
        let slot = self.slot(key);
        let _alone = slot.gate.lock().await;
        job.await
    }

    fn slot(&self, key: K) -> Arc<JobSlot<T>> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(&key).and_then(Weak::upgrade) {
            return slot;
        }
        slots.retain(|_, slot| slot.strong_count() > 0);
        let slot = Arc::new(JobSlot {
            gate: tokio::sync::Mutex::default(),
            finished: Mutex::new(FinishedJobs { count: 0, last: None }),
        });
        slots.insert(key, Arc::downgrade(&slot));
        slot
    }
}

#[cfg(test)]
#[path = "single_flight_tests.rs"]
mod tests;
