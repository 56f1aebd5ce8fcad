//! Y3: when a session was last active, according to two clocks.
//!
//! Activity in this process is measured with the monotonic clock. For sessions that were not active here since the
//! start, and for the activity of other processes, only the wall-clock time of the last record is known.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use longhaul_protocol::{At, SessionId, SessionRecord};
use tokio::time::Instant;

use super::scheduler::COMPACT_WITHIN;
use crate::clock::now;
use crate::runtime::lock;
use crate::session::state::State;

/// With more tracked sessions than this, those that have long been inactive are dropped.
const PRUNE_AT_SESSIONS: usize = 64;

/// When the sessions of this process were last active.
#[derive(Default)]
pub(crate) struct ActivityTracker(Mutex<TrackedSessions>);

#[derive(Default)]
struct TrackedSessions {
    sessions: HashMap<SessionId, SessionActivity>,
    /// The number of sessions at which the next pruning is due.
    prune_at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SessionActivity {
    active_at: Instant,
    /// Records up to this time are accounted for: they existed then, or this process wrote them.
    through: At,
    is_in_turn: bool,
    /// The session was used in this process. Other sessions are tracked only because a clock was wrong.
    is_ours: bool,
}

/// The current time of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockReading {
    pub(crate) steady: Instant,
    pub(crate) wall: At,
}

impl ClockReading {
    pub(crate) fn now() -> Self {
        Self { steady: Instant::now(), wall: now() }
    }
}

/// Whether a session counts as idle: strictly more than twice the check interval has passed.
pub(super) fn is_idle(idle_time: Duration, interval: Duration) -> bool {
    idle_time > interval.saturating_mul(2)
}

impl ActivityTracker {
    /// Records that the session is active now: the user sent an input or a slash command.
    pub(crate) fn record_activity(&self, id: SessionId) {
        lock(&self.0).record_at(id, ClockReading::now()).is_ours = true;
    }

    /// Records that the session's worker appended a record. A taken input and the end of a turn are activity. Other
    /// records are only remembered as written by this process.
    pub(crate) fn record_append(&self, id: SessionId, at: At, fact: &SessionRecord, state: &State) {
        if matches!(fact, SessionRecord::InputTaken(_) | SessionRecord::TurnEnded(_)) {
            self.record_activity(id);
        }
        if let Some(seen) = lock(&self.0).sessions.get_mut(&id) {
            seen.through = seen.through.max(at);
            seen.is_in_turn = state.turn.is_some();
            seen.is_ours = true;
        }
    }

    /// Whether the session was used in this process since the start.
    pub(crate) fn was_used_here(&self, id: SessionId) -> bool {
        lock(&self.0).sessions.get(&id).is_some_and(|seen| seen.is_ours)
    }

    /// Whether a turn was open after the last record that the worker of this process wrote.
    pub(super) fn is_in_turn(&self, id: SessionId) -> bool {
        lock(&self.0).sessions.get(&id).is_some_and(|seen| seen.is_in_turn)
    }

    /// How long the session has been inactive, according to this process and to its last record.
    pub(super) fn idle_time(&self, id: SessionId, last_at: At, clock: ClockReading) -> Duration {
        let seen = lock(&self.0).sessions.get(&id).copied();
        if last_at > clock.wall && seen.is_none_or(|seen| last_at > seen.through) {
            // A time in the future comes from a wrong clock. The session counts as active from now.
            lock(&self.0).record_at(id, ClockReading { wall: last_at, ..clock });
        }
        idle_time_of(seen, last_at, clock)
    }
}

impl TrackedSessions {
    fn record_at(&mut self, id: SessionId, clock: ClockReading) -> &mut SessionActivity {
        self.prune(clock.steady);
        let seen = self.sessions.entry(id).or_insert(SessionActivity {
            active_at: clock.steady,
            through: clock.wall,
            is_in_turn: false,
            is_ours: false,
        });
        seen.active_at = seen.active_at.max(clock.steady);
        seen.through = seen.through.max(clock.wall);
        seen
    }

    fn prune(&mut self, now: Instant) {
        if self.sessions.len() < self.prune_at {
            return;
        }
        self.sessions.retain(|_, seen| now.saturating_duration_since(seen.active_at) <= COMPACT_WITHIN);
        self.prune_at = PRUNE_AT_SESSIONS.max(2 * self.sessions.len());
    }
}

/// The later activity of the two clocks counts, so a wrong clock never makes the idle time longer.
fn idle_time_of(seen: Option<SessionActivity>, last_at: At, clock: ClockReading) -> Duration {
    let since_record = u64::try_from(clock.wall.0.saturating_sub(last_at.0)).unwrap_or(0);
    let since_record = Duration::from_millis(since_record);
    match seen {
        None => since_record,
        Some(seen) => {
            let since_seen = clock.steady.saturating_duration_since(seen.active_at);
            if last_at > seen.through { since_seen.min(since_record) } else { since_seen }
        }
    }
}

#[cfg(test)]
#[path = "activity_tests.rs"]
mod tests;
