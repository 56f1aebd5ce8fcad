//! Texts that are cut to a size, and words of others that stand among the runtime's own. Cuts are between characters, always.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crate::tokens::BYTES_PER_TOKEN;

/// What the runtime's own messages begin with. In the words of anybody else each of them gets a question mark.
const MARKS: [&str; 4] = ["runtime note", "compacted context summary", "session todo snapshot", "memory"];

/// How long a text may be that takes at most so many tokens, before anything is learnt.
pub fn max_bytes_for(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX)
}

/// The longest beginning of a text with at most so many bytes.
pub(crate) fn head(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

/// The longest end of a text with at most so many bytes.
pub(crate) fn tail(text: &str, most: usize) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(most))..]
}

/// A text in at most so many bytes. If it has more, its middle goes, and the marker says how many bytes that are; where the
/// marker itself has no room, only the beginning stays. The marker must not grow when less is missing.
pub(crate) fn without_middle(text: &str, most: usize, marker: impl Fn(usize) -> String) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let Some(room) = most.checked_sub(marker(text.len()).len()) else {
        return head(text, most).into();
    };
    let (head, tail) = (head(text, room.div_ceil(2)), tail(text, room / 2));
    format!("{head}{}{tail}", marker(text.len() - head.len() - tail.len())).into()
}

/// The largest number of a range for which something holds that holds for every smaller one; the first, if it holds for none.
pub(crate) fn largest(range: RangeInclusive<usize>, holds: impl Fn(usize) -> bool) -> usize {
    let (mut held, mut failed) = (*range.start(), range.end().saturating_add(1));
    while failed.saturating_sub(held) > 1 {
        let middle = held.midpoint(failed);
        if holds(middle) {
            held = middle;
        } else {
            failed = middle;
        }
    }
    held
}

/// A text as one line, whatever kind of line breaks it has.
pub(crate) fn one_line(text: &str) -> String {
    let breaks = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let lines = text.split(breaks).map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// Words of others, in which nothing looks like the beginning of a message of the runtime.
pub fn neutralise_marks(text: &str) -> Cow<'_, str> {
    let mut safe = String::new();
    let mut copied = 0;
    for (bracket, _) in text.match_indices('[') {
        let inside = &text.as_bytes()[bracket + 1..];
        let is_mark = |mark: &&&str| {
            inside.get(mark.len()) == Some(&b']')
                && inside[..mark.len()].eq_ignore_ascii_case(mark.as_bytes())
        };
        if let Some(mark) = MARKS.iter().find(is_mark) {
            let end = bracket + 1 + mark.len();
            safe.push_str(&text[copied..end]);
            safe.push('?');
            copied = end;
        }
    }
    if copied == 0 { text.into() } else { (safe + &text[copied..]).into() }
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: usize) -> String {
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
#[path = "text_tests.rs"]
mod tests;
