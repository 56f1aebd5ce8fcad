//! Limits on how often something may happen.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens that an address may send.
const FAILURE_RATE: RateLimit = RateLimit { burst: 20.0, per_second: 0.5 };
/// The addresses that are remembered. Past that, those with nothing to remember are forgotten.
const MAX_ADDRESSES: usize = 10_000;

/// How often something may happen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// At once.
    pub burst: f64,
    /// A second, for as long as one likes.
    pub per_second: f64,
}

impl RateLimit {
    /// What a token may request. The burst is a thousand followers that come back together, and do so again.
    pub const REQUESTS: Self = Self { burst: 4_000.0, per_second: 1_000.0 };
}

/// A token bucket.
#[derive(Debug, Clone)]
pub(crate) struct RateBucket {
    /// What was taken and has not come back yet.
    taken: f64,
    at: Instant,
}

impl RateBucket {
    pub(crate) fn new(now: Instant) -> Self {
        Self { taken: 0.0, at: now }
    }

    fn refill(&mut self, limit: RateLimit, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.taken = (self.taken - passed * limit.per_second).max(0.0);
        self.at = now;
    }

    /// Takes one, or says how long to wait.
    pub(crate) fn take(&mut self, limit: RateLimit, now: Instant) -> Result<(), Duration> {
        self.refill(limit, now);
        let missing = self.taken + 1.0 - limit.burst;
        if missing <= 0.0 {
            self.taken += 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64(missing / limit.per_second))
    }
}

/// Counts wrong tokens by address.
#[derive(Default)]
pub(crate) struct FailureLimiter(Mutex<HashMap<IpAddr, RateBucket>>);

impl FailureLimiter {
    /// Counts a wrong token. An error says how long to wait.
    pub(crate) fn count_failure(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let address = network_of(address);
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_ADDRESSES {
            buckets.retain(|_, bucket| {
                bucket.refill(FAILURE_RATE, now);
                bucket.taken > 0.0
            });
        }
        buckets.entry(address).or_insert_with(|| RateBucket::new(now)).take(FAILURE_RATE, now)
    }

    /// Whether this address has sent too many wrong tokens; how long to wait.
    pub(crate) fn blocked(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bucket) = buckets.get_mut(&network_of(address)) else { return Ok(()) };
        bucket.clone().take(FAILURE_RATE, now)
    }
}

/// What counts as one client: an IPv4 address, or the network of an IPv6 address, of which any host has all addresses.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;
