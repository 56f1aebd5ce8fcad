//! A question to the user, as lines: what would happen, why the runtime asks, and the diff of an edit.

use longhaul_protocol::QuestionKind;

use crate::style::{Color, Span, Style, StyledLine};
use crate::text::sanitize;
use crate::wrap::wrap_line;

/// The text of a question, with the numbers by which the choices of a question of the agent can be answered. What other questions offer,
/// each client says in its own words.
pub fn question_with_choices(kind: QuestionKind, text: &str, choices: &[String]) -> String {
    let choices = if kind.takes_text() { choices } else { &[] };
    let lines = choices.iter().enumerate().map(|(index, choice)| format!("\n{}. {choice}", index + 1));
    text.trim_end().to_owned() + &lines.collect::<String>()
}

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
