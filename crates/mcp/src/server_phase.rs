//! The phase of a server, and which of its starts the phase belongs to. A late report of a start that was stopped or replaced
//! changes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::Error;

/// The backoff after the first failed start. It doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_secs(60);

/// The phase of the newest start of a server. `C` is its connection.
#[derive(Debug)]
pub(crate) struct ServerPhase<C> {
    /// Counts the starts.
    generation: Generation,
    phase: Phase<C>,
}

/// A start of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

#[derive(Debug)]
pub(crate) enum Phase<C> {
    Stopped,
    Starting,
    Ready(Arc<C>),
    Failed(Failure),
}

#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    pub(crate) at: Instant,
    /// Failed starts in a row. 0 for a server that ran and ended: it may start again at once.
    pub(crate) count: u32,
}

impl Failure {
    fn may_retry(&self) -> bool {
        let Some(doublings) = self.count.checked_sub(1) else { return true };
        self.at.elapsed() >= FIRST_BACKOFF.saturating_mul(1 << doublings.min(6)).min(MAX_BACKOFF)
    }
}

impl<C> Default for ServerPhase<C> {
    fn default() -> Self {
        Self { generation: Generation(0), phase: Phase::Stopped }
    }
}

impl<C> ServerPhase<C> {
    pub(crate) fn phase(&self) -> &Phase<C> {
        &self.phase
    }

    /// Begins a start, unless the server runs, starts, or has failed a moment ago. Returns the start, and how many starts in a row have
    /// failed before it.
    pub(crate) fn begin_start(&mut self, is_closed: impl Fn(&C) -> bool) -> Option<(Generation, u32)> {
        let failures = match &self.phase {
            Phase::Stopped => Some(0),
            Phase::Starting => None,
            Phase::Ready(connection) => is_closed(connection).then_some(0),
            Phase::Failed(failure) => failure.may_retry().then_some(failure.count),
        }?;
        self.generation.0 += 1;
        self.phase = Phase::Starting;
        Some((self.generation, failures))
    }

    /// The start has succeeded. False if it is not wanted any more.
    pub(crate) fn set_ready(&mut self, generation: Generation, connection: Arc<C>) -> bool {
        let is_wanted = self.is_current(generation) && matches!(self.phase, Phase::Starting);
        if is_wanted {
            self.phase = Phase::Ready(connection);
        }
        is_wanted
    }

    /// The start has failed, or its server has ended. False if the server was stopped or started again meanwhile.
    pub(crate) fn fail(&mut self, generation: Generation, error: Error, count: u32) -> bool {
        let is_ours = self.is_current(generation) && !matches!(self.phase, Phase::Stopped);
        if is_ours {
            self.phase = Phase::Failed(Failure { error, at: Instant::now(), count });
        }
        is_ours
    }

    /// Fails the server if this is its connection.
    pub(crate) fn fail_connection(&mut self, failed: &Arc<C>, error: Error) -> bool {
        let is_its = matches!(&self.phase, Phase::Ready(connection) if Arc::ptr_eq(connection, failed));
        is_its && self.fail(self.generation, error, 0)
    }

    pub(crate) fn stop(&mut self) {
        self.phase = Phase::Stopped;
    }

    /// Stops the server if this is its newest start.
    pub(crate) fn stop_generation(&mut self, generation: Generation) -> bool {
        let is_ours = self.is_current(generation);
        if is_ours {
            self.stop();
        }
        is_ours
    }

    /// Whether this is the newest start, and it runs.
    pub(crate) fn is_running(&self, generation: Generation) -> bool {
        self.is_current(generation) && matches!(self.phase, Phase::Ready(_))
    }

    fn is_current(&self, generation: Generation) -> bool {
        self.generation == generation
    }
}

#[cfg(test)]
#[path = "server_phase_tests.rs"]
mod tests;
