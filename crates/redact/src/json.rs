//! Redacts record bodies. In the JSON text only the string values that contain a secret change.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::MARK;
use crate::rules::Rules;

/// Fields whose values the runtime writes and reads back: ids, hashes, enum names, and signatures that providers need
/// unchanged. Patterns do not apply to them, because a pattern for long random words would match ids, and a session
/// without its ids can't be opened. None of these fields contains text of a user, a model or a tool. Literal secrets
/// are redacted here too.
const STRUCTURAL_FIELDS: [&str; 29] = [
    "after",
    "attempt",
    "before",
    "blob",
    "body_hash",
    "by",
    "call",
    "call_id",
    "calls",
    "effect",
    "hash",
    "id",
    "kind",
    "limit",
    "media",
    "mode",
    "order",
    "outcome",
    "prev",
    "question",
    "role",
    "session",
    "signature",
    "status",
    "stream",
    "task",
    "task_id",
    "type",
    "wire_id",
];

/// `None` if there is nothing to redact.
pub(crate) fn redact_body(rules: &Rules, body: &str) -> Option<String> {
    // Without escapes, every string value is a substring of the body.
    if !body.contains('\\') && !rules.may_match(body) {
        return None;
    }
    if serde_json::from_str::<&RawValue>(body).is_err() {
        return rules.redact(body, &rules.patterns);
    }
    let (mut redacted, mut copied) = (String::new(), 0);
    let (mut key, mut at) = ("", 0);
    while let Some(byte) = body.as_bytes().get(at) {
        let end = if *byte == b'"' { string_end(body, at) } else { at + 1 };
        match byte {
            b'"' if is_key(body, end) => key = &body[at + 1..end - 1],
            b'"' => {
                if let Some(value) = redact_value(rules, key, &body[at..end]) {
                    redacted.push_str(&body[copied..at]);
                    redacted.push_str(&serde_json::Value::String(value).to_string());
                    copied = end;
                }
            }
            // Strings in a list belong to the list's field.
            b'{' | b'}' | b']' => key = "",
            _ => {}
        }
        at = end;
    }
    redacted.push_str(&body[copied..]);
    (copied > 0).then_some(redacted)
}

/// The index after the closing quote of the string whose opening quote is at `at`.
fn string_end(body: &str, at: usize) -> usize {
    let bytes = body.as_bytes();
    let mut end = at + 1;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'"' => return end + 1,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    bytes.len()
}

/// Only a field name is followed by a colon.
fn is_key(body: &str, end: usize) -> bool {
    body[end..].trim_ascii_start().starts_with(':')
}

/// The redacted value of a quoted string, if it changes.
fn redact_value(rules: &Rules, key: &str, quoted: &str) -> Option<String> {
    let text: Cow<'_, str> = if quoted.contains('\\') {
        match serde_json::from_str::<String>(quoted) {
            Ok(text) => text.into(),
            // Half a surrogate pair is unreadable, so it can't be checked.
            Err(_) => return Some(MARK.to_owned()),
        }
    } else {
        quoted[1..quoted.len() - 1].into()
    };
    let patterns = if STRUCTURAL_FIELDS.contains(&key) { &[] } else { rules.patterns.as_slice() };
    let once = rules.redact(&text, patterns);
    // The arguments of a call are JSON inside a string, with their own escapes.
    let current = once.as_deref().unwrap_or(&text);
    let may_be_json = current.starts_with(['{', '[']) && current.contains('\\');
    let is_json = may_be_json && serde_json::from_str::<&RawValue>(current).is_ok();
    let nested = if is_json { redact_body(rules, current) } else { None };
    nested.or(once)
}
