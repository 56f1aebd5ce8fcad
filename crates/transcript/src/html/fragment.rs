//! The pieces that all fragments are made of: escaped text, times, and texts that are cut in their middle.

use std::borrow::Cow;
use std::fmt::{Arguments, Write};

use longhaul_protocol::At;

use crate::local_time::format_moment;
use crate::style::{Color, StyledLine};
use crate::text::{format_number, sanitize};

/// Bytes of one output, diff or list of arguments that a fragment shows.
pub(super) const MAX_OUTPUT_BYTES: usize = 64 << 10;

pub(super) fn push(html: &mut String, text: Arguments<'_>) {
    // Writing to a string can't fail.
    let _ = html.write_fmt(text);
}

/// A paragraph of text from anywhere.
pub(super) fn push_line(html: &mut String, class: &str, text: &str) {
    push(html, format_args!("<p class=\"{class}\" dir=\"auto\">{}</p>\n", escape(text)));
}

/// Text whose white space counts, cut in its middle if it is long.
pub(super) fn push_pre(html: &mut String, class: &str, text: &str) {
    let text = cut_middle(text.trim_end_matches('\n'), MAX_OUTPUT_BYTES);
    push(html, format_args!("<pre class=\"{class}\" dir=\"auto\">{}</pre>\n", escape(&text)));
}

/// A row of the terminal, with classes in place of colours.
pub(super) fn push_row(html: &mut String, row: &StyledLine) {
    for span in &row.spans {
        let text = escape(&span.content);
        let class = match span.style.color {
            Some(Color::Green) => "good",
            Some(Color::Red) => "bad",
            _ if span.style.dim => "quiet",
            _ => "",
        };
        match (span.style.bold, class) {
            (true, _) => push(html, format_args!("<strong>{text}</strong>")),
            (false, "") => html.push_str(&text),
            (false, class) => push(html, format_args!("<span class=\"{class}\">{text}</span>")),
        }
    }
}

/// The beginning and the end of a text that has more than `max_bytes`, and between them a line that says how much is missing.
pub(super) fn cut_middle(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return Cow::Borrowed(text);
    }
    let half = max_bytes / 2;
    let (head, tail) = (text.floor_char_boundary(half), text.ceil_char_boundary(text.len() - half));
    let missing = format_number((tail - head) as u64);
    Cow::Owned(format!("{}\n\n[… {missing} bytes are not shown …]\n\n{}", &text[..head], &text[tail..]))
}

/// A moment, for people and for programs. One outside of the calendar is text: a browser knows no date for it.
pub fn time_element(at: At) -> String {
    if !at.is_in_calendar() {
        return escape(&at.to_string());
    }
    format!("<time datetime=\"{at}\">{}</time>", format_moment(at))
}

/// Escapes text from anywhere for an element or an attribute: nothing of it is markup, and nothing reverses the text behind it.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in sanitize(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // Directional marks have no use of their own between words.
            '\u{200e}' | '\u{200f}' | '\u{061c}' => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}
