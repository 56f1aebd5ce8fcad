//! Quotations: what the user said, word for word.
//!
//! A paraphrase can turn a rule around and still be made of its words. So what counts as the user's is a passage of an input, which can't be
//! quoted in part.

use longhaul_context::{ContentWords, quotable_passages};

/// A text tells of a quotation that has so much of its words.
const TELLS_OF: f64 = 0.5;

/// The quotation that a text tells of, out of what the user said: the one that has most of its words. Nothing, if none has half of them.
pub fn find_quotation<'a>(text: &str, said: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let words = ContentWords::of(text);
    let passages = said.into_iter().flat_map(|input| quotable_passages(input));
    let scored = passages.map(|passage| (words.share_in(&ContentWords::of(&passage)), passage));
    let told = scored.filter(|(share, _)| *share >= TELLS_OF);
    // Of two that have as much of it, the shorter one; the later one, if they are the same.
    let best = told.max_by(|(one, shorter), (other, longer)| {
        one.total_cmp(other).then_with(|| longer.len().cmp(&shorter.len()))
    });
    best.map(|(_, passage)| passage)
}

#[cfg(test)]
#[path = "quote_tests.rs"]
mod tests;
