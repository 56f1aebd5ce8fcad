//! Texts that are cut to a size, between characters, always.

use std::borrow::Cow;

/// A text in at most so many bytes, where that is more than a mark takes. If it has more, its middle goes, and a mark says so, on a line of
/// its own that is set in like the lines of the text.
pub(crate) fn without_middle<'a>(text: &'a str, most: usize, set_in: &str) -> Cow<'a, str> {
    if text.len() <= most {
        return text.into();
    }
    let mark = |missing: usize| format!("\n{set_in}[… {missing} bytes are left out here …]\n{set_in}");
    let room = most.saturating_sub(mark(text.len()).len());
    let head = text[..text.floor_char_boundary(room.div_ceil(2))].trim_end();
    let tail = &text[text.ceil_char_boundary(text.len() - room / 2)..];
    format!("{head}{}{tail}", mark(text.len() - head.len() - tail.len())).into()
}

/// A text as one line, without anything that is not shown, or that changes how the rest is shown.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let words = words.map(|word| word.replace(is_hidden, "")).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// The beginning of a text as one line, for messages to people.
pub(crate) fn brief(text: &str, most: usize) -> String {
    let line = one_line(&text[..text.floor_char_boundary(4 * most)]);
    let head = &line[..line.floor_char_boundary(most)];
    if head.len() < line.len() || text.len() > 4 * most { format!("{head}…") } else { line }
}

/// Marks of direction and signs without a width: what they do to a line can't be seen.
pub(crate) fn is_hidden(letter: char) -> bool {
    let is_direction =
        matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_direction || matches!(letter, '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{feff}')
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
