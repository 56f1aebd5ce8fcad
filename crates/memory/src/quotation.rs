//! Quotations of the user.
//!
//! A paraphrase can reverse a rule and still use its words. So only a whole passage of an input counts as the user's.

use longhaul_context::{ContentWords, quotable_passages};

/// A passage is quoted for a text if it contains this share of the text's words.
const MIN_QUOTED_SHARE: f64 = 0.5;

/// The passage of the user's inputs that contains most of the text's words. `None` if none contains half of them.
pub fn find_quotation<'a>(text: &str, said: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let words = ContentWords::of(text);
    let passages = said.into_iter().flat_map(quotable_passages);
    let scored = passages.map(|passage| (words.share_in(&ContentWords::of(&passage)), passage));
    let told = scored.filter(|(share, _)| *share >= MIN_QUOTED_SHARE);
    // Of two passages with the same share, the shorter one. If they are equally long, the later one.
    let best = told.max_by(|(one, shorter), (other, longer)| {
        one.total_cmp(other).then_with(|| longer.len().cmp(&shorter.len()))
    });
    best.map(|(_, passage)| passage)
}

#[cfg(test)]
#[path = "quotation_tests.rs"]
mod tests;
