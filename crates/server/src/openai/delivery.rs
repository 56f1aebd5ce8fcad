//! Which answers have reached their clients. A request that comes again is a retry if nobody got the answer to the first.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use longhaul_protocol::{At, InputId, SessionId};

/// The newest request of each session, and whether its answer was delivered. A new process knows of none: a turn that
/// ended after the process began was not delivered by the process before it.
#[derive(Clone)]
pub(crate) struct Deliveries {
    began: At,
    newest: Arc<Mutex<HashMap<SessionId, Delivery>>>,
    /// Held while a request finds its session, so that two requests can't both begin one.
    placing: Arc<tokio::sync::Mutex<()>>,
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
    /// The request was accepted by an earlier process, or is not the newest of its session.
    Unknown,
}

impl Default for Deliveries {
    fn default() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let began = At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        Self { began, newest: Arc::default(), placing: Arc::default() }
    }
}

impl Deliveries {
    /// When this process began to deliver.
    pub(crate) fn began(&self) -> At {
        self.began
    }

    pub(crate) async fn lock_placing(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.placing.lock().await
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

    fn change(&self, session: SessionId, request: InputId, change: impl FnOnce(&mut Delivery)) {
        if let Some(delivery) = self.lock().get_mut(&session).filter(|delivery| delivery.request == request) {
            change(delivery);
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
