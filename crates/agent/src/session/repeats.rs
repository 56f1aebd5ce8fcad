//! Loop detection: a model that repeats a call and gets the same result is stuck. First a warning tells it so, then
//! the turn ends.

use std::collections::VecDeque;

use longhaul_protocol::{CommandReport, Hash, current_tool_name};
use serde_json::Value;

/// Repeats in a row after which the result carries a warning.
const WARN_AFTER_REPEATS: usize = 3;
/// Repeats in a row that end the turn.
const END_AFTER_REPEATS: usize = 5;
/// The turn ends after this many calls that alternate between two.
const END_AFTER_ALTERNATING: usize = 8;
/// Precedes the warning in a result.
const NOTE_MARK: &str = "[runtime note] ";
/// Tools whose result has a head ([`CommandReport`]). The warning goes into its message, where no output can forge it.
const REPORTING_TOOLS: [&str; 3] = [EXEC_TOOL, TASK_TOOL, "task_kill"];
const EXEC_TOOL: &str = "exec";
const TASK_TOOL: &str = "task_output";

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
        if is_wait(name, arguments) {
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
        with_warning(name, &content, &warning)
    }

    fn count_in_a_row(&self) -> usize {
        let newest = self.latest.back();
        self.latest.iter().rev().take_while(|hash| Some(*hash) == newest).count()
    }
}

/// Whether a call waits for a task.
fn is_wait(name: &str, arguments: &str) -> bool {
    let waits = || {
        let arguments: Option<Value> = serde_json::from_str(arguments).ok();
        arguments.is_some_and(|arguments| arguments["wait"].as_u64().is_some_and(|seconds| seconds > 0))
    };
    name == "task_wait" || (name == TASK_TOOL && waits())
}

fn parse_report(name: &str, content: &str) -> Option<(CommandReport, String)> {
    let is_reporting = REPORTING_TOOLS.contains(&current_tool_name(name));
    is_reporting.then(|| CommandReport::parse(content)).flatten()
}

fn with_warning(name: &str, content: &str, warning: &str) -> String {
    let Some((mut report, output)) = parse_report(name, content) else {
        return format!("{content}\n\n{NOTE_MARK}{warning}");
    };
    let before = report.message.map(|message| format!("{message} ")).unwrap_or_default();
    report.message = Some(format!("{before}{NOTE_MARK}{warning}"));
    report.with_output(&output)
}

/// A hash that is equal for equal calls with equal results. Ignores durations, task ids and the runtime's own
/// warnings.
fn fingerprint(name: &str, arguments: &str, content: &str) -> Hash {
    let result = match parse_report(name, content) {
        Some((report, output)) => {
            // The message of a command may name processes, which differ from run to run.
            let message = report.message.filter(|_| name != EXEC_TOOL);
            let message = message.map(|text| before(&text, NOTE_MARK).trim_end().to_owned());
            let message = message.filter(|message| !message.is_empty());
            serde_json::json!([report.status, report.exit_code, message, output])
        }
        None => Value::String(before(content, &format!("\n\n{NOTE_MARK}")).to_owned()),
    };
    Hash::of(serde_json::json!([name, arguments, result]).to_string())
}

/// The text before the last occurrence of a mark; all of it if there is none.
fn before<'a>(text: &'a str, mark: &str) -> &'a str {
    text.rsplit_once(mark).map_or(text, |(before, _)| before)
}

#[cfg(test)]
#[path = "repeats_tests.rs"]
mod tests;
