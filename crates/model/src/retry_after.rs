//! How long a server asks to wait before a retry: the `Retry-After` header and the fields and phrases that providers
//! use instead. Pure.

use std::time::Duration;

use serde_json::Value;

/// Phrases in an error message that precede a delay.
const WAIT_WORDS: [&str; 2] = ["try again in ", "retry in "];

/// The delay in the response headers: `Retry-After`, `retry-after-ms`, or the reset of an exhausted rate limit.
pub(crate) fn delay_from_headers(headers: &[(String, String)], now: jiff::Timestamp) -> Option<Duration> {
    let value = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
    if let Some(milliseconds) = value("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return from_seconds(milliseconds / 1_000.0);
    }
    if let Some(after) = value("retry-after") {
        if let Ok(after) = after.parse::<f64>() {
            return from_seconds(after);
        }
        if let Some(delay) = parse_time(after).and_then(|then| until(then, now)) {
            return Some(delay);
        }
    }
    rate_limit_reset(headers, now)
}

/// When the last exhausted rate limit resets. If there are no `remaining` headers, all resets count.
fn rate_limit_reset(headers: &[(String, String)], now: jiff::Timestamp) -> Option<Duration> {
    let resets = headers.iter().filter_map(|(name, value)| {
        let name = name.strip_suffix("-reset").map(str::to_owned).or_else(|| {
            name.contains("ratelimit-reset").then(|| name.replace("ratelimit-reset", "ratelimit-remaining"))
        })?;
        name.contains("ratelimit").then_some((name, value))
    });
    let left = |name: &str| {
        let name = if name.contains("remaining") { name.to_owned() } else { format!("{name}-remaining") };
        headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.trim())
    };
    let known: Vec<(String, Duration)> =
        resets.filter_map(|(name, value)| Some((name, parse_reset(value.trim(), now)?))).collect();
    let says_what_is_left = known.iter().any(|(name, _)| left(name).is_some());
    let counts = |name: &str| !says_what_is_left || left(name) == Some("0");
    known.iter().filter(|(name, _)| counts(name)).map(|(_, delay)| *delay).max()
}

/// `1s`, `6m0s`, `20ms`, seconds, a Unix time in seconds or milliseconds, or a date.
fn parse_reset(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    if let Ok(number) = value.parse::<f64>() {
        let now = now.as_millisecond();
        #[allow(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit")]
        let since = |milliseconds: f64| from_seconds(((milliseconds - now as f64) / 1_000.0).max(0.0));
        return match number {
            ..1e9 => from_seconds(number),
            ..1e11 => since(number * 1_000.0),
            _ => since(number),
        };
    }
    parse_duration(value).or_else(|| parse_time(value).and_then(|then| until(then, now)))
}

fn parse_time(text: &str) -> Option<jiff::Timestamp> {
    let date = || jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
    text.parse().ok().or_else(date)
}

fn until(then: jiff::Timestamp, now: jiff::Timestamp) -> Option<Duration> {
    Some(Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn from_seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

/// The delay in the fields of an error: `retry_after_ms`, `retry_after`, `retry_after_seconds`.
pub(crate) fn delay_from_body(value: &Value) -> Option<Duration> {
    let milliseconds = value.get("retry_after_ms").and_then(Value::as_f64).map(|amount| amount / 1000.0);
    let seconds = || {
        ["retry_after", "retry_after_seconds"].iter().find_map(|field| {
            let amount = value.get(field)?;
            amount.as_f64().or_else(|| amount.as_str()?.parse().ok())
        })
    };
    let text = || value.get("retry_after").and_then(Value::as_str).and_then(parse_duration);
    milliseconds.or_else(seconds).and_then(|amount| Duration::try_from_secs_f64(amount).ok()).or_else(text)
}

/// The delay in the words of an error message.
pub(crate) fn delay_from_message(message: &str) -> Option<Duration> {
    let lower = message.to_ascii_lowercase();
    WAIT_WORDS.iter().find_map(|words| {
        let (_, after) = lower.split_once(words)?;
        parse_duration(after)
    })
}

/// A duration at the beginning of a text: `17s`, `1.5s`, `20ms`, `6m0s`, `1h2m3s`, `20 seconds`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (mut rest, mut seconds, mut found) = (text, 0.0, false);
    loop {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(amount) = rest[..digits].trim_end_matches('.').parse::<f64>() else { break };
        let after = rest[digits..].trim_start_matches(' ');
        let letters = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        seconds += match &after[..letters] {
            "ms" | "milliseconds" | "millisecond" => amount / 1000.0,
            "s" | "sec" | "seconds" | "second" => amount,
            "m" | "min" | "minutes" | "minute" => amount * 60.0,
            "h" | "hours" | "hour" => amount * 3600.0,
            "d" | "days" | "day" => amount * 86400.0,
            _ => break,
        };
        found = true;
        rest = &after[letters..];
    }
    Duration::try_from_secs_f64(seconds).ok().filter(|_| found)
}

#[cfg(test)]
#[path = "retry_after_tests.rs"]
mod tests;
