//! How a call ended, in a few words.

use super::command_result::{CommandResult, LineCount};
use super::summary::task_name;
use crate::block::{Call, CallResult};
use crate::text::{format_count, format_number, truncate};

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
            Some(result) => success(&call.name, result),
            None => success(&call.name, &CallResult { content: RUNNING.to_owned(), ..CallResult::default() }),
        }
    }
}

fn success(name: &str, result: &CallResult) -> CallOutcome {
    let content = result.content.as_str();
    let lines = || content.lines().filter(|line| !is_note(line));
    let note = match name {
        "exec" | "task_output" | "task_wait" | "task_kill" => {
            let Some(report) = CommandResult::parse(content) else { return ok() };
            let lines = line_count(result, &report);
            return if name == "exec" {
                command_outcome(&report, lines)
            } else {
                task_outcome(&report, lines)
            };
        }
        "task_list" => return ok(),
        "search_text" => {
            format_count(lines().filter(|line| is_match(line)).count() as u64, "match").replace("chs", "ches")
        }
        "read_file" => match result.lines.unwrap_or_else(|| file_line_count(content)) {
            0 => return ok(),
            lines => format_count(lines, "line"),
        },
        "find_files" | "patch" => format_count(lines().count() as u64, "file"),
        "list_files" => format_count(lines().count() as u64, "entry").replace("entrys", "entries"),
        "write_file" if content.ends_with("(new)") => "new".to_owned(),
        "write_file" | "edit_file" | "move_file" | "delete_file" | "todo" | "memory_note" => return ok(),
        // The question above it shows the answer.
        "ask_user" => return ok(),
        "web_search" => match lines().filter(|line| is_numbered(line)).count() as u64 {
            0 => return ok(),
            hits => format_count(hits, "hit"),
        },
        _ => match result.lines.unwrap_or_else(|| lines().count() as u64) {
            0 => return ok(),
            lines => format_count(lines, "line"),
        },
    };
    CallOutcome { notes: vec![note], ..ok() }
}

fn ok() -> CallOutcome {
    CallOutcome { is_ok: true, ..CallOutcome::default() }
}

/// How many lines a command has printed.
pub(super) fn line_count(result: &CallResult, report: &CommandResult) -> LineCount {
    result.lines.map_or_else(|| LineCount::of(&report.output), LineCount::Exact)
}

fn command_outcome(report: &CommandResult, lines: LineCount) -> CallOutcome {
    let in_the_background = || match report.field("task_id") {
        Some(id) => format!("in the background as {}", task_name(id)),
        None => "in the background".to_owned(),
    };
    match report.status() {
        "completed" => CallOutcome { notes: line_count_text(lines).into_iter().collect(), ..ok() },
        "background_started" => CallOutcome { notes: vec![format!("runs {}", in_the_background())], ..ok() },
        "auto_backgrounded" => {
            CallOutcome { notes: vec![format!("goes on {}", in_the_background())], ..ok() }
        }
        status => {
            let last = report.output.lines().rfind(|line| !line.trim().is_empty());
            let problem = last.or_else(|| report.field("message")).map(truncate_problem);
            CallOutcome { is_ok: false, notes: vec![status_text(status, report)], problem }
        }
    }
}

/// The status of a task. A failed task is not a failed call.
fn task_outcome(report: &CommandResult, lines: LineCount) -> CallOutcome {
    let status = status_text(report.status(), report);
    let notes = [Some(status).filter(|words| !words.is_empty()), line_count_text(lines)];
    CallOutcome { notes: notes.into_iter().flatten().collect(), ..ok() }
}

/// `exit code 3`, `killed, exit code 143`, or the status alone.
fn status_text(status: &str, report: &CommandResult) -> String {
    let status = truncate(&status.replace('_', " "), 40);
    match report.exit_code() {
        Some(code) if status == "failed" => format!("exit code {code}"),
        Some(code) if code != 0 => format!("{status}, exit code {code}"),
        _ => status,
    }
}

fn line_count_text(lines: LineCount) -> Option<String> {
    match lines {
        LineCount::Exact(0) => None,
        LineCount::Exact(lines) => Some(format_count(lines, "line")),
        LineCount::MoreThan(lines) => Some(format!("more than {} lines", format_number(lines))),
    }
}

/// The lines of a file that was read. Empty ones count, and so do those in brackets that are not notes of the tool at its end.
fn file_line_count(content: &str) -> u64 {
    const NOTES: [&str; 3] = ["[lines ", "[not all of it is UTF-8;", "[its lines end with "];
    if content.starts_with('[') && content.ends_with(" is empty]") && content.lines().count() == 1 {
        return 0;
    }
    let is_added = |line: &&str| line.ends_with(']') && NOTES.iter().any(|note| line.starts_with(note));
    content.lines().rev().skip_while(is_added).count() as u64
}

/// A line that the tool itself added to a result.
/// `1. Title`
fn is_numbered(line: &str) -> bool {
    line.split_once(". ").is_some_and(|(number, _)| number.parse::<u8>().is_ok())
}

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
