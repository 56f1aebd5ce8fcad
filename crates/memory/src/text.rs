//! Makes texts single lines, and truncates them. Cuts are always between characters.

use std::borrow::Cow;

/// Truncates a text in its middle to at most `max` bytes, if that is longer than the marker. The marker has its own
/// line, indented like the lines of the text. The head ends with a whole word, because a cut within an indent would
/// leave a line that is not indented.
pub(crate) fn truncate_middle_lines<'a>(text: &'a str, max: usize, indent: &str) -> Cow<'a, str> {
    if text.len() <= max {
        return text.into();
    }
    let marker = |missing: usize| format!("\n{indent}[… {missing} bytes are left out here …]\n{indent}");
    let room = max.saturating_sub(marker(text.len()).len());
    let head = text[..text.floor_char_boundary(room.div_ceil(2))].trim_end();
    let tail = &text[text.ceil_char_boundary(text.len() - room / 2)..];
    format!("{head}{}{tail}", marker(text.len() - head.len() - tail.len())).into()
}

/// A text as one line, without control characters and without invisible ones.
pub(crate) fn one_line(text: &str) -> String {
    let words = text.split(|letter: char| letter.is_whitespace() || letter.is_control());
    let words = words.map(|word| word.replace(is_invisible, "")).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

/// The first `max` bytes of a text as one line, for messages to people.
pub(crate) fn truncate_line(text: &str, max: usize) -> String {
    let line = one_line(&text[..text.floor_char_boundary(4 * max)]);
    let head = &line[..line.floor_char_boundary(max)];
    if head.len() < line.len() || text.len() > 4 * max { format!("{head}…") } else { line }
}

/// Direction marks and characters without a width. A reader can't see how they change a line.
pub(crate) fn is_invisible(letter: char) -> bool {
    let is_direction =
        matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_direction || matches!(letter, '\u{200b}' | '\u{2060}'..='\u{2065}' | '\u{feff}')
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
