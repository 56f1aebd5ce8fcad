//! How a call ended, in a few words.

use serde_json::Value;

use super::Concluded;
use super::summary::{task, text};
use crate::output::{count, shortened};

/// More of an error is only shown when the call is opened.
const LONGEST_PROBLEM: usize = 200;

/// How it ended.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) is_fine: bool,
    pub(super) notes: Vec<String>,
    pub(super) problem: Option<String>,
}

pub(super) fn outcome(call: &Concluded<'_>) -> Outcome {
    if call.is_error {
        let problem = call.content.lines().find(|line| !line.trim().is_empty()).map(short);
        return Outcome { is_fine: false, notes: Vec::new(), problem };
    }
    let report = || serde_json::from_str::<Value>(call.content).ok().filter(Value::is_object);
    let lines = || call.content.lines().filter(|line| !is_note(line));
    let note = match call.name {
        "exec" => return report().as_ref().map_or_else(fine, command),
        "task_output" | "task_wait" | "task_kill" => return report().as_ref().map_or_else(fine, of_task),
        "search_text" => {
            count(lines().filter(|line| is_match(line)).count() as u64, "match").replace("chs", "ches")
        }
        "find_files" => count(lines().count() as u64, "file"),
        "list_files" => count(lines().count() as u64, "entry").replace("entrys", "entries"),
        "write_file" if call.content.ends_with("(new)") => "new".to_owned(),
        "write_file" | "edit_file" | "todo" | "memory_note" => return fine(),
        _ => match lines().count() {
            0 => return fine(),
            lines => count(lines as u64, "line"),
        },
    };
    Outcome { notes: vec![note], ..fine() }
}

fn fine() -> Outcome {
    Outcome { is_fine: true, ..Outcome::default() }
}

/// How a command ended, or that it goes on.
fn command(report: &Value) -> Outcome {
    let in_the_background = || match text(report, "task_id") {
        Some(id) => format!("in the background as {}", task(id)),
        None => "in the background".to_owned(),
    };
    match text(report, "status").unwrap_or_default() {
        "completed" => Outcome { notes: printed(report).into_iter().collect(), ..fine() },
        "background_started" => Outcome { notes: vec![format!("runs {}", in_the_background())], ..fine() },
        "auto_backgrounded" => Outcome { notes: vec![format!("goes on {}", in_the_background())], ..fine() },
        status => {
            let last = text(report, "output")
                .and_then(|output| output.lines().rfind(|line| !line.trim().is_empty()));
            let problem = last.or_else(|| text(report, "message")).map(short);
            Outcome { is_fine: false, notes: vec![ended(status, report)], problem }
        }
    }
}

/// What is told of a task. That it failed does not mean that the call did.
fn of_task(report: &Value) -> Outcome {
    let status = text(report, "status").unwrap_or_default();
    let notes = [Some(ended(status, report)).filter(|words| !words.is_empty()), printed(report)];
    Outcome { notes: notes.into_iter().flatten().collect(), ..fine() }
}

/// `failed, exit code 3` or the status alone; the code says it all where there is one.
fn ended(status: &str, report: &Value) -> String {
    let status = shortened(&status.replace('_', " "), 40);
    match report["exit_code"].as_i64() {
        Some(code) if status == "failed" => format!("exit code {code}"),
        Some(code) if code != 0 => format!("{status}, exit code {code}"),
        _ => status,
    }
}

fn printed(report: &Value) -> Option<String> {
    let lines = text(report, "output")?.lines().count();
    (lines > 0).then(|| count(lines as u64, "line"))
}

/// What the tool itself says at the end of a result.
fn is_note(line: &str) -> bool {
    line.is_empty() || (line.starts_with('[') && line.ends_with(']'))
}

/// `path:12:text` is a match, `path-12-text` what stands around one.
fn is_match(line: &str) -> bool {
    let number = |(at, mark): (usize, &str)| {
        let rest = &line[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (digits > 0 && rest[digits..].starts_with(mark)).then_some(mark == ":")
    };
    line.match_indices([':', '-']).find_map(number).unwrap_or(false)
}

fn short(line: &str) -> String {
    shortened(line.trim(), LONGEST_PROBLEM)
}
