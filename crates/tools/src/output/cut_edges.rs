//! The text between two cuts, such that nothing shows of what a cut goes through.

use std::borrow::Cow;

use crate::{Redact, plain};

/// How much of each side of a cut is enough to tell whether something goes through it.
const CUT_CONTEXT_BYTES: usize = 16 << 10;

/// The text of some bytes that others lie around.
pub(crate) struct TextBetweenCuts {
    pub(crate) text: String,
    /// Nothing goes on beyond its end.
    pub(crate) ends_well: bool,
}

/// The text of the bytes in the middle. Of a character, a colour or a secret that goes through a cut nothing shows.
pub(crate) fn text_between_cuts(
    before: &[u8],
    shown: &[u8],
    after: &[u8],
    redact: &Redact,
) -> TextBetweenCuts {
    let read = |bytes: &[u8]| redact(&plain(bytes));
    let is_clean = |one: &[u8], other: &[u8]| {
        one.is_empty() || other.is_empty() || read(one) + &read(other) == read(&[one, other].concat())
    };
    // A secret may go through both cuts, so what lies beyond the other one is looked at, too. And without it: a line that is
    // overwritten further on would hide what goes through a cut.
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
    // Both are between characters: where two texts begin to differ, or where one ends.
    let text = whole.get(start..end).unwrap_or_default().to_owned();
    TextBetweenCuts { text, ends_well }
}

/// The first bytes of two parts that follow each other, as many as are enough.
fn first_of<'a>(one: &'a [u8], other: &[u8]) -> Cow<'a, [u8]> {
    match CUT_CONTEXT_BYTES.checked_sub(one.len()) {
        Some(left) if !other.is_empty() => [one, &other[..other.len().min(left)]].concat().into(),
        _ => one[..one.len().min(CUT_CONTEXT_BYTES)].into(),
    }
}

/// The last bytes of them.
fn last_of<'a>(one: &[u8], other: &'a [u8]) -> Cow<'a, [u8]> {
    match CUT_CONTEXT_BYTES.checked_sub(other.len()) {
        Some(left) if !one.is_empty() => [&one[one.len().saturating_sub(left)..], other].concat().into(),
        _ => other[other.len().saturating_sub(CUT_CONTEXT_BYTES)..].into(),
    }
}

/// How many bytes of two texts are the same from the start on, in whole characters.
fn common_start(one: &str, other: &str) -> usize {
    let same = one.chars().zip(other.chars()).take_while(|(one, other)| one == other);
    same.map(|(letter, _)| letter.len_utf8()).sum()
}

/// The same from the end on.
fn common_end(one: &str, other: &str) -> usize {
    let same = one.chars().rev().zip(other.chars().rev()).take_while(|(one, other)| one == other);
    same.map(|(letter, _)| letter.len_utf8()).sum()
}

#[cfg(test)]
#[path = "cut_edges_tests.rs"]
mod tests;
