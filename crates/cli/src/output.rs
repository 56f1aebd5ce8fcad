//! Printing for people and programs: lines and JSON.

use std::io::Write;

use longhaul_protocol::{is_invisible, is_misleading};
pub(crate) use longhaul_transcript::{
    compacted_by_text, format_count, format_date, format_duration, format_moment, format_number,
    format_recent_moment, outcome_text, record_line, sanitize, task_text, truncate, turn_failure_text,
};
use serde::Serialize;

/// Prints a line to standard output, without characters that could control a terminal. Unlike `println!` it does not panic when the
/// reader has gone.
pub(crate) fn line(text: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{}", sanitize(&text.to_string()))?;
    Ok(())
}

/// Prints a line of what the user is about to trust: every character that could hide something is shown as its code, because the model reads
/// what the user would not see.
pub(crate) fn review_line(text: impl std::fmt::Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{}", show_hidden(&text.to_string()))?;
    Ok(())
}

/// The text with each character that controls a terminal, changes the direction of writing or is invisible as its code.
fn show_hidden(text: &str) -> String {
    let is_hidden = |letter: char| letter != '\t' && (is_misleading(letter) || is_invisible(letter));
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_hidden(letter) {
            true => shown.extend(letter.escape_default()),
            false => shown.push(letter),
        }
    }
    shown
}

/// Prints a line to standard error. Unlike `eprintln!` it does not panic when the terminal is gone: the shutdown has to go on.
pub(crate) fn note(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "longhaul: {}", sanitize(&text.to_string()));
}

/// Prints a value as one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    writeln!(std::io::stdout().lock(), "{}", serde_json::to_string(value)?)?;
    Ok(())
}

/// Prints JSON with `--json`, and else lines for people.
pub(crate) fn print<Value: Serialize>(
    as_json: bool,
    value: impl FnOnce() -> Value,
    lines: impl FnOnce() -> Vec<String>,
) -> anyhow::Result<()> {
    if as_json { json(&value()) } else { lines().into_iter().try_for_each(line) }
}

/// A row of a report: a name, and its value in a column of its own.
pub(crate) fn named(name: &str, value: impl std::fmt::Display) -> String {
    format!("{name:<13} {value}")
}

/// Whether the error only says that the reader of the output has gone.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
