//! One job at a time for each thing.

use std::collections::HashMap;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, Weak};

use crate::runtime::lock;

/// Jobs that are under way. Whoever asks for one that is waits for it and gets what it came to; if it was cut, they do it themselves.
pub(super) struct Joining<K, T>(Mutex<HashMap<K, Weak<Slot<T>>>>);

struct Slot<T> {
    gate: tokio::sync::Mutex<()>,
    done: Mutex<Done<T>>,
}

struct Done<T> {
    count: u64,
    last: Option<T>,
}

impl<K, T> Default for Joining<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq, T: Clone> Joining<K, T> {
    /// Does the job, or waits for the one that is under way.
    pub(super) async fn join(&self, key: K, job: impl Future<Output = T>) -> T {
        let slot = self.slot(key);
        let before = lock(&slot.done).count;
        let _alone = slot.gate.lock().await;
        {
            let done = lock(&slot.done);
            if let Some(last) = done.last.as_ref().filter(|_| done.count != before) {
                return last.clone();
            }
        }
        let came_to = job.await;
        let mut done = lock(&slot.done);
        done.count += 1;
        done.last = Some(came_to.clone());
        came_to
    }

    /// Does the job once the one that is under way is over: it may have begun too early to see what this one is for.
    pub(super) async fn alone(&self, key: K, job: impl Future<Output = T>) -> T {
        let slot = self.slot(key);
        let _alone = slot.gate.lock().await;
        job.await
    }

    fn slot(&self, key: K) -> Arc<Slot<T>> {
        let mut slots = lock(&self.0);
        if let Some(slot) = slots.get(&key).and_then(Weak::upgrade) {
            return slot;
        }
        slots.retain(|_, slot| slot.strong_count() > 0);
        let slot = Arc::new(Slot {
            gate: tokio::sync::Mutex::default(),
            done: Mutex::new(Done { count: 0, last: None }),
        });
        slots.insert(key, Arc::downgrade(&slot));
        slot
    }
}

#[cfg(test)]
#[path = "single_flight_tests.rs"]
mod tests;
