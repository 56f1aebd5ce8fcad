//! Which answers have reached their clients. A request that comes again is a retry if no client has received the answer to the first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use longhaul_agent::now;
use longhaul_protocol::{At, InputId, SessionId};
use tokio::sync::OwnedMutexGuard;

/// A request with the same body that does not count its retries is one for this long after the end of the turn. A client that
/// asks the same later wants a new answer.
pub(crate) const REPEAT_WINDOW_MS: i64 = 600_000;

/// The newest request of each session whose answer is awaited or was lost. A new process knows of none: a turn that
/// ended after the process began was not delivered by the process before it.
#[derive(Clone)]
pub(crate) struct Deliveries {
    began: At,
    newest: Arc<Mutex<HashMap<SessionId, Delivery>>>,
    /// The turns whose responses were fetched a short time ago.
    fetched: Arc<Mutex<HashMap<(SessionId, u64), At>>>,
    locks: NamedLocks,
}

/// Locks by name. There is one for each name that a request holds or waits for.
#[derive(Clone, Default)]
struct NamedLocks(Arc<Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>>);

impl NamedLocks {
    async fn lock(&self, name: String) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            locks.retain(|_, lock| lock.strong_count() > 0);
            let held = locks.get(&name).and_then(Weak::upgrade);
            held.unwrap_or_else(|| {
                let lock = Arc::default();
                locks.insert(name, Arc::downgrade(&lock));
                lock
            })
        };
        lock.lock_owned().await
    }
}

struct Delivery {
    request: InputId,
    connections: usize,
    is_delivered: bool,
}

/// What is known about the delivery of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryState {
    /// A client waits for it.
    Awaited,
    Delivered,
    /// All its connections broke before the answer was complete.
    Lost,
    /// The request was accepted by an earlier process; or it was delivered, or is not the newest of its session.
    Unknown,
}

impl Default for Deliveries {
    fn default() -> Self {
        Self { began: now(), newest: Arc::default(), fetched: Arc::default(), locks: NamedLocks::default() }
    }
}

impl Deliveries {
    /// When this process began to deliver.
    pub(crate) fn began(&self) -> At {
        self.began
    }

    /// Held while a request finds its session, so that two requests of one conversation can't both begin one.
    pub(crate) async fn lock_conversation(&self, name: String) -> OwnedMutexGuard<()> {
        self.locks.lock(name).await
    }

    /// Held while a request is put into its session, so that two requests can't both answer one question. It is taken after
    /// the lock of the conversation, never before.
    pub(crate) async fn lock_session(&self, session: SessionId) -> OwnedMutexGuard<()> {
        self.locks.lock(format!("session/{session}")).await
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Delivery>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn state(&self, session: SessionId, request: InputId) -> DeliveryState {
        match self.lock().get(&session).filter(|delivery| delivery.request == request) {
            None => DeliveryState::Unknown,
            Some(delivery) if delivery.is_delivered => DeliveryState::Delivered,
            Some(delivery) if delivery.connections > 0 => DeliveryState::Awaited,
            Some(_) => DeliveryState::Lost,
        }
    }

    /// A connection waits for the answer, until the guard is dropped.
    pub(crate) fn connect(&self, session: SessionId, request: InputId) -> DeliveryGuard {
        let mut newest = self.lock();
        let delivery =
            newest.entry(session).or_insert(Delivery { request, connections: 0, is_delivered: false });
        if delivery.request != request {
            *delivery = Delivery { request, connections: 0, is_delivered: false };
        }
        delivery.connections += 1;
        DeliveryGuard { deliveries: self.clone(), session, request }
    }

    /// A client has fetched the response of a turn that has ended, so no client waits for it.
    pub(crate) fn mark_fetched(&self, session: SessionId, turn: u64) {
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        // Without it, an older turn is not repeated either.
        fetched.retain(|_, at| now.0 - at.0 < REPEAT_WINDOW_MS);
        fetched.insert((session, turn), now);
    }

    pub(crate) fn is_fetched(&self, session: SessionId, turn: u64) -> bool {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&(session, turn))
    }

    /// Changes what is known of a request, and forgets what needs not be known: an answer that was delivered in this process
    /// counts as delivered without an entry.
    fn change(&self, session: SessionId, request: InputId, change: impl FnOnce(&mut Delivery)) {
        let mut newest = self.lock();
        if let Some(delivery) = newest.get_mut(&session).filter(|delivery| delivery.request == request) {
            change(delivery);
            if delivery.is_delivered && delivery.connections == 0 && request.made_at() >= self.began {
                newest.remove(&session);
            }
        }
    }
}

/// A connection that waits for an answer.
pub(crate) struct DeliveryGuard {
    deliveries: Deliveries,
    session: SessionId,
    request: InputId,
}

impl DeliveryGuard {
    /// The whole answer is on its way.
    pub(crate) fn mark_delivered(&self) {
        self.deliveries.change(self.session, self.request, |delivery| delivery.is_delivered = true);
    }
}

impl Drop for DeliveryGuard {
    fn drop(&mut self) {
        self.deliveries.change(self.session, self.request, |delivery| {
            delivery.connections = delivery.connections.saturating_sub(1);
        });
    }
}

#[cfg(test)]
#[path = "delivery_tests.rs"]
mod tests;
