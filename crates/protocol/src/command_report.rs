//! How a command or a task is doing, in the result of a call.
//!
//! The model reads a head of `name: value` lines, an empty line, and the output as it was printed. Programs get the same
//! fields as JSON, in the record and in the event. The head comes first and each value is on one line, so no output can
//! look like a part of it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::TaskId;

/// The head of a result. A field that does not apply is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandReport {
    /// `completed`, `failed`, `running`, `background_started`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<TaskId>,
    /// What else the model should know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl CommandReport {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The head: one line for each field that applies.
    pub fn head(&self) -> String {
        let fields = [
            ("status", self.status.clone()),
            ("exit_code", self.exit_code.map(|code| code.to_string())),
            ("duration_ms", self.duration_ms.map(|duration| duration.to_string())),
            ("task_id", self.task_id.map(|id| id.to_string())),
            ("message", self.message.clone()),
        ];
        let lines = fields.into_iter().filter_map(|(name, value)| Some((name, value?)));
        lines.map(|(name, value)| format!("{name}: {}\n", on_one_line(&value))).collect()
    }

    /// The result that the model reads.
    pub fn with_output(&self, output: &str) -> String {
        format!("{}\n{output}", self.head())
    }

    /// Splits a result into its fields and the output. Results of earlier versions are JSON objects. `None` for any other
    /// text, such as that of an error.
    pub fn parse(content: &str) -> Option<(Self, String)> {
        if content.starts_with('{') {
            return parse_object(content);
        }
        let (head, output) = match content.split_once("\n\n") {
            Some((head, output)) => (head, output),
            None => (content.trim_end_matches('\n'), ""),
        };
        let mut report = Self::default();
        let mut names = ["status", "exit_code", "duration_ms", "task_id", "message"].into_iter();
        for line in head.lines() {
            let (name, value) = line.split_once(": ")?;
            // Each field comes at most once, in the order of the head.
            let name = names.find(|known| *known == name)?;
            match name {
                "status" => report.status = Some(value.to_owned()),
                "exit_code" => report.exit_code = Some(value.parse().ok()?),
                "duration_ms" => report.duration_ms = Some(value.parse().ok()?),
                "task_id" => report.task_id = Some(value.parse().ok()?),
                _ => report.message = Some(value.to_owned()),
            }
        }
        (!report.is_empty()).then(|| (report, output.to_owned()))
    }

    /// The fields of a result and its `output` as one JSON object.
    pub fn parse_to_json(content: &str) -> Option<Value> {
        let (report, output) = Self::parse(content)?;
        let mut fields = serde_json::to_value(report).ok()?;
        fields["output"] = Value::String(output);
        Some(fields)
    }
}

fn parse_object(content: &str) -> Option<(CommandReport, String)> {
    let object: Value = serde_json::from_str(content).ok()?;
    let text = |name: &str| object[name].as_str().map(str::to_owned);
    let report = CommandReport {
        status: Some(text("status")?),
        exit_code: object["exit_code"].as_i64().and_then(|code| i32::try_from(code).ok()),
        duration_ms: object["duration_ms"].as_u64(),
        task_id: text("task_id").and_then(|id| id.parse().ok()),
        message: text("message"),
    };
    Some((report, text("output").unwrap_or_default()))
}

/// A value that can't begin a line of its own.
fn on_one_line(value: &str) -> String {
    value.split(|letter: char| letter.is_control()).map(str::trim).filter(|part| !part.is_empty()).fold(
        String::new(),
        |line, part| if line.is_empty() { part.to_owned() } else { format!("{line} {part}") },
    )
}

#[cfg(test)]
#[path = "command_report_tests.rs"]
mod tests;
