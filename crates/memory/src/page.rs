//! One page as text: what it may be called, how large it may be, and what stands in it.
//!
//! A page is Markdown: `# Title`, then lines that begin with `- `, perhaps under `##` headings. Each line that is neither a heading nor
//! empty is an item.

use crate::text::is_hidden;
use crate::{Error, Result};

/// A page has at most so many bytes.
pub(crate) const LARGEST_PAGE: usize = 16 << 10;
/// A scope has at most so many pages.
pub(crate) const MOST_PAGES: usize = 500;
/// The name of a page has at most so many characters.
const LONGEST_NAME: usize = 64;
/// So many characters of a name that can't be one are shown.
const SHOWN_NAME: usize = 80;
/// What stands before words that nobody trusted said.
pub(crate) const UNTRUSTED: &str = "[untrusted] ";
/// What an item may begin with.
const SIGNS: [&str; 3] = ["- ", "* ", "+ "];

/// One line of a page, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Its indentation, and the sign that makes it an item or a heading.
    pub(crate) lead: &'a str,
    /// Whether it is marked as something that nobody trusted said.
    pub(crate) is_untrusted: bool,
    /// What it says, without the mark.
    pub(crate) says: &'a str,
}

impl<'a> Line<'a> {
    pub(crate) fn of(line: &'a str) -> Self {
        let inner = line.trim_start();
        let hashes = inner.len() - inner.trim_start_matches('#').len();
        let after = &inner[hashes..];
        let sign = if hashes > 0 && (after.is_empty() || after.starts_with(char::is_whitespace)) {
            inner.len() - after.trim_start().len()
        } else {
            SIGNS
                .iter()
                .find(|sign| inner.starts_with(**sign) || inner == sign.trim_end())
                .map_or(0, |sign| sign.len())
        };
        let sign = sign.min(inner.len());
        let (lead, rest) = line.split_at(line.len() - inner.len() + sign);
        let rest = rest.trim();
        let mark = UNTRUSTED.trim_end();
        let (is_untrusted, says) = match rest.get(..mark.len()) {
            Some(start) if start.eq_ignore_ascii_case(mark) => (true, rest[mark.len()..].trim_start()),
            _ => (false, rest),
        };
        Self { lead, is_untrusted, says }
    }

    pub(crate) fn is_heading(&self) -> bool {
        self.lead.trim_start().starts_with('#')
    }

    /// Whether it is one of the things that a page holds.
    pub(crate) fn is_item(&self) -> bool {
        !self.says.is_empty() && !self.is_heading()
    }

    /// The same, marked as something that nobody trusted said.
    pub(crate) fn as_untrusted(&self) -> String {
        format!("{}{UNTRUSTED}{}", self.lead, self.says)
    }
}

/// The items of a page, in their order.
pub(crate) fn items(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().map(Line::of).filter(Line::is_item)
}

/// Whether a page may be called so.
pub fn check_page_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > LONGEST_NAME {
        "it has more than 64 characters"
    } else if !name.bytes().all(|byte| is_plain(byte) || byte == b'-' || byte == b'_') {
        "it may have a to z, 0 to 9, - and _ only"
    } else if !name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit()) {
        "it must begin with a letter or a digit"
    } else {
        return Ok(());
    };
    let shown = name.chars().take(SHOWN_NAME).collect();
    Err(Error::BadName { name: shown, reason: reason.to_owned() })
}

/// What ends a line where it is shown, besides what ends one here.
const BREAKS: [char; 7] = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// A text as a page has it: one kind of line break, nothing that can't be seen, no blanks at the ends of lines, one line break at the end;
/// nothing, if nothing is left. So each line that anybody sees is a line by which the page is judged.
pub(crate) fn tidy(text: &str) -> Option<String> {
    let text = text.replace("\r\n", "\n");
    let is_unseen = |letter: char| letter != '\t' && (letter.is_control() || is_hidden(letter));
    let lines: Vec<String> =
        text.split(BREAKS).map(|line| line.replace(is_unseen, "").trim_end().to_owned()).collect();
    let begins = lines.iter().position(|line| !line.is_empty())?;
    let ends = lines.iter().rposition(|line| !line.is_empty())?;
    Some(lines[begins..=ends].join("\n") + "\n")
}

/// Why a page can't have this text, if it can't.
pub(crate) fn too_large(text: &str) -> Option<String> {
    let bytes = text.len();
    (bytes > LARGEST_PAGE)
        .then(|| format!("it would have {bytes} bytes, and a page has at most {LARGEST_PAGE}; split it"))
}

/// The title of a page: its first line that says something.
pub(crate) fn title(text: &str) -> Option<Line<'_>> {
    text.lines().map(Line::of).find(|line| !line.says.is_empty())
}

/// Whether nothing on a page was said by anybody trusted.
pub(crate) fn is_untrusted(text: &str) -> bool {
    let mut items = items(text).peekable();
    items.peek().is_some() && items.all(|line| line.is_untrusted)
}

/// A title for a page that has none.
pub(crate) fn title_from(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
