//! Figures for Prometheus: about requests, from the middleware, and about turns, from the runtime's events.
//!
//! Labels are route patterns, methods, statuses, outcomes and models, never ids or keys, so their number is bounded.

mod text;
mod turns;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use turns::count_turns;

/// The upper bounds of the latency histogram, in seconds.
const LATENCY_BOUNDS: [f64; 10] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0];

/// All figures of a server.
#[derive(Default)]
pub(crate) struct Metrics {
    connections: AtomicI64,
    followers: AtomicI64,
    response_bytes: AtomicU64,
    tables: Mutex<MetricTables>,
}

#[derive(Default)]
struct MetricTables {
    /// By method, route and status.
    requests: BTreeMap<(String, String, u16), u64>,
    /// By route.
    latency: BTreeMap<String, Histogram>,
    /// By outcome.
    turns: BTreeMap<&'static str, u64>,
    /// By model.
    models: BTreeMap<String, ModelFigures>,
    tasks_running: u64,
}

#[derive(Default)]
struct Histogram {
    buckets: [u64; LATENCY_BOUNDS.len()],
    count: u64,
    sum: f64,
}

/// What the calls of a model add up to.
#[derive(Default)]
struct ModelFigures {
    calls: u64,
    input: u64,
    output: u64,
    cached: u64,
    cost: f64,
}

impl Histogram {
    fn observe(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        for (bucket, bound) in self.buckets.iter_mut().zip(LATENCY_BOUNDS) {
            *bucket += u64::from(seconds <= bound);
        }
        self.count += 1;
        self.sum += seconds;
    }
}

impl Metrics {
    fn tables(&self) -> MutexGuard<'_, MetricTables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request whose handler has answered. The time of a stream's body does not count.
    pub(crate) fn count_request(&self, method: &str, route: &str, status: u16, duration: Duration) {
        let mut tables = self.tables();
        *tables.requests.entry((method.to_owned(), route.to_owned(), status)).or_default() += 1;
        tables.latency.entry(route.to_owned()).or_default().observe(duration);
    }

    pub(crate) fn count_bytes(&self, bytes: u64) {
        self.response_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a connection until the guard is dropped.
    pub(crate) fn open_connection(self: &Arc<Self>) -> GaugeGuard {
        GaugeGuard::new(self, |metrics| &metrics.connections)
    }

    /// Counts a follower until the guard is dropped.
    pub(crate) fn open_follower(self: &Arc<Self>) -> GaugeGuard {
        GaugeGuard::new(self, |metrics| &metrics.followers)
    }
}

/// One that is counted now.
pub(crate) struct GaugeGuard {
    metrics: Arc<Metrics>,
    gauge: fn(&Metrics) -> &AtomicI64,
}

impl GaugeGuard {
    fn new(metrics: &Arc<Metrics>, gauge: fn(&Metrics) -> &AtomicI64) -> Self {
        gauge(metrics).fetch_add(1, Ordering::Relaxed);
        Self { metrics: metrics.clone(), gauge }
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        (self.gauge)(&self.metrics).fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
