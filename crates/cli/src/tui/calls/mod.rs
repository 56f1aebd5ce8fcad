//! Tool calls: one line while they run and when they ended, with what they changed below it; and the whole of them, opened.

mod full;
mod outcome;
mod reasoning;
mod summary;

use std::time::Duration;

use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use serde_json::Value;

use self::outcome::outcome;
use self::summary::{about, edits, is_edit};
use super::diff::{changed, first_lines, more_lines};
use super::wrap::{clean, columns, columns_of, one_row};
use crate::event_text::duration;

pub(crate) use self::full::opened;
pub(crate) use self::reasoning::{folded_reasoning, open_reasoning};

/// So many rows of a change stay on the screen below its call.
const MOST: usize = 12;

/// So much of what a call is about is shown in any case; the rest of the line gives way.
const LEAST_ABOUT: usize = 16;

/// Larger arguments are not read while a call runs: its line is drawn anew many times a second.
const LARGEST_WHILE_RUNNING: usize = 256 << 10;

/// A call that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Concluded<'a> {
    pub(crate) name: &'a str,
    /// As the model wrote them: JSON, if all is well.
    pub(crate) arguments: &'a str,
    /// What the model gets to read.
    pub(crate) content: &'a str,
    pub(crate) is_error: bool,
    pub(crate) took: Duration,
}

/// A call as one line while it runs: `exec  cargo test`, `edit_file  src/main.rs  +3 −1`. It fits in one row.
pub(crate) fn headline(name: &str, arguments: &str, width: u16) -> Line<'static> {
    let parsed = Some(arguments).filter(|text| text.len() <= LARGEST_WHILE_RUNNING).and_then(parsed);
    let about = about(name, parsed.as_ref(), arguments);
    row(vec![], name, &about, changes(name, parsed.as_ref()), width)
}

/// What stays on the screen of a call that ended: a line that says how, and below it what a file became.
pub(crate) fn concluded(call: &Concluded<'_>, width: u16) -> Vec<Line<'static>> {
    let parsed = parsed(call.arguments);
    let mut rows = vec![conclusion(call, parsed.as_ref(), width)];
    if !call.is_error {
        rows.extend(changed_lines(call.name, parsed.as_ref(), width));
    }
    rows
}

/// The line that says how a call ended.
fn conclusion(call: &Concluded<'_>, arguments: Option<&Value>, width: u16) -> Line<'static> {
    let outcome = outcome(call);
    let mark = if outcome.is_fine { "✓ ".green() } else { "✗ ".red() };
    let mut notes = if call.is_error { Vec::new() } else { changes(call.name, arguments) };
    let mut note = |text: String, style: Style| {
        if !notes.is_empty() {
            notes.push(Span::from("  "));
        }
        notes.push(Span::styled(text, style));
    };
    let dim = Style::new().dim();
    if call.took > Duration::from_secs(1) {
        note(duration(u64::try_from(call.took.as_millis()).unwrap_or(u64::MAX)), dim);
    }
    outcome.notes.into_iter().for_each(|text| note(text, dim));
    if let Some(problem) = outcome.problem {
        note(problem, Style::new().red());
    }
    row(vec![mark], call.name, &about(call.name, arguments, call.arguments), notes, width)
}

/// A row with what a call is about in its middle, which gives way to what stands after it as far as it can.
fn row(
    mut before: Vec<Span<'static>>,
    name: &str,
    about: &str,
    after: Vec<Span<'static>>,
    width: u16,
) -> Line<'static> {
    before.push(Span::from(clean(name).into_owned()).bold());
    let gap = || Span::from("  ");
    let gaps = if after.is_empty() { 1 } else { 2 };
    let taken = columns_of(&before) + gaps * columns(&gap().content) + columns_of(&after);
    let room = usize::from(width).saturating_sub(taken).max(LEAST_ABOUT);
    if !about.is_empty() {
        let room = u16::try_from(room).unwrap_or(u16::MAX);
        before.push(gap());
        before.extend(one_row(&Line::from(Span::raw(about.to_owned())), room).spans);
    }
    if !after.is_empty() {
        before.push(gap());
        before.extend(after);
    }
    one_row(&Line::from(before), width)
}

/// `+3 −1`, for calls that change files.
fn changes(name: &str, arguments: Option<&Value>) -> Vec<Span<'static>> {
    let Some(arguments) = arguments.filter(|_| is_edit(name)) else { return Vec::new() };
    let (mut added, mut removed) = (0, 0);
    for (old, new) in edits(name, arguments) {
        let (more_added, more_removed) = changed(old, new);
        added += more_added;
        removed += more_removed;
    }
    let mut spans = Vec::new();
    if added > 0 {
        spans.push(format!("+{added}").green());
    }
    if removed > 0 {
        if added > 0 {
            spans.push(Span::from(" "));
        }
        spans.push(format!("−{removed}").red());
    }
    spans
}

/// The first rows of what a call changed in a file.
fn changed_lines(name: &str, arguments: Option<&Value>, width: u16) -> Vec<Line<'static>> {
    let Some(arguments) = arguments.filter(|_| is_edit(name)) else { return Vec::new() };
    let language = summary::language(arguments);
    let (mut rows, mut left_out) = (Vec::new(), 0);
    for (old, new) in edits(name, arguments) {
        if rows.len() >= MOST {
            let (added, removed) = changed(old, new);
            left_out += added + removed;
            continue;
        }
        if !rows.is_empty() {
            rows.push(Line::from("…".dim()));
        }
        let (more, not_drawn) = first_lines(old, new, language, width, MOST);
        rows.extend(more);
        left_out += not_drawn;
    }
    if rows.len() > MOST || left_out > 0 {
        // One row says that there is more.
        left_out += rows.len().saturating_sub(MOST - 1);
        rows.truncate(MOST - 1);
        rows.extend(more_lines(left_out).map(|line| one_row(&line, width)));
    }
    rows
}

fn parsed(arguments: &str) -> Option<Value> {
    serde_json::from_str(arguments).ok().filter(Value::is_object)
}

#[cfg(test)]
#[path = "calls_tests.rs"]
mod tests;
