//! How a call ended, in a few words.

use longhaul_protocol::{CommandReport, current_tool_name};
use serde_json::Value;

use super::summary::{task_name, text_field};
use crate::block::Call;
use crate::text::{format_count, truncate};

/// Characters of an error in the line of a call. The detail view shows all of it.
const MAX_PROBLEM_CHARS: usize = 200;

/// Shown in place of the result while the call runs.
pub(super) const RUNNING: &str = "(it runs)";

#[derive(Debug, Default)]
pub(super) struct CallOutcome {
    pub(super) is_ok: bool,
    pub(super) notes: Vec<String>,
    pub(super) problem: Option<String>,
}

impl CallOutcome {
    pub(super) fn of(call: &Call) -> Self {
        match &call.result {
            Some(result) if result.is_error => {
                let problem = result.content.lines().find(|line| !line.trim().is_empty());
                Self { is_ok: false, notes: Vec::new(), problem: problem.map(truncate_problem) }
            }
            Some(result) => success(&call.name, &result.content),
            None => success(&call.name, RUNNING),
        }
    }
}

fn success(name: &str, content: &str) -> CallOutcome {
    let report = || read_report(name, content);
    let lines = || content.lines().filter(|line| !is_note(line));
    let note = match name {
        "exec" => return report().as_ref().map_or_else(ok, command_outcome),
        "task_output" | "task_wait" | "task_kill" => return report().as_ref().map_or_else(ok, task_outcome),
        "task_list" => return ok(),
        "search_text" => {
            format_count(lines().filter(|line| is_match(line)).count() as u64, "match").replace("chs", "ches")
        }
        "find_files" | "patch" => format_count(lines().count() as u64, "file"),
        "list_files" => format_count(lines().count() as u64, "entry").replace("entrys", "entries"),
        "write_file" if content.ends_with("(new)") => "new".to_owned(),
        "write_file" | "edit_file" | "move_file" | "delete_file" | "todo" | "memory_note" => return ok(),
        _ => match lines().count() {
            0 => return ok(),
            lines => format_count(lines as u64, "line"),
        },
    };
    CallOutcome { notes: vec![note], ..ok() }
}

/// The fields and the output of a command's or a task's result, also of earlier versions.
pub(super) fn read_report(name: &str, content: &str) -> Option<Value> {
    let has_report = matches!(current_tool_name(name), "exec" | "task_output" | "task_kill");
    has_report.then(|| CommandReport::parse_to_json(content)).flatten()
}

fn ok() -> CallOutcome {
    CallOutcome { is_ok: true, ..CallOutcome::default() }
}

fn command_outcome(report: &Value) -> CallOutcome {
    let in_the_background = || match text_field(report, "task_id") {
        Some(id) => format!("in the background as {}", task_name(id)),
        None => "in the background".to_owned(),
    };
    match text_field(report, "status").unwrap_or_default() {
        "completed" => CallOutcome { notes: output_lines(report).into_iter().collect(), ..ok() },
        "background_started" => CallOutcome { notes: vec![format!("runs {}", in_the_background())], ..ok() },
        "auto_backgrounded" => {
            CallOutcome { notes: vec![format!("goes on {}", in_the_background())], ..ok() }
        }
        status => {
            let last = text_field(report, "output")
                .and_then(|output| output.lines().rfind(|line| !line.trim().is_empty()));
            let problem = last.or_else(|| text_field(report, "message")).map(truncate_problem);
            CallOutcome { is_ok: false, notes: vec![status_text(status, report)], problem }
        }
    }
}

/// The status of a task. A failed task is not a failed call.
fn task_outcome(report: &Value) -> CallOutcome {
    let status = text_field(report, "status").unwrap_or_default();
    let notes = [Some(status_text(status, report)).filter(|words| !words.is_empty()), output_lines(report)];
    CallOutcome { notes: notes.into_iter().flatten().collect(), ..ok() }
}

/// `exit code 3`, `killed, exit code 143`, or the status alone.
fn status_text(status: &str, report: &Value) -> String {
    let status = truncate(&status.replace('_', " "), 40);
    match report["exit_code"].as_i64() {
        Some(code) if status == "failed" => format!("exit code {code}"),
        Some(code) if code != 0 => format!("{status}, exit code {code}"),
        _ => status,
    }
}

fn output_lines(report: &Value) -> Option<String> {
    let lines = text_field(report, "output")?.lines().count();
    (lines > 0).then(|| format_count(lines as u64, "line"))
}

/// A line that the tool itself added to a result.
fn is_note(line: &str) -> bool {
    line.is_empty() || (line.starts_with('[') && line.ends_with(']'))
}

/// `path:12:text` is a match, `path-12-text` is context.
fn is_match(line: &str) -> bool {
    let number = |(at, mark): (usize, &str)| {
        let rest = &line[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && rest[digits..].starts_with(mark)).then_some(mark == ":")
    };
    line.match_indices([':', '-']).find_map(number).unwrap_or(false)
}

fn truncate_problem(line: &str) -> String {
    truncate(line.trim(), MAX_PROBLEM_CHARS)
}
