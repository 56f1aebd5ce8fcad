//! What providers say when something went wrong.
//!
//! The shapes don't collide, so one reader serves every protocol: an error under `error`, as an object or as a text, or at the
//! top as `message` or `detail`, alone or in a list. What it doesn't know it passes over.

use std::time::Duration;

use serde_json::Value;

use super::Said;

/// What follows these words in a message is how long to wait.
const WAIT_WORDS: [&str; 2] = ["try again in ", "retry in "];

/// What a gateway quotes of the provider behind it is cut here.
const LONGEST_QUOTE: usize = 2000;

/// What the body of an answer says that is an error; nothing if it is not the error of a model server.
pub(super) fn in_body(status: u16, body: &[u8]) -> Option<Said> {
    let said = in_value(&serde_json::from_slice(body).ok()?)?;
    Some(Said { status: Some(status), ..said })
}

/// What a value says that may be an error.
pub(super) fn in_value(value: &Value) -> Option<Said> {
    let value = value.as_array().map_or(value, |list| list.first().unwrap_or(value));
    let whole = value.as_object()?;
    let error = match whole.get("error") {
        None | Some(Value::Null) => value,
        Some(error) => error,
    };
    let mut said = in_error(error)?;
    if said.message.is_empty() && std::ptr::eq(error, value) {
        // Anything may have a type or a status.
        return None;
    }
    said.delay = said.delay.or_else(|| delay_field(value));
    Some(said)
}

/// What an error says: the value that stands under `error`.
pub(super) fn in_error(error: &Value) -> Option<Said> {
    if let Some(message) = error.as_str() {
        return Some(Said { message: message.to_owned(), delay: delay_in(message), ..Said::default() });
    }
    let mut message = ["message", "detail", "error_description", "msg"]
        .iter()
        .find_map(|field| error.get(field).filter(|value| !value.is_null()).map(words))
        .unwrap_or_default();
    let mut codes: Vec<String> = Vec::new();
    let mut note = |code: Option<&Value>| {
        let code = code.map(words).unwrap_or_default();
        if !code.is_empty() && code != "error" && !codes.contains(&code) {
            codes.push(code);
        }
    };
    ["type", "code", "status"].iter().for_each(|field| note(error.get(field)));
    let details = error.get("details").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    details.iter().for_each(|detail| note(detail.get("reason")));
    if codes.is_empty() && message.is_empty() {
        return None;
    }
    let metadata = error.get("metadata");
    if let Some(quoted) = metadata.and_then(|metadata| metadata.get("raw")).and_then(Value::as_str) {
        message = format!("{message}: {}", quoted.chars().take(LONGEST_QUOTE).collect::<String>());
    }
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay").and_then(Value::as_str).and_then(duration))
        .or_else(|| delay_field(error))
        .or_else(|| metadata.and_then(delay_field))
        .or_else(|| delay_in(&message));
    let status = ["code", "status", "http_code"].iter().find_map(|field| status(error.get(field)?));
    // llama.cpp
    let window = error.get("n_ctx").and_then(Value::as_u64).filter(|tokens| *tokens > 0);
    Some(Said { status, codes, message, delay, window })
}

/// A text as it stands, anything else as JSON.
fn words(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn status(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

fn delay_field(value: &Value) -> Option<Duration> {
    let milliseconds = value.get("retry_after_ms").and_then(Value::as_f64).map(|amount| amount / 1000.0);
    let seconds = || {
        ["retry_after", "retry_after_seconds"].iter().find_map(|field| {
            let amount = value.get(field)?;
            amount.as_f64().or_else(|| amount.as_str()?.parse().ok())
        })
    };
    let text = || value.get("retry_after").and_then(Value::as_str).and_then(duration);
    milliseconds.or_else(seconds).and_then(|amount| Duration::try_from_secs_f64(amount).ok()).or_else(text)
}

fn delay_in(message: &str) -> Option<Duration> {
    // Only letters of ASCII change, so that the places are the same in both.
    let lower = message.to_ascii_lowercase();
    WAIT_WORDS.iter().find_map(|words| {
        let (_, after) = lower.split_once(words)?;
        duration(after)
    })
}

/// A length of time at the beginning of a text: `17s`, `1.5s`, `20ms`, `6m0s`, `1h2m3s`, `20 seconds`.
pub(crate) fn duration(text: &str) -> Option<Duration> {
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
#[path = "said_tests.rs"]
mod tests;
