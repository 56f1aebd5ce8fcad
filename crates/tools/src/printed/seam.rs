//! The text between two cuts, such that nothing shows of what a cut goes through.

use crate::{Redact, plain};

/// How much of each side of a cut is enough to tell whether something goes through it.
const SIDE: usize = 16 << 10;

/// The text of some bytes that others lie around.
pub(crate) struct Between {
    pub(crate) text: String,
    /// Nothing goes on beyond its end.
    pub(crate) ends_well: bool,
}

/// The text of the bytes in the middle. Of a character, a colour or a secret that goes through a cut nothing shows.
pub(crate) fn text_between(before: &[u8], shown: &[u8], after: &[u8], redact: &Redact) -> Between {
    let read = |bytes: &[u8]| redact(&plain(bytes));
    let is_clean = |one: &[u8], other: &[u8]| {
        let (one, other) = (&one[one.len().saturating_sub(SIDE)..], &other[..other.len().min(SIDE)]);
        one.is_empty() || other.is_empty() || read(one) + &read(other) == read(&[one, other].concat())
    };
    let (begins_well, ends_well) = (is_clean(before, shown), is_clean(shown, after));
    if begins_well && ends_well {
        return Between { text: read(shown), ends_well };
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
    Between { text, ends_well }
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
