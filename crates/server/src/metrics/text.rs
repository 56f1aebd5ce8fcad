//! The text form of Prometheus.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use super::{LATENCY_BOUNDS, MetricTables, Metrics};

/// A page of metrics.
#[derive(Default)]
struct MetricText(String);

impl MetricText {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escape(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.0, "{name}{labels} {value}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

/// A label's value as the format wants it.
fn escape(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl Metrics {
    pub(crate) fn to_text(&self) -> String {
        let mut text = MetricText::default();
        let tables = self.tables();
        write_requests(&mut text, &tables);
        let (connections, followers) = (&self.connections, &self.followers);
        let bytes = self.response_bytes.load(Ordering::Relaxed);
        text.single(
            "longhaul_connections",
            "gauge",
            "Open connections.",
            connections.load(Ordering::Relaxed),
        );
        text.single("longhaul_followers", "gauge", "Open event streams.", followers.load(Ordering::Relaxed));
        text.single("longhaul_response_bytes_total", "counter", "Bytes of response bodies.", bytes);
        write_turns(&mut text, &tables);
        text.0
    }
}

fn write_requests(text: &mut MetricText, tables: &MetricTables) {
    let name = "longhaul_http_requests_total";
    text.family(name, "counter", "Answered requests.");
    for ((method, route, status), count) in &tables.requests {
        let status = status.to_string();
        text.sample(name, &[("method", method), ("route", route), ("status", &status)], count);
    }
    let name = "longhaul_http_request_duration_seconds";
    text.family(name, "histogram", "Time until the headers of the answer.");
    for (route, histogram) in &tables.latency {
        let bucket = format!("{name}_bucket");
        for (count, bound) in histogram.buckets.iter().zip(LATENCY_BOUNDS) {
            text.sample(&bucket, &[("route", route), ("le", &bound.to_string())], count);
        }
        text.sample(&bucket, &[("route", route), ("le", "+Inf")], histogram.count);
        text.sample(&format!("{name}_sum"), &[("route", route)], histogram.sum);
        text.sample(&format!("{name}_count"), &[("route", route)], histogram.count);
    }
}

fn write_turns(text: &mut MetricText, tables: &MetricTables) {
    let name = "longhaul_turns_total";
    text.family(name, "counter", "Ended turns of sessions that this process runs.");
    for (outcome, count) in &tables.turns {
        text.sample(name, &[("outcome", outcome)], count);
    }
    let name = "longhaul_model_calls_total";
    text.family(name, "counter", "Model calls with a known usage.");
    for (model, figures) in &tables.models {
        text.sample(name, &[("model", model)], figures.calls);
    }
    let name = "longhaul_model_tokens_total";
    text.family(name, "counter", "Tokens of model calls. Input includes cached tokens.");
    for (model, figures) in &tables.models {
        for (kind, count) in
            [("input", figures.input), ("output", figures.output), ("cached", figures.cached)]
        {
            text.sample(name, &[("model", model), ("kind", kind)], count);
        }
    }
    let name = "longhaul_model_cost_dollars_total";
    text.family(name, "counter", "US dollars, where the price is known.");
    for (model, figures) in &tables.models {
        text.sample(name, &[("model", model)], figures.cost);
    }
    text.single(
        "longhaul_tasks_running",
        "gauge",
        "Background tasks that were started here and run.",
        tables.tasks_running,
    );
}
