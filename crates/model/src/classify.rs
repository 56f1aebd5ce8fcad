//! What a failure is, by what a provider says. No network.

use std::time::Duration;

use crate::codec::{Said, duration};
use crate::{FailureClass, RateLimits};

/// Words in codes that mean that nothing more is paid for.
const QUOTA_CODES: &[&str] = &[
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "billing",
    "credit_balance",
    "payment_required",
    "quota_exceeded",
    "usage_limit_reached",
    "spend_limit",
];
/// Words for people that mean the same. A per-minute quota is told in similar words, but with a delay.
const QUOTA_WORDS: &[&str] =
    &["credit balance is too low", "insufficient balance", "insufficient credits", "more credits"];
const TOO_LONG_CODES: &[&str] =
    &["context_length_exceeded", "exceed_context_size", "request_too_large", "prompt_too_long"];
const TOO_LONG_WORDS: &[&str] = &[
    "maximum context length",
    "context length exceeded",
    "prompt is too long",
    "context window",
    "available context size",
    "context size has been exceeded",
    "input token count",
    "input is too long",
    "input length and",
    "too many tokens",
    "maximum prompt length",
    "reduce the length of the messages",
    "exceeds the context",
    "max_model_len",
    "`inputs` tokens + `max_new_tokens`",
    "`inputs` must have less than",
    "context length of only",
    "model's context length",
];
const NO_TOOLS_WORDS: &[&str] = &[
    "does not support tools",
    "does not support tool",
    "support tool use",
    "does not support function",
    "tool use is not supported",
    "tools are not supported",
    "tools is not supported",
    "function calling is not",
];
/// What servers and chat templates say about an order of roles. A template that raises an error comes with any status.
const ROLE_ORDER_WORDS: &[&str] = &[
    "system message must be",
    "system messages must be",
    "system role not supported",
    "system role is not supported",
    "must alternate",
    "should alternate",
    "unexpected role",
    "expected last role",
    "roles are supported",
    "after the optional system message",
    "consecutive messages",
    "same role",
    "role order",
    "order of roles",
    "last message must",
    "last message should",
    "first message must",
    "first message should",
    "must start with a user",
    "jinja",
    "chat template",
    "chat_template",
    "raise_exception",
    "templateerror",
];
const NO_MODEL_CODES: &[&str] = &["model_not_found", "model_not_available", "unknown_model"];
const REFUSED_CODES: &[&str] = &["content_filter", "content_policy", "safety", "prohibited_content"];
const KEY_CODES: &[&str] =
    &["authentication", "invalid_api_key", "permission", "unauthenticated", "unauthorized"];
const THROTTLED_CODES: &[&str] = &["rate_limit", "resource_exhausted", "too_many_requests"];
const OVERLOADED_CODES: &[&str] = &["overloaded", "unavailable", "engine_overloaded", "capacity"];
const INVALID_CODES: &[&str] =
    &["invalid_request", "invalid_argument", "invalid_prompt", "failed_precondition"];

/// What kind of failure it is.
pub(crate) fn class_of(said: &Said) -> FailureClass {
    let codes: Vec<String> = said.codes.iter().map(|code| code.to_lowercase()).collect();
    let message = said.message.to_lowercase();
    let code = |words: &[&str]| codes.iter().any(|code| words.iter().any(|word| code.contains(word)));
    let words = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let is_server = said.status.is_some_and(|status| status >= 500);
    let is_paid_up = code(QUOTA_CODES) || words(QUOTA_WORDS);
    let no_plan = message.contains("exceeded your current quota") && said.delay.is_none();
    if said.status == Some(402) || (!is_server && (is_paid_up || no_plan)) {
        return FailureClass::Quota;
    }
    // A server that is at its end may say anything.
    if !is_server {
        if code(TOO_LONG_CODES) || (said.status != Some(429) && words(TOO_LONG_WORDS)) {
            return FailureClass::TooLong;
        }
        if words(NO_TOOLS_WORDS) {
            return FailureClass::NoTools;
        }
        if code(NO_MODEL_CODES) {
            return FailureClass::NotFound;
        }
        if code(REFUSED_CODES) {
            return FailureClass::Refused;
        }
    }
    let is_about_roles = words(ROLE_ORDER_WORDS)
        || (matches!(said.status, Some(400 | 422)) && has_word(&message, &["role", "roles"]));
    if matches!(said.status, None | Some(400 | 422 | 500)) && is_about_roles {
        return FailureClass::RoleOrder;
    }
    match said.status {
        Some(429) => FailureClass::Throttled,
        Some(529 | 503) => FailureClass::Overloaded,
        Some(_) if is_server && code(OVERLOADED_CODES) => FailureClass::Overloaded,
        Some(408 | 504) => FailureClass::Timeout,
        Some(409 | 425) => FailureClass::Server,
        Some(401 | 403) => FailureClass::Key,
        Some(404) => FailureClass::NotFound,
        Some(413) => FailureClass::TooLong,
        Some(500..) => FailureClass::Server,
        // Some proxies pass an overload on with a status of their own.
        Some(_) if code(OVERLOADED_CODES) => FailureClass::Overloaded,
        Some(400..) => FailureClass::Invalid,
        // The codes of an error that came in the middle of a stream are all that there is.
        None | Some(_) => {
            if code(THROTTLED_CODES) {
                FailureClass::Throttled
            } else if code(OVERLOADED_CODES) {
                FailureClass::Overloaded
            } else if code(KEY_CODES) {
                FailureClass::Key
            } else if code(INVALID_CODES) {
                FailureClass::Invalid
            } else {
                FailureClass::Server
            }
        }
    }
}

fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|found| words.contains(&found))
}

/// How long the server wants us to wait, by the head of its answer.
pub(crate) fn server_delay(headers: &[(String, String)], now: jiff::Timestamp) -> Option<Duration> {
    let value = |name: &str| headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim());
    if let Some(milliseconds) = value("retry-after-ms").and_then(|value| value.parse::<f64>().ok()) {
        return seconds(milliseconds / 1_000.0);
    }
    if let Some(after) = value("retry-after") {
        if let Ok(after) = after.parse::<f64>() {
            return seconds(after);
        }
        if let Some(delay) = moment(after).and_then(|then| until(then, now)) {
            return Some(delay);
        }
    }
    reset(headers, now)
}

/// What the head of an answer says about how much more its server takes, as it says it.
pub(crate) fn rate_limits(headers: &[(String, String)]) -> RateLimits {
    headers.iter().filter(|(name, _)| name.contains("ratelimit-")).cloned().collect()
}

/// The latest moment at which something that is used up is there again. Where nothing is said about what is left, all count.
fn reset(headers: &[(String, String)], now: jiff::Timestamp) -> Option<Duration> {
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
        resets.filter_map(|(name, value)| Some((name, reset_value(value.trim(), now)?))).collect();
    let says_what_is_left = known.iter().any(|(name, _)| left(name).is_some());
    let counts = |name: &str| !says_what_is_left || left(name) == Some("0");
    known.iter().filter(|(name, _)| counts(name)).map(|(_, delay)| *delay).max()
}

/// `1s`, `6m0s`, `20ms`, seconds, a moment in seconds or milliseconds since 1970, or a date.
fn reset_value(value: &str, now: jiff::Timestamp) -> Option<Duration> {
    if let Ok(number) = value.parse::<f64>() {
        let now = now.as_millisecond();
        #[allow(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit")]
        let since = |milliseconds: f64| seconds(((milliseconds - now as f64) / 1_000.0).max(0.0));
        return match number {
            ..1e9 => seconds(number),
            ..1e11 => since(number * 1_000.0),
            _ => since(number),
        };
    }
    duration(value).or_else(|| moment(value).and_then(|then| until(then, now)))
}

fn moment(text: &str) -> Option<jiff::Timestamp> {
    let date = || jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
    text.parse().ok().or_else(date)
}

fn until(then: jiff::Timestamp, now: jiff::Timestamp) -> Option<Duration> {
    Some(Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO))
}

fn seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
