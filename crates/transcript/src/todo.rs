//! The todo list as rows: where the model changes it, and in short while it works.

use longhaul_protocol::{Todo, TodoStatus};
use serde_json::Value;

use crate::style::{Span, Style, StyledLine};
use crate::text::{format_count, truncate};
use crate::wrap::{truncate_line, wrap_spans};

/// Items that are shown in the transcript.
const MAX_SHOWN_ITEMS: usize = 20;
const MAX_ITEM_CHARS: usize = 300;
/// Columns that the pinned item keeps beside the progress of the list; otherwise the progress is left out.
const MIN_ITEM_COLUMNS: usize = 10;

/// The marks of items. They differ in shape, so that no information is in the colour alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TodoMarks {
    #[default]
    Unicode,
    /// For terminals that show nothing but ASCII.
    Ascii,
}

impl TodoMarks {
    fn mark(self, status: TodoStatus) -> &'static str {
        match (self, status) {
            (Self::Unicode, TodoStatus::Pending) => "☐ ",
            (Self::Unicode, TodoStatus::InProgress) => "▸ ",
            (Self::Unicode, TodoStatus::Done) => "☑ ",
            (Self::Ascii, TodoStatus::Pending) => "[ ] ",
            (Self::Ascii, TodoStatus::InProgress) => "[>] ",
            (Self::Ascii, TodoStatus::Done) => "[x] ",
        }
    }
}

/// The list that a call of `todo` sets. None if its arguments are not such a list.
pub fn todo_of_call(name: &str, arguments: &str) -> Option<Vec<Todo>> {
    let mut arguments: Value = (name == "todo").then(|| serde_json::from_str(arguments).ok())??;
    serde_json::from_value(arguments.get_mut("items")?.take()).ok()
}

/// The list below the call that sets it.
pub fn todo_lines(list: &[Todo], marks: TodoMarks, width: u16) -> Vec<StyledLine> {
    // What is done comes first in most lists; of a long one, the part around the current item counts.
    let current = list.iter().position(|todo| todo.status != TodoStatus::Done).unwrap_or(0);
    let from = current.saturating_sub(3).min(list.len().saturating_sub(MAX_SHOWN_ITEMS));
    let shown = &list[from..list.len().min(from + MAX_SHOWN_ITEMS)];
    let mut rows = Vec::new();
    rows.extend(hidden_row(from, "before", width));
    for todo in shown {
        let first = [Span::raw("  "), mark_span(todo.status, marks)];
        let indent = Span::raw(" ".repeat(2 + marks.mark(todo.status).chars().count()));
        rows.extend(wrap_spans(&[text_span(todo)], width, &first, &[indent]));
    }
    rows.extend(hidden_row(list.len() - from - shown.len(), "more", width));
    rows
}

fn hidden_row(count: usize, place: &str, width: u16) -> Option<StyledLine> {
    let row = || StyledLine::dim(format!("  … {} {place}", format_count(count as u64, "item")));
    (count > 0).then(|| truncate_line(&row(), width))
}

/// The list in at most `max_rows` rows while the model works: what it does now, and what comes next. Empty if nothing is left to do.
pub fn pinned_todo_lines(list: &[Todo], marks: TodoMarks, width: u16, max_rows: usize) -> Vec<StyledLine> {
    let is_open = |todo: &&Todo| todo.status != TodoStatus::Done;
    let done = list.iter().filter(|todo| todo.status == TodoStatus::Done).count();
    if done == list.len() || max_rows == 0 {
        return Vec::new();
    }
    let mut open: Vec<&Todo> = list.iter().filter(is_open).collect();
    // A stable sort: the item in progress first, the others in their order.
    open.sort_by_key(|todo| todo.status != TodoStatus::InProgress);
    let progress = format!("{done} of {} done", list.len());
    let rows = max_rows.min(open.len());
    let mut lines: Vec<StyledLine> = open[..rows]
        .iter()
        .map(|todo| StyledLine::from(vec![mark_span(todo.status, marks), text_span(todo)]))
        .collect();
    let more = match open.len() - rows {
        0 => progress,
        more => format!("{progress}, {more} more"),
    };
    // The first row says how far the list is; its text gives way to that.
    let room = usize::from(width).saturating_sub(more.len() + 2);
    if let (Some(first), true) = (lines.first_mut(), room >= MIN_ITEM_COLUMNS) {
        *first = truncate_line(first, u16::try_from(room).unwrap_or(u16::MAX));
        first.spans.push(Span::dim(format!("  {more}")));
    }
    lines.iter().map(|line| truncate_line(line, width)).collect()
}

fn mark_span(status: TodoStatus, marks: TodoMarks) -> Span {
    let style = match status {
        TodoStatus::Pending => Style::new(),
        TodoStatus::InProgress => Style::new().bold(),
        TodoStatus::Done => Style::new().dim(),
    };
    Span::styled(marks.mark(status), style)
}

fn text_span(todo: &Todo) -> Span {
    let style = match todo.status {
        TodoStatus::Pending => Style::new(),
        TodoStatus::InProgress => Style::new().bold(),
        TodoStatus::Done => Style::new().dim(),
    };
    Span::styled(truncate(&todo.text, MAX_ITEM_CHARS), style)
}

#[cfg(test)]
#[path = "todo_tests.rs"]
mod tests;
