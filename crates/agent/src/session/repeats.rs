//! Loop detection: a model that repeats a call and gets the same result is stuck. First a warning tells it so, then
//! the turn ends.

use std::collections::VecDeque;

use longhaul_protocol::Hash;
use serde_json::Value;

/// Repeats in a row after which the result carries a warning.
const WARN_AFTER_REPEATS: usize = 3;
/// Repeats in a row that end the turn.
const END_AFTER_REPEATS: usize = 5;
/// The turn ends after this many calls that alternate between two.
const END_AFTER_ALTERNATING: usize = 8;
/// Precedes the warning in a result.
const WARNING_PREFIX: &str = "\n\n[runtime note] ";
/// Tools whose result is one JSON object. With a warning it must still be one.
const JSON_TOOLS: [&str; 5] = ["exec", "task_list", "task_output", "task_wait", "task_kill"];
/// Fields that change from run to run although the result is the same.
const VOLATILE_FIELDS: [&str; 3] = ["duration_ms", "task_id", "message"];

const WAIT_TOOL: &str = "task_wait";

/// Fingerprints of the latest calls of a turn with their results, newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepeatDetector {
    latest: VecDeque<Hash>,
}

impl RepeatDetector {
    pub(crate) fn carry_over(&self) -> Vec<Hash> {
        self.latest.iter().copied().collect()
    }

    pub(crate) fn restore(latest: Vec<Hash>) -> Self {
        Self { latest: latest.into() }
    }

    /// Records the result of a call.
    pub(crate) fn push(&mut self, name: &str, arguments: &str, content: &str) {
        // A model that waits for a task is not stuck, because time passes.
        if name == WAIT_TOOL {
            self.latest.clear();
            return;
        }
        self.latest.push_back(fingerprint(name, arguments, content));
        if self.latest.len() > END_AFTER_ALTERNATING {
            self.latest.pop_front();
        }
    }

    /// Why the turn should end, if the model is in a loop.
    pub(crate) fn stuck_reason(&self) -> Option<String> {
        if self.count_in_a_row() >= END_AFTER_REPEATS {
            return Some(format!(
                "the agent repeated the same call with the same result {END_AFTER_REPEATS} times"
            ));
        }
        let alternate = self.latest.len() == END_AFTER_ALTERNATING
            && self.latest.iter().zip(self.latest.iter().skip(2)).all(|(one, next)| one == next)
            && self.latest[0] != self.latest[1];
        alternate
            .then(|| format!("the agent alternated between the same two calls {END_AFTER_ALTERNATING} times"))
    }

    /// The result for the model, with a warning if it is a repeat.
    pub(crate) fn with_repeat_warning(&self, name: &str, arguments: &str, content: String) -> String {
        let mut next = self.clone();
        next.push(name, arguments, &content);
        let times = next.count_in_a_row();
        if times < WARN_AFTER_REPEATS {
            return content;
        }
        let warning = format!(
            "This call has had the same result {times} times in a row; after {END_AFTER_REPEATS} times the turn ends. \
             Try something else, or say what is in the way."
        );
        with_warning(name, content, &warning)
    }

    fn count_in_a_row(&self) -> usize {
        let newest = self.latest.back();
        self.latest.iter().rev().take_while(|hash| Some(*hash) == newest).count()
    }
}

fn fields_of(name: &str, content: &str) -> Option<serde_json::Map<String, Value>> {
    let object = JSON_TOOLS.contains(&name).then(|| serde_json::from_str(content).ok())??;
    match object {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

fn with_warning(name: &str, content: String, warning: &str) -> String {
    let Some(mut fields) = fields_of(name, &content) else { return content + WARNING_PREFIX + warning };
    let message = fields.get("message").and_then(Value::as_str).map(|message| format!("{message} {warning}"));
    fields.insert("message".to_owned(), Value::String(message.unwrap_or_else(|| warning.to_owned())));
    Value::Object(fields).to_string()
}

/// A hash that is equal for equal calls with equal results. Ignores durations, task ids and the runtime's own
/// warnings.
fn fingerprint(name: &str, arguments: &str, content: &str) -> Hash {
    let result = match fields_of(name, content) {
        Some(mut fields) => {
            fields.retain(|field, _| !VOLATILE_FIELDS.contains(&field.as_str()));
            Value::Object(fields).to_string()
        }
        None => content.rsplit_once(WARNING_PREFIX).map_or(content, |(result, _)| result).to_owned(),
    };
    Hash::of(serde_json::json!([name, arguments, result]).to_string())
}

#[cfg(test)]
#[path = "repeats_tests.rs"]
mod tests;
