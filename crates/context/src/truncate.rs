//! Truncating texts to a size, always between characters, and neutralising text that looks like the runtime's own.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use longhaul_protocol::{MEMORY_MARK, NOTE_MARK, SKILLS_MARK, SUMMARY_MARK, TODO_MARK};

use crate::token_estimate::BYTES_PER_TOKEN;

/// Every character that ends a line in a terminal, in a model's view or in Unicode.
pub const LINE_BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// How the runtime's own messages begin. [`neutralise_marks`] adds a question mark to each of them in other texts.
const RUNTIME_MARKS: [&str; 5] = [NOTE_MARK, SUMMARY_MARK, TODO_MARK, MEMORY_MARK, SKILLS_MARK];

/// The most bytes of a text with this many tokens, by the uncorrected estimate.
pub fn max_bytes_for(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX)
}

/// The longest beginning of a text with at most `max` bytes.
pub(crate) fn truncate_end(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// The longest end of a text with at most `max` bytes.
pub(crate) fn truncate_start(text: &str, max: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(max))..]
}

/// Truncates a text in its middle to at most `max` bytes. `marker` says how many bytes are missing, and must not get
/// longer when fewer are missing. If even the marker does not fit, returns the beginning of the text without a
/// marker.
pub(crate) fn truncate_middle(text: &str, max: usize, marker: impl Fn(usize) -> String) -> Cow<'_, str> {
    if text.len() <= max {
        return text.into();
    }
    let Some(room) = max.checked_sub(marker(text.len()).len()) else {
        return truncate_end(text, max).into();
    };
    let (head, tail) = (truncate_end(text, room.div_ceil(2)), truncate_start(text, room / 2));
    format!("{head}{}{tail}", marker(text.len() - head.len() - tail.len())).into()
}

/// The largest number of a range that passes a test which every smaller number also passes. The start of the range if
/// none does.
pub(crate) fn largest_passing(range: RangeInclusive<usize>, passes: impl Fn(usize) -> bool) -> usize {
    let (mut passed, mut failed) = (*range.start(), range.end().saturating_add(1));
    while failed.saturating_sub(passed) > 1 {
        let middle = passed.midpoint(failed);
        if passes(middle) {
            passed = middle;
        } else {
            failed = middle;
        }
    }
    passed
}

/// How many of these lines, from the first, fit into `max` bytes, counting the line break after each.
pub fn count_fitting_lines(lines: &[impl AsRef<str>], max: usize) -> usize {
    let ends = lines.iter().scan(0, |end, line| {
        *end += line.as_ref().len() + 1;
        Some(*end)
    });
    ends.take_while(|end| *end <= max).count()
}

/// The text as one line, with all kinds of line breaks replaced.
pub(crate) fn one_line(text: &str) -> String {
    let lines = text.split(LINE_BREAKS).map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Neutralises text of users, programs or models: nothing in it looks like the beginning of a message of the runtime.
pub fn neutralise_marks(text: &str) -> Cow<'_, str> {
    let mut safe = String::new();
    let mut copied = 0;
    for (bracket, _) in text.match_indices('[') {
        let is_mark = |mark: &&&str| {
            text.get(bracket..bracket + mark.len()).is_some_and(|found| found.eq_ignore_ascii_case(mark))
        };
        if let Some(mark) = RUNTIME_MARKS.iter().find(is_mark) {
            let end = bracket + mark.len() - "]".len();
            safe.push_str(&text[copied..end]);
            safe.push('?');
            copied = end;
        }
    }
    if copied == 0 { text.into() } else { (safe + &text[copied..]).into() }
}

/// A number with commas between its thousands.
pub(crate) fn with_commas(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
#[path = "truncate_tests.rs"]
mod tests;
