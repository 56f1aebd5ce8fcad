//! The text of a page: its name, its size, and its lines.
//!
//! A page is Markdown: `# Title`, then lines that begin with `- `, perhaps under `##` headings. Each line that is
//! neither a heading nor empty is an item.

use longhaul_context::LINE_BREAKS;

use crate::text::is_invisible;
use crate::{Error, Result};

pub(crate) const MAX_PAGE_BYTES: usize = 16 << 10;
pub(crate) const MAX_PAGES: usize = 500;
const MAX_NAME_BYTES: usize = 64;
const MAX_SHOWN_NAME: usize = 80;
/// Marks an item that comes from untrusted text.
pub(crate) const UNTRUSTED_MARK: &str = "[untrusted] ";
const BULLETS: [&str; 3] = ["- ", "* ", "+ "];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageLine<'a> {
    /// The indentation, and the bullet or the hashes.
    pub(crate) prefix: &'a str,
    pub(crate) is_untrusted: bool,
    /// The rest of the line, without the untrusted mark.
    pub(crate) words: &'a str,
}

impl<'a> PageLine<'a> {
    pub(crate) fn of(line: &'a str) -> Self {
        let inner = line.trim_start();
        let hashes = inner.len() - inner.trim_start_matches('#').len();
        let after = &inner[hashes..];
        let sign = if hashes > 0 && (after.is_empty() || after.starts_with(char::is_whitespace)) {
            inner.len() - after.trim_start().len()
        } else {
            BULLETS
                .iter()
                .find(|sign| inner.starts_with(**sign) || inner == sign.trim_end())
                .map_or(0, |sign| sign.len())
        };
        let sign = sign.min(inner.len());
        let (prefix, rest) = line.split_at(line.len() - inner.len() + sign);
        let rest = rest.trim();
        let mark = UNTRUSTED_MARK.trim_end();
        let (is_untrusted, words) = match rest.get(..mark.len()) {
            Some(start) if start.eq_ignore_ascii_case(mark) => (true, rest[mark.len()..].trim_start()),
            _ => (false, rest),
        };
        Self { prefix, is_untrusted, words }
    }

    pub(crate) fn is_heading(&self) -> bool {
        self.prefix.trim_start().starts_with('#')
    }

    /// Whether it is an item of the page.
    pub(crate) fn is_item(&self) -> bool {
        !self.words.is_empty() && !self.is_heading()
    }

    /// The line, marked as untrusted.
    pub(crate) fn as_untrusted(&self) -> String {
        format!("{}{UNTRUSTED_MARK}{}", self.prefix, self.words)
    }
}

pub(crate) fn page_items(text: &str) -> impl Iterator<Item = PageLine<'_>> {
    text.lines().map(PageLine::of).filter(PageLine::is_item)
}

/// Checks the name of a page.
pub fn check_page_name(name: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let reason = if name.is_empty() {
        "it is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "it has more than 64 characters"
    } else if !name.bytes().all(|byte| is_plain(byte) || byte == b'-' || byte == b'_') {
        "only a-z, 0-9, - and _ are allowed"
    } else if !name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit()) {
        "it must start with a letter or a digit"
    } else {
        return Ok(());
    };
    let shown = name.chars().take(MAX_SHOWN_NAME).collect();
    Err(Error::BadName { name: shown, reason: reason.to_owned() })
}

/// The text in its stored form: one kind of line break, no invisible characters, no trailing spaces, one line break
/// at the end. `None` if nothing is left. So each line that a reader sees is a line that was validated.
pub(crate) fn normalise_page(text: &str) -> Option<String> {
    let text = text.replace("\r\n", "\n");
    let is_unseen = |letter: char| letter != '\t' && (letter.is_control() || is_invisible(letter));
    let lines: Vec<String> =
        text.split(LINE_BREAKS).map(|line| line.replace(is_unseen, "").trim_end().to_owned()).collect();
    let begins = lines.iter().position(|line| !line.is_empty())?;
    let ends = lines.iter().rposition(|line| !line.is_empty())?;
    Some(lines[begins..=ends].join("\n") + "\n")
}

/// Why a text is too large for a page, if it is.
pub(crate) fn size_error(text: &str) -> Option<String> {
    let bytes = text.len();
    (bytes > MAX_PAGE_BYTES)
        .then(|| format!("it would have {bytes} bytes; the limit is {MAX_PAGE_BYTES}, so split it"))
}

/// The title of a page: its first line with words.
pub(crate) fn title(text: &str) -> Option<PageLine<'_>> {
    text.lines().map(PageLine::of).find(|line| !line.words.is_empty())
}

/// Whether all items of a page are untrusted.
pub(crate) fn is_untrusted(text: &str) -> bool {
    let mut page_items = page_items(text).peekable();
    page_items.peek().is_some() && page_items.all(|line| line.is_untrusted)
}

pub(crate) fn title_from_name(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
