//! The calls that are open on a connection: a server with an open call is not idle, and asks through it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use longhaul_protocol::SessionId;
use longhaul_tools::CallLine;

#[derive(Debug)]
pub(crate) struct OpenCalls(Mutex<Calls>);

#[derive(Debug)]
struct Calls {
    next: u64,
    open: BTreeMap<u64, (SessionId, CallLine)>,
    /// When the last call ended, or the connection began.
    last_used: Instant,
}

impl Default for OpenCalls {
    fn default() -> Self {
        Self(Mutex::new(Calls { next: 0, open: BTreeMap::new(), last_used: Instant::now() }))
    }
}

/// A call that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenCall {
    calls: Arc<OpenCalls>,
    number: u64,
}

impl OpenCalls {
    pub(crate) fn begin(self: &Arc<Self>, session: SessionId, line: CallLine) -> OpenCall {
        let mut calls = self.lock();
        let number = calls.next;
        calls.next += 1;
        calls.open.insert(number, (session, line));
        OpenCall { calls: Arc::clone(self), number }
    }

    /// The line to the session whose calls are open, if they are all of one session.
    pub(crate) fn only_line(&self) -> Option<CallLine> {
        let calls = self.lock();
        let (session, line) = calls.open.values().next()?;
        calls.open.values().all(|(other, _)| other == session).then(|| line.clone())
    }

    /// Since when no call has been open. `None` while one is.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let calls = self.lock();
        calls.open.is_empty().then_some(calls.last_used)
    }

    /// Restarts the idle time.
    pub(crate) fn touch(&self) {
        self.lock().last_used = Instant::now();
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        calls.open.remove(&self.number);
        calls.last_used = Instant::now();
    }
}
