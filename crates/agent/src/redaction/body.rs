//! Secrets in the body of a record, which is JSON text whose bytes are kept where they can be.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{MARK, Rules};

/// Fields whose values the runtime itself made and reads again: ids, hashes, words of ours, and what must go back to a provider
/// unchanged. An expression for long random words would match many of them, and a session without its ids can't be
/// opened; so expressions don't apply to them. No text of a person, a model or a tool is under these names. Secrets
/// word for word are taken out here too.
const STRUCTURAL: [&str; 29] = [
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

/// The redacted body, if there was something to redact.
pub(super) fn redact(rules: &Rules, body: &str) -> Option<String> {
    // Without a backslash the strings are what they look like, and what is in one is in the body.
    if !body.contains('\\') && !rules.may_match(body) {
        return None;
    }
    if serde_json::from_str::<&RawValue>(body).is_err() {
        return rules.redact(body, &rules.patterns);
    }
    let (mut redacted, mut copied) = (String::new(), 0);
    let (mut key, mut at) = ("", 0);
    while let Some(byte) = body.as_bytes().get(at) {
        let end = if *byte == b'"' { end_of_string(body, at) } else { at + 1 };
        match byte {
            b'"' if is_key(body, end) => key = &body[at + 1..end - 1],
            b'"' => {
                if let Some(value) = redact_value(rules, key, &body[at..end]) {
                    redacted.push_str(&body[copied..at]);
                    redacted.push_str(&serde_json::Value::String(value).to_string());
                    copied = end;
                }
            }
            // The strings of a list stand under the name of the list.
            b'{' | b'}' | b']' => key = "",
            _ => {}
        }
        at = end;
    }
    redacted.push_str(&body[copied..]);
    (copied > 0).then_some(redacted)
}

/// Where the string ends whose quote is at `at`: behind its other quote.
fn end_of_string(body: &str, at: usize) -> usize {
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

/// Only behind the name of a field comes a colon.
fn is_key(body: &str, end: usize) -> bool {
    body[end..].trim_ascii_start().starts_with(':')
}

/// The value in place of a quoted string, if it must change.
fn redact_value(rules: &Rules, key: &str, quoted: &str) -> Option<String> {
    let text: Cow<'_, str> = if quoted.contains('\\') {
        match serde_json::from_str::<String>(quoted) {
            Ok(text) => text.into(),
            // Half a character: what nobody can read, nobody can check.
            Err(_) => return Some(MARK.to_owned()),
        }
    } else {
        quoted[1..quoted.len() - 1].into()
    };
    let patterns = if STRUCTURAL.contains(&key) { &[] } else { rules.patterns.as_slice() };
    let once = rules.redact(&text, patterns);
    // The arguments of a call are JSON inside a string: what is spelt with escapes there is found as well.
    let current = once.as_deref().unwrap_or(&text);
    let may_be = current.starts_with(['{', '[']) && current.contains('\\');
    let is_json = may_be && serde_json::from_str::<&RawValue>(current).is_ok();
    let deeper = if is_json { redact(rules, current) } else { None };
    deeper.or(once)
}
