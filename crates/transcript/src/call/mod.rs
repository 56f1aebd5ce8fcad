//! Tool calls as styled lines: one line while they run and when they ended, with the diff of an edit or the end of an output below it; or everything.

pub(crate) mod command_result;
mod detail;
pub(crate) mod file_diff;
mod outcome;
pub(crate) mod output_tail;
mod summary;

use std::time::Duration;

use serde_json::Value;

pub use self::detail::{call_detail_lines, call_head_lines, call_output, has_more_output};
pub use self::file_diff::{DiffHunk, diff_hunks};
use self::file_diff::{FileDiff, change_count_spans};
use self::outcome::CallOutcome;
use self::summary::{file_language, summarize_call};
pub(crate) use self::summary::{is_edit, list_edits, plain_value, text_field};
use crate::block::{Call, CallResult};
use crate::diff::{count_changed_lines, diff_lines, more_lines_notice};
use crate::style::{Color, Span, Style, StyledLine};
use crate::text::format_duration;
use crate::wrap::{sanitize_line, spans_width, truncate_line};

/// Lines of a diff that stay below its call, and lines of a new file.
const MAX_DIFF_LINES: usize = 24;
const MAX_NEW_FILE_LINES: usize = 10;

/// Rows of a change that stay below its call where only the arguments tell of it.
const MAX_DIFF_ROWS: usize = 12;

/// Columns of a call's summary that are shown in any case; the text behind it gives way.
const MIN_SUMMARY_WIDTH: usize = 16;

/// Larger arguments are not parsed while a call runs, because its line is rendered many times a second.
const MAX_LIVE_ARGUMENT_BYTES: usize = 256 << 10;

/// What a call is about, in a few words.
pub(crate) fn call_summary(call: &Call) -> String {
    summarize_call(call, parse_arguments(&call.arguments).as_ref())
}

/// Whether a call did what it should. False for a command that failed.
pub(crate) fn is_call_ok(call: &Call) -> bool {
    CallOutcome::of(call).is_ok
}

/// A running call as one row: `exec  cargo test`, `edit_file  src/main.rs  +3 −1`.
pub fn running_call_line(call: &Call, width: u16) -> StyledLine {
    let arguments = Some(call.arguments.as_str()).filter(|text| text.len() <= MAX_LIVE_ARGUMENT_BYTES);
    let arguments = arguments.and_then(parse_arguments);
    let summary = summarize_call(call, arguments.as_ref());
    call_row(vec![], &call.name, &summary, change_counts(&call.name, arguments.as_ref()), width)
}

/// A call that ended, as one row.
pub fn call_summary_line(call: &Call, took: Duration, width: u16) -> StyledLine {
    let arguments = parse_arguments(&call.arguments);
    outcome_line(call, CallOutcome::of(call), took, arguments.as_ref(), width)
}

/// A call that ended: a row with its outcome, and below it the first rows of its diff or the last lines of its output.
pub fn finished_call_lines(call: &Call, took: Duration, width: u16) -> Vec<StyledLine> {
    let arguments = parse_arguments(&call.arguments);
    let mut outcome = CallOutcome::of(call);
    let below = match &call.result {
        Some(result) if !result.is_error && call.name == "exec" => {
            let tail = output_tail::finished_tail_lines(result, width);
            // The reason of a failure is in the last lines.
            outcome.problem = outcome.problem.filter(|_| tail.is_empty());
            tail
        }
        Some(CallResult { is_error: false, diff: Some(diff), .. }) => {
            let diff = FileDiff::parse(diff);
            let max_lines = if diff.is_new_file() { MAX_NEW_FILE_LINES } else { MAX_DIFF_LINES };
            diff.lines(width, max_lines)
        }
        Some(result) if !result.is_error => edit_diff_lines(&call.name, arguments.as_ref(), width),
        _ => vec![],
    };
    let mut rows = vec![outcome_line(call, outcome, took, arguments.as_ref(), width)];
    rows.extend(below);
    rows
}

fn outcome_line(
    call: &Call,
    outcome: CallOutcome,
    took: Duration,
    arguments: Option<&Value>,
    width: u16,
) -> StyledLine {
    let mark = match outcome.is_ok {
        true => Span::colored("✓ ", Color::Green),
        false => Span::colored("✗ ", Color::Red),
    };
    let mut notes = match &call.result {
        Some(CallResult { is_error: true, .. }) => Vec::new(),
        Some(CallResult { diff: Some(diff), .. }) => {
            let diff = FileDiff::parse(diff);
            change_count_spans(diff.added, diff.removed)
        }
        _ => change_counts(&call.name, arguments),
    };
    let mut push_note = |text: String, style: Style| {
        if !notes.is_empty() {
            notes.push(Span::raw("  "));
        }
        notes.push(Span::styled(text, style));
    };
    let dim = Style::new().dim();
    if took > Duration::from_secs(1) {
        push_note(format_duration(u64::try_from(took.as_millis()).unwrap_or(u64::MAX)), dim);
    }
    outcome.notes.into_iter().for_each(|text| push_note(text, dim));
    if let Some(problem) = outcome.problem {
        push_note(problem, Style::new().fg(Color::Red));
    }
    call_row(vec![mark], &call.name, &summarize_call(call, arguments), notes, width)
}

/// A row with the summary of a call in its middle, which is truncated in favour of the text behind it.
fn call_row(mut spans: Vec<Span>, name: &str, summary: &str, after: Vec<Span>, width: u16) -> StyledLine {
    const GAP: &str = "  ";
    spans.push(Span::styled(sanitize_line(name).into_owned(), Style::new().bold()));
    let gaps = if after.is_empty() { 1 } else { 2 };
    let taken = spans_width(&spans) + gaps * GAP.len() + spans_width(&after);
    let summary_width = usize::from(width).saturating_sub(taken).max(MIN_SUMMARY_WIDTH);
    if !summary.is_empty() {
        let summary_width = u16::try_from(summary_width).unwrap_or(u16::MAX);
        spans.push(Span::raw(GAP));
        spans.extend(truncate_line(&StyledLine::raw(summary), summary_width).spans);
    }
    if !after.is_empty() {
        spans.push(Span::raw(GAP));
        spans.extend(after);
    }
    truncate_line(&StyledLine::from(spans), width)
}

/// `+3 −1`, for calls that change files.
fn change_counts(name: &str, arguments: Option<&Value>) -> Vec<Span> {
    let Some(arguments) = arguments.filter(|_| is_edit(name)) else { return Vec::new() };
    let (mut added, mut removed) = (0, 0);
    for (old, new) in list_edits(name, arguments) {
        let (more_added, more_removed) = count_changed_lines(old, new);
        added += more_added;
        removed += more_removed;
    }
    change_count_spans(added, removed)
}

/// The first rows of the diff of an edit.
fn edit_diff_lines(name: &str, arguments: Option<&Value>, width: u16) -> Vec<StyledLine> {
    let Some(arguments) = arguments.filter(|_| is_edit(name)) else { return Vec::new() };
    let language = file_language(arguments);
    let (mut rows, mut left_out) = (Vec::new(), 0);
    for (old, new) in list_edits(name, arguments) {
        if rows.len() >= MAX_DIFF_ROWS {
            let (added, removed) = count_changed_lines(old, new);
            left_out += added + removed;
            continue;
        }
        if !rows.is_empty() {
            rows.push(StyledLine::dim("…"));
        }
        let (more, more_left_out) = diff_lines(old, new, language, width, MAX_DIFF_ROWS);
        rows.extend(more);
        left_out += more_left_out;
    }
    if rows.len() > MAX_DIFF_ROWS || left_out > 0 {
        // The last row says how much was left out.
        left_out += rows.len().saturating_sub(MAX_DIFF_ROWS - 1);
        rows.truncate(MAX_DIFF_ROWS - 1);
        rows.extend(more_lines_notice(left_out).map(|line| truncate_line(&line, width)));
    }
    rows
}

pub(crate) fn parse_arguments(arguments: &str) -> Option<Value> {
    serde_json::from_str(arguments).ok().filter(Value::is_object)
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
