//! Parses the errors of providers.
//!
//! The shapes don't collide, so one parser serves every protocol: an error under `error`, as an object or a string, or
//! at the top as `message` or `detail`, alone or in a list. Unknown fields are ignored.

use serde_json::Value;

use super::ProviderError;
use crate::retry_after::{delay_from_body, delay_from_message, parse_duration};

const MAX_QUOTE_CHARS: usize = 2000;

/// The error in a response body. `None` if it is not the error of a model server.
pub(super) fn parse_error_body(status: u16, body: &[u8]) -> Option<ProviderError> {
    let error = parse_error_value(&serde_json::from_slice(body).ok()?)?;
    Some(ProviderError { status: Some(status), ..error })
}

/// The error in a JSON value that may be one.
pub(super) fn parse_error_value(value: &Value) -> Option<ProviderError> {
    let value = value.as_array().map_or(value, |list| list.first().unwrap_or(value));
    let whole = value.as_object()?;
    let error = match whole.get("error") {
        None | Some(Value::Null) => value,
        Some(error) => error,
    };
    let mut parsed = parse_error_object(error)?;
    if parsed.message.is_empty() && std::ptr::eq(error, value) {
        return None;
    }
    parsed.delay = parsed.delay.or_else(|| delay_from_body(value));
    Some(parsed)
}

/// The error in the value of `error`.
pub(super) fn parse_error_object(error: &Value) -> Option<ProviderError> {
    if let Some(message) = error.as_str() {
        return Some(ProviderError {
            message: message.to_owned(),
            delay: delay_from_message(message),
            ..ProviderError::default()
        });
    }
    let mut message = ["message", "detail", "error_description", "msg"]
        .iter()
        .find_map(|field| error.get(field).filter(|value| !value.is_null()).map(text_of))
        .unwrap_or_default();
    let mut codes: Vec<String> = Vec::new();
    let mut note = |code: Option<&Value>| {
        let code = code.map(text_of).unwrap_or_default();
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
        message = format!("{message}: {}", quoted.chars().take(MAX_QUOTE_CHARS).collect::<String>());
    }
    let delay = details
        .iter()
        .find_map(|detail| detail.get("retryDelay").and_then(Value::as_str).and_then(parse_duration))
        .or_else(|| delay_from_body(error))
        .or_else(|| metadata.and_then(delay_from_body))
        .or_else(|| delay_from_message(&message));
    let status = ["code", "status", "http_code"].iter().find_map(|field| http_status(error.get(field)?));
    // llama.cpp
    let window = error.get("n_ctx").and_then(Value::as_u64).filter(|tokens| *tokens > 0);
    Some(ProviderError { status, codes, message, delay, window })
}

/// A string as it is, anything else as JSON.
fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn http_status(value: &Value) -> Option<u16> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

#[cfg(test)]
#[path = "error_body_tests.rs"]
mod tests;
