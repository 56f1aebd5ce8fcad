//! Quotations: what the user said, word for word.
//!
//! A paraphrase can turn a rule around and still be made of its words, and so can a part of a sentence: "deploy without asking me" stands in
//! "Never deploy without asking me". So what counts as the user's is a whole input, or a whole line or sentence of a long one.

use crate::words::ContentWords;

/// An input of at most so many characters is quoted whole: its sentences may depend on each other.
const SHORT_INPUT: usize = 300;
/// A quotation has at most so many characters.
const LONGEST_QUOTE: usize = 600;
/// A text tells of a quotation that has so much of its words.
const TELLS_OF: f64 = 0.5;

/// The quotation that a text tells of, out of what the user said: the one that has most of its words. Nothing, if none has half of them.
pub fn quotation_for<'a>(text: &str, said: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let words = ContentWords::of(text);
    let passages = said.into_iter().flat_map(passages);
    let scored = passages.map(|passage| (words.share_in(&ContentWords::of(&passage)), passage));
    let told = scored.filter(|(share, _)| *share >= TELLS_OF);
    // Of two that have as much of it, the shorter one; the later one, if they are the same.
    let best = told.max_by(|(one, shorter), (other, longer)| {
        one.total_cmp(other).then_with(|| longer.len().cmp(&shorter.len()))
    });
    best.map(|(_, passage)| passage)
}

/// What can be quoted of an input: all of it if it is short, else its lines, and the sentences of lines that are too long.
fn passages(said: &str) -> Vec<String> {
    let whole = one_line(said);
    if whole.chars().count() <= SHORT_INPUT {
        return Some(whole).filter(|whole| !whole.is_empty()).into_iter().collect();
    }
    let lines = said.lines().map(one_line).filter(|line| !line.is_empty());
    let passages = lines.flat_map(|line| match fits(&line) {
        true => vec![line],
        false => sentences(&line),
    });
    passages.filter(|passage| fits(passage)).collect()
}

fn fits(passage: &str) -> bool {
    passage.chars().count() <= LONGEST_QUOTE
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The sentences of a line, each from its beginning to its end.
fn sentences(line: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut begins = 0;
    for (place, letter) in line.char_indices() {
        let end = place + letter.len_utf8();
        let is_wide = matches!(letter, '。' | '！' | '？');
        let ends = matches!(letter, '.' | '!' | '?') && line[end..].starts_with(' ');
        if is_wide || ends {
            sentences.push(line[begins..end].trim().to_owned());
            begins = end;
        }
    }
    sentences.push(line[begins..].trim().to_owned());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

#[cfg(test)]
#[path = "quote_tests.rs"]
mod tests;
