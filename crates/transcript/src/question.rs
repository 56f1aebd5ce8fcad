//! A question to the user, as lines: what would happen, why the runtime asks, and the diff of an edit.

use crate::style::{Color, Span, Style, StyledLine};
use crate::text::sanitize;
use crate::wrap::wrap_line;

/// The lines of a question. Its first line stands out; the diff follows with its own colours, each line behind a bar, so that no line of
/// a file looks like a part of the question.
pub fn question_lines(text: &str, diff: Option<&str>, width: u16) -> Vec<StyledLine> {
    let text = sanitize(text.trim_end());
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = match number {
            0 => StyledLine::styled(format!("? {line}"), Style::new().fg(Color::Yellow).bold()),
            // What would run.
            _ if line.starts_with('│') => StyledLine::from(vec![Span::raw(format!("  {line}"))]),
            _ => StyledLine::dim(format!("  {line}")),
        };
        lines.extend(wrap_line(&line, width, "  "));
    }
    for line in diff.map(|diff| sanitize(diff.trim_end())).unwrap_or_default().lines() {
        lines.extend(wrap_line(&diff_line(line), width, "  │ "));
    }
    lines
}

fn diff_line(line: &str) -> StyledLine {
    let line_span = match line.chars().next() {
        Some('+') if !line.starts_with("+++") => Span::colored(line, Color::Green),
        Some('-') if !line.starts_with("---") => Span::colored(line, Color::Red),
        Some(' ') => Span::raw(line),
        _ => Span::dim(line),
    };
    StyledLine::from(vec![Span::dim("  │ "), line_span])
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
