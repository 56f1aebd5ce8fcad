//! How long this process is certain to hold a lease without asking the database.
//!
//! A lease is valid for a time that begins when the database grants or renews it, so certainly not before the statement was sent. An
//! append renews a lease only if it gains a quarter by that, so three quarters are certain after any of the three. The clock
//! counts the time in which the machine was suspended or the process was stopped, and no one can set it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longhaul_journal::Lease;
use rustix::time::{ClockId, clock_gettime};

/// Tenths of its time for which a lease is certain. Less than three quarters, because clocks don't run at the same speed.
const CERTAIN_TENTHS: u32 = 7;

/// The time since the machine started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SinceBoot(Duration);

impl SinceBoot {
    pub(crate) fn now() -> Self {
        #[cfg(target_os = "linux")]
        let time = clock_gettime(ClockId::Boottime);
        #[cfg(not(target_os = "linux"))]
        let time = clock_gettime(ClockId::Monotonic);
        Self(Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0)))
    }
}

/// When the leases of this process were last confirmed, by their tokens.
#[derive(Default)]
pub(crate) struct LeaseClock(Mutex<HashMap<u64, SinceBoot>>);

impl LeaseClock {
    /// The database has granted or renewed a lease by a statement that was sent at this time.
    pub(crate) fn confirm(&self, lease: &Lease, sent: SinceBoot) {
        let mut known = self.known();
        let confirmed = known.entry(lease.token).or_insert(sent);
        *confirmed = (*confirmed).max(sent);
    }

    pub(crate) fn forget(&self, lease: &Lease) {
        self.known().remove(&lease.token);
    }

    /// Whether no other process can hold the lease now.
    pub(crate) fn is_certain(&self, lease: &Lease, expiry: Duration) -> bool {
        let Some(SinceBoot(confirmed)) = self.known().get(&lease.token).copied() else { return false };
        SinceBoot::now().0.saturating_sub(confirmed) <= expiry * CERTAIN_TENTHS / 10
    }

    fn known(&self) -> MutexGuard<'_, HashMap<u64, SinceBoot>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
