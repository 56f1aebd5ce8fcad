//! Y3: when a session was last active.
//!
//! Two clocks tell. What was seen here is timed by the steady one, which nobody sets; of a session that was not seen since the
//! start, and of what other processes did in one that was, there is only the time of the last record, by the clock on the wall.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use longhaul_protocol::{At, SessionId, SessionRecord};
use tokio::time::Instant;

use super::RECENT;
use crate::clock::now;
use crate::runtime::lock;
use crate::session::state::State;

/// How many sessions may be known before it is looked which of them were not active for long.
const CROWDED: usize = 64;

/// When the sessions that were seen here were last active.
#[derive(Default)]
pub(crate) struct Activity(Mutex<Sessions>);

#[derive(Default)]
struct Sessions {
    seen: HashMap<SessionId, Seen>,
    /// When there are so many, those that were not active for long are dropped.
    crowded_at: usize,
}

/// What was seen of a session here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    active_at: Instant,
    /// A record that is not newer than this tells nothing new: it was there by then, or was written here.
    through: At,
    is_in_turn: bool,
    /// Somebody here had to do with it. Of others it is only known that their clock was wrong.
    is_ours: bool,
}

/// This moment, by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub(crate) steady: Instant,
    pub(crate) wall: At,
}

impl Moment {
    pub(crate) fn now() -> Self {
        Self { steady: Instant::now(), wall: now() }
    }
}

/// Whether a session that was not active for so long is idle: strictly more than twice the check interval.
pub(super) fn is_idle(quiet: Duration, interval: Duration) -> bool {
    quiet > interval.saturating_mul(2)
}

impl Activity {
    /// A session is active now: an input came, or a slash command.
    pub(crate) fn noted(&self, id: SessionId) {
        lock(&self.0).noted_at(id, Moment::now()).is_ours = true;
    }

    /// The session's worker here has recorded something, which is in the state by now. An input that was taken and a turn's end
    /// are activity; of other records it is only known that they are our own.
    pub(crate) fn recorded(&self, id: SessionId, at: At, fact: &SessionRecord, state: &State) {
        if matches!(fact, SessionRecord::InputTaken(_) | SessionRecord::TurnEnded(_)) {
            self.noted(id);
        }
        if let Some(seen) = lock(&self.0).seen.get_mut(&id) {
            seen.through = seen.through.max(at);
            seen.is_in_turn = state.turn.is_some();
            seen.is_ours = true;
        }
    }

    /// Whether anybody here has had to do with a session since the start.
    pub(crate) fn has_seen(&self, id: SessionId) -> bool {
        lock(&self.0).seen.get(&id).is_some_and(|seen| seen.is_ours)
    }

    /// Whether the session's worker here was in a turn when it last recorded something.
    pub(super) fn is_in_turn(&self, id: SessionId) -> bool {
        lock(&self.0).seen.get(&id).is_some_and(|seen| seen.is_in_turn)
    }

    /// For how long a session was not active, by what was seen here and by its last record.
    pub(super) fn quiet(&self, id: SessionId, last_at: At, moment: Moment) -> Duration {
        let seen = lock(&self.0).seen.get(&id).copied();
        if last_at > moment.wall && seen.is_none_or(|seen| last_at > seen.through) {
            // A time that has not come yet was noted by a clock that was wrong: it counts from here on.
            lock(&self.0).noted_at(id, Moment { wall: last_at, ..moment });
        }
        quiet_for(seen, last_at, moment)
    }
}

impl Sessions {
    fn noted_at(&mut self, id: SessionId, moment: Moment) -> &mut Seen {
        self.clear_out(moment.steady);
        let seen = self.seen.entry(id).or_insert(Seen {
            active_at: moment.steady,
            through: moment.wall,
            is_in_turn: false,
            is_ours: false,
        });
        seen.active_at = seen.active_at.max(moment.steady);
        seen.through = seen.through.max(moment.wall);
        seen
    }

    fn clear_out(&mut self, now: Instant) {
        if self.seen.len() < self.crowded_at {
            return;
        }
        self.seen.retain(|_, seen| now.saturating_duration_since(seen.active_at) <= RECENT);
        self.crowded_at = CROWDED.max(2 * self.seen.len());
    }
}

/// For how long a session was not active. It never moves back: of what both clocks tell, the later counts.
fn quiet_for(seen: Option<Seen>, last_at: At, moment: Moment) -> Duration {
    let since_record = u64::try_from(moment.wall.0.saturating_sub(last_at.0)).unwrap_or(0);
    let since_record = Duration::from_millis(since_record);
    match seen {
        None => since_record,
        Some(seen) => {
            let since_seen = moment.steady.saturating_duration_since(seen.active_at);
            if last_at > seen.through { since_seen.min(since_record) } else { since_seen }
        }
    }
}

#[cfg(test)]
#[path = "activity_tests.rs"]
mod tests;
