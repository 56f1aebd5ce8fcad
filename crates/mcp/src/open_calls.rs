//! The calls that are open on a connection. A server with an open call is not idle, and its questions go to the session of that call. A
//! call times out if its server reports no progress, but not while the user is being asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longhaul_protocol::SessionId;
use longhaul_tools::CallLine;
use rmcp::model::ProgressToken;

#[derive(Debug)]
pub(crate) struct OpenCalls(Mutex<Calls>);

#[derive(Debug)]
struct Calls {
    next: u64,
    open: BTreeMap<u64, Call>,
    /// The sessions whose user is being asked, once for each question.
    asked: Vec<SessionId>,
    /// When the last call ended, or the connection began.
    last_used: Instant,
}

#[derive(Debug)]
struct Call {
    session: SessionId,
    line: CallLine,
    /// The token of its request. `None` before the request is sent.
    token: Option<ProgressToken>,
    /// When the server was last heard of about this call, or the user has answered.
    last_sign: Instant,
}

impl Default for OpenCalls {
    fn default() -> Self {
        let (open, asked) = (BTreeMap::new(), Vec::new());
        Self(Mutex::new(Calls { next: 0, open, asked, last_used: Instant::now() }))
    }
}

/// A call that is open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenCall {
    calls: Arc<OpenCalls>,
    number: u64,
}

/// A question to the user, which is open until this is dropped.
#[derive(Debug)]
pub(crate) struct OpenQuestion {
    calls: Arc<OpenCalls>,
    session: SessionId,
    pub(crate) line: CallLine,
}

impl OpenCalls {
    pub(crate) fn begin(self: &Arc<Self>, session: SessionId, line: CallLine) -> OpenCall {
        let mut calls = self.lock();
        let number = calls.next;
        calls.next += 1;
        calls.open.insert(number, Call { session, line, token: None, last_sign: Instant::now() });
        OpenCall { calls: Arc::clone(self), number }
    }

    /// Begins a question to the session whose calls are open. `None` if they are not all of one session.
    pub(crate) fn begin_question(self: &Arc<Self>) -> Option<OpenQuestion> {
        let mut calls = self.lock();
        let Call { session, line, .. } = calls.open.values().next()?;
        let (session, line) = (*session, line.clone());
        if calls.open.values().any(|call| call.session != session) {
            return None;
        }
        calls.asked.push(session);
        Some(OpenQuestion { calls: Arc::clone(self), session, line })
    }

    /// The server reported progress of the request with this token.
    pub(crate) fn note_progress(&self, token: &ProgressToken) {
        for call in self.lock().open.values_mut().filter(|call| call.token.as_ref() == Some(token)) {
            call.last_sign = Instant::now();
        }
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

impl OpenCall {
    /// Notes that a request of the call was sent with this token.
    pub(crate) fn note_sent(&self, token: ProgressToken) {
        if let Some(call) = self.calls.lock().open.get_mut(&self.number) {
            (call.token, call.last_sign) = (Some(token), Instant::now());
        }
    }

    /// Returns when the server has given no sign of progress for this long. Time in which the user is asked does not count.
    pub(crate) async fn timed_out(&self, timeout: Duration) {
        while let Some(left) = self.time_left(timeout) {
            tokio::time::sleep(left).await;
        }
    }

    /// How long the server may still take, as far as is known now. `None` if it has timed out.
    fn time_left(&self, timeout: Duration) -> Option<Duration> {
        let calls = self.calls.lock();
        let call = calls.open.get(&self.number)?;
        if calls.asked.contains(&call.session) {
            return Some(timeout);
        }
        timeout.checked_sub(call.last_sign.elapsed()).filter(|left| !left.is_zero())
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let (session, mut calls) = (self.session, self.calls.lock());
        if let Some(at) = calls.asked.iter().position(|asked| *asked == session) {
            calls.asked.swap_remove(at);
        }
        for call in calls.open.values_mut().filter(|call| call.session == session) {
            call.last_sign = Instant::now();
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        calls.open.remove(&self.number);
        calls.last_used = Instant::now();
    }
}
