//! The text between two cuts, without any part of a character, escape sequence or secret that goes through a cut.

use std::borrow::Cow;

use super::plain_text;
use crate::Redact;

/// Bytes on each side of a cut that decide whether something goes through it.
const CUT_CONTEXT_BYTES: usize = 16 << 10;

pub(crate) struct TextBetweenCuts {
    pub(crate) text: String,
    /// Nothing goes through the cut at its end.
    pub(crate) ends_well: bool,
}

/// The text of the bytes in the middle.
pub(crate) fn text_between_cuts(
    before: &[u8],
    shown: &[u8],
    after: &[u8],
    redact: &Redact,
) -> TextBetweenCuts {
    let read = |bytes: &[u8]| redact(&plain_text(bytes));
    let is_clean = |one: &[u8], other: &[u8]| {
        one.is_empty() || other.is_empty() || read(one) + &read(other) == read(&[one, other].concat())
    };
    // A secret may go through both cuts, so the bytes beyond the other cut count, too. The comparison is also made
    // without them: a line that is overwritten further on would hide what goes through a cut.
    let (before_it, after_it) = (last_of(&[], before), first_of(after, &[]));
    let begins_well =
        is_clean(&before_it, &first_of(shown, after)) && is_clean(&before_it, &first_of(shown, &[]));
    let ends_well = is_clean(&last_of(before, shown), &after_it) && is_clean(&last_of(&[], shown), &after_it);
    if begins_well && ends_well {
        return TextBetweenCuts { text: read(shown), ends_well };
    }
    let whole = read(&[before, shown, after].concat());
    let end = if ends_well {
        whole.len() - read(after).len().min(whole.len())
    } else {
        common_start(&whole, &read(&[before, shown].concat()))
    };
    let start = if begins_well {
        read(before).len()
    } else {
        whole.len() - common_end(&whole, &read(&[shown, after].concat()))
    };
    // Both offsets are between characters: where two texts begin to differ, or where one ends.
    let text = whole.get(start..end).unwrap_or_default().to_owned();
    TextBetweenCuts { text, ends_well }
}

/// The first bytes of two adjacent parts, at most [`CUT_CONTEXT_BYTES`].
fn first_of<'a>(one: &'a [u8], other: &[u8]) -> Cow<'a, [u8]> {
    match CUT_CONTEXT_BYTES.checked_sub(one.len()) {
        Some(left) if !other.is_empty() => [one, &other[..other.len().min(left)]].concat().into(),
        _ => one[..one.len().min(CUT_CONTEXT_BYTES)].into(),
    }
}

/// The last bytes of two adjacent parts, at most [`CUT_CONTEXT_BYTES`].
fn last_of<'a>(one: &[u8], other: &'a [u8]) -> Cow<'a, [u8]> {
    match CUT_CONTEXT_BYTES.checked_sub(other.len()) {
        Some(left) if !one.is_empty() => [&one[one.len().saturating_sub(left)..], other].concat().into(),
        _ => other[other.len().saturating_sub(CUT_CONTEXT_BYTES)..].into(),
    }
}

/// Length of the common prefix of two texts.
fn common_start(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    same.map(|(letter, _)| letter.len_utf8()).sum()
}

/// Length of the common suffix of two texts.
fn common_end(one: &str, other: &str) -> usize {
    let same = one.chars().rev().zip(other.chars().rev()).take_while(|(one, other)| one == other);
    same.map(|(letter, _)| letter.len_utf8()).sum()
}

#[cfg(test)]
#[path = "cut_edges_tests.rs"]
mod tests;
