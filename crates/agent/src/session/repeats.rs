//! A model that does the same again and again, with the same result, is stuck. First it is told, then the turn ends.

use std::collections::VecDeque;

use longhaul_protocol::Hash;
use serde_json::Value;

/// So many times the same in a row: the result says so.
const TOLD_AT: usize = 3;
/// So many times the same in a row: the turn ends.
const ENDED_AT: usize = 5;
/// So many calls of two kinds in turn: the turn ends.
const ALTERNATING: usize = 8;
/// What begins the warning in a result.
const MARK: &str = "\n\n[runtime note] ";
/// The tools whose results are one JSON object, and stay one.
const OBJECTS: [&str; 5] = ["exec", "task_list", "task_output", "task_wait", "task_kill"];
/// What differs from run to run without a difference in what happened.
const PASSING: [&str; 3] = ["duration_ms", "task_id", "message"];

/// The tool that waits.
const WAIT: &str = "task_wait";

/// The latest calls of a turn with their results, newest last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Repeats {
    latest: VecDeque<Hash>,
}

impl Repeats {
    /// What a new epoch carries of them.
    pub(crate) fn to_carry(&self) -> Vec<Hash> {
        self.latest.iter().copied().collect()
    }

    /// What an epoch has carried over.
    pub(crate) fn carried(latest: Vec<Hash>) -> Self {
        Self { latest: latest.into() }
    }

    /// One more call came to its result.
    pub(crate) fn push(&mut self, name: &str, arguments: &str, content: &str) {
        // Whoever waits for a task and looks again is not stuck: time has passed.
        if name == WAIT {
            self.latest.clear();
            return;
        }
        self.latest.push_back(fingerprint(name, arguments, content));
        if self.latest.len() > ALTERNATING {
            self.latest.pop_front();
        }
    }

    /// Why the turn should end, if it should.
    pub(crate) fn stuck(&self) -> Option<String> {
        if self.in_a_row() >= ENDED_AT {
            return Some(format!("the same call had the same result {ENDED_AT} times in a row"));
        }
        let alternate = self.latest.len() == ALTERNATING
            && self.latest.iter().zip(self.latest.iter().skip(2)).all(|(one, next)| one == next)
            && self.latest[0] != self.latest[1];
        alternate
            .then(|| format!("the same two calls had the same results in turn, {ALTERNATING} calls long"))
    }

    /// The result that the model gets: with a warning, if the same came too often.
    pub(crate) fn told(&self, name: &str, arguments: &str, content: String) -> String {
        let mut then = self.clone();
        then.push(name, arguments, &content);
        let times = then.in_a_row();
        if times < TOLD_AT {
            return content;
        }
        let warning = format!(
            "This call has had the same result {times} times in a row; after {ENDED_AT} times the turn ends. \
             Try something else, or say what is in the way."
        );
        with_warning(name, content, &warning)
    }

    fn in_a_row(&self) -> usize {
        let newest = self.latest.back();
        self.latest.iter().rev().take_while(|hash| Some(*hash) == newest).count()
    }
}

/// What a tool answers as one JSON object.
fn fields_of(name: &str, content: &str) -> Option<serde_json::Map<String, Value>> {
    let object = OBJECTS.contains(&name).then(|| serde_json::from_str(content).ok())??;
    match object {
        Value::Object(fields) => Some(fields),
        _ => None,
    }
}

fn with_warning(name: &str, content: String, warning: &str) -> String {
    let Some(mut fields) = fields_of(name, &content) else { return content + MARK + warning };
    let said = fields.get("message").and_then(Value::as_str).map(|said| format!("{said} {warning}"));
    fields.insert("message".to_owned(), Value::String(said.unwrap_or_else(|| warning.to_owned())));
    Value::Object(fields).to_string()
}

/// The same for the same call with the same result, durations, task ids and our own warnings aside.
fn fingerprint(name: &str, arguments: &str, content: &str) -> Hash {
    let result = match fields_of(name, content) {
        Some(mut fields) => {
            fields.retain(|field, _| !PASSING.contains(&field.as_str()));
            Value::Object(fields).to_string()
        }
        None => content.rsplit_once(MARK).map_or(content, |(result, _)| result).to_owned(),
    };
    Hash::of(serde_json::json!([name, arguments, result]).to_string())
}

#[cfg(test)]
#[path = "repeats_tests.rs"]
mod tests;
