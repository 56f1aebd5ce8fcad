//! Limits on how often something may happen.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests a second that a token may make for as long as it likes.
const REQUESTS_PER_SECOND: f64 = 1_000.0;
/// Requests that a token may make at once: a thousand followers that come back together, twice.
const REQUEST_BURST: f64 = 4_000.0;
/// Wrong tokens that an address may send at once.
const FAILURE_BURST: f64 = 20.0;
/// Wrong tokens a second that an address may send for as long as it likes.
const FAILURES_PER_SECOND: f64 = 0.5;
/// The addresses that are remembered. Past that, those with nothing to remember are forgotten.
const MAX_ADDRESSES: usize = 10_000;

/// A token bucket.
#[derive(Debug, Clone)]
pub(crate) struct RateBucket {
    level: f64,
    burst: f64,
    per_second: f64,
    at: Instant,
}

impl RateBucket {
    fn new(burst: f64, per_second: f64, now: Instant) -> Self {
        Self { level: burst, burst, per_second, at: now }
    }

    pub(crate) fn per_token(now: Instant) -> Self {
        Self::new(REQUEST_BURST, REQUESTS_PER_SECOND, now)
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.level = (self.level + passed * self.per_second).min(self.burst);
        self.at = now;
    }

    /// Takes one, or says how long to wait.
    pub(crate) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        self.refill(now);
        if self.level >= 1.0 {
            self.level -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64((1.0 - self.level) / self.per_second))
    }
}

/// Counts wrong tokens by address.
#[derive(Default)]
pub(crate) struct FailureLimiter(Mutex<HashMap<IpAddr, RateBucket>>);

impl FailureLimiter {
    /// Counts a wrong token. An error says how long to wait.
    pub(crate) fn count_failure(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MAX_ADDRESSES {
            buckets.retain(|_, bucket| {
                bucket.refill(now);
                bucket.level < bucket.burst
            });
        }
        let bucket = || RateBucket::new(FAILURE_BURST, FAILURES_PER_SECOND, now);
        buckets.entry(address).or_insert_with(bucket).take(now)
    }

    /// Whether this address has sent too many wrong tokens; how long to wait.
    pub(crate) fn blocked(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(bucket) = buckets.get_mut(&address) else { return Ok(()) };
        bucket.clone().take(now)
    }
}

#[cfg(test)]
#[path = "rate_tests.rs"]
mod tests;
