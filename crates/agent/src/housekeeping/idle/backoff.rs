//! Y4: a session for which a job failed is tried again, ever less often, and its failure is told once for each reason.

use std::collections::HashMap;
use std::time::Duration;

use longhaul_protocol::SessionId;
use tokio::time::Instant;

/// However often a session has failed, it is tried again after this: what a model never answers as it should is paid for each time, for as long
/// as the session is looked at, which is a week.
const LONGEST: Duration = Duration::from_secs(6 * 60 * 60);

/// The sessions that have failed, and when they are tried again.
#[derive(Debug, Default)]
pub(super) struct Delays(HashMap<SessionId, Delayed>);

#[derive(Debug)]
struct Delayed {
    /// How often in a row it has failed.
    times: u32,
    until: Instant,
    reason: String,
}

/// Whether whoever watches knows of a failure by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    New,
    Told,
}

impl Delays {
    /// A session failed that was found at this check.
    pub(super) fn failed(
        &mut self,
        id: SessionId,
        reason: String,
        found_at: Instant,
        interval: Duration,
    ) -> News {
        let before = self.0.remove(&id);
        let times = before.as_ref().map_or(0, |before| before.times).saturating_add(1);
        let news = if before.is_some_and(|before| before.reason == reason) { News::Told } else { News::New };
        self.0.insert(id, Delayed { times, until: found_at + delay(interval, times), reason });
        news
    }

    /// Whether it is too early to try a session again.
    pub(super) fn is_too_early(&self, id: SessionId, now: Instant) -> bool {
        self.0.get(&id).is_some_and(|delayed| now < delayed.until)
    }

    /// It went well.
    pub(super) fn forget(&mut self, id: SessionId) {
        self.0.remove(&id);
    }

    /// Only these are still of interest.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(SessionId) -> bool) {
        self.0.retain(|id, _| is_wanted(*id));
    }
}

/// How long to wait after so many failures in a row: the interval at first, then twice as long each time.
fn delay(interval: Duration, times: u32) -> Duration {
    let doubled = 2_u32.saturating_pow(times.saturating_sub(1));
    interval.saturating_mul(doubled).min(LONGEST)
}

#[cfg(test)]
#[path = "backoff_tests.rs"]
mod tests;
