//! Applies edits to a text: all of them or none, in their order, each only where it is unambiguous.

use schemars::JsonSchema;
use serde::Deserialize;

use super::MAX_WRITTEN_BYTES;

/// Further occurrences are not counted.
const MAX_COUNTED_OCCURRENCES: usize = 100;

/// One replacement.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    /// Exactly as in the file, white space too, and with enough around it to occur once.
    pub(super) old: String,
    pub(super) new: String,
    /// Replace every occurrence.
    pub(super) all: Option<bool>,
}

/// The text after all edits. Each edit sees the result of the ones before it.
pub(super) fn apply(text: &str, edits: &[Edit]) -> Result<String, String> {
    edits.iter().enumerate().try_fold(text.to_owned(), |text, (index, edit)| {
        apply_one(&text, edit).map_err(|problem| {
            format!("edit {} of {}: {problem}. Nothing was changed", index + 1, edits.len())
        })
    })
}

fn apply_one(text: &str, edit: &Edit) -> Result<String, String> {
    let Edit { old, new, all } = edit;
    if old.is_empty() {
        return Err("`old` is empty; give the text to replace, or use write_file for a new file".to_owned());
    }
    if old == new {
        return Err("`old` and `new` are the same".to_owned());
    }
    let all = all.unwrap_or(false);
    match occurrences(text, old) {
        0 => Err(format!("`old` was not found{}", hint(text, old))),
        count if count == 1 || all => replaced(text, old, new),
        count => {
            let (count, more) = if count > MAX_COUNTED_OCCURRENCES {
                (MAX_COUNTED_OCCURRENCES, "more than ")
            } else {
                (count, "")
            };
            Err(format!(
                "`old` was found {more}{count} times, first in the lines {}; give more of the text around the one that is \
                 meant, or set `all`",
                first_lines(text, old)
            ))
        }
    }
}

fn replaced(text: &str, old: &str, new: &str) -> Result<String, String> {
    let count = text.matches(old).count();
    match (text.len() - count * old.len()).checked_add(count.saturating_mul(new.len())) {
        Some(length) if length <= MAX_WRITTEN_BYTES => Ok(text.replace(old, new)),
        _ => Err(format!("the file would have more than {MAX_WRITTEN_BYTES} bytes")),
    }
}

/// Counts occurrences, overlapping ones too: `aa` could be meant in two places of `aaa`. Stops beyond
/// [`MAX_COUNTED_OCCURRENCES`].
fn occurrences(text: &str, old: &str) -> usize {
    places(text, old).take(MAX_COUNTED_OCCURRENCES + 1).count()
}

fn places<'a>(text: &'a str, old: &'a str) -> impl Iterator<Item = usize> + 'a {
    let step = old.chars().next().map_or(1, char::len_utf8);
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = from + text.get(from..)?.find(old)?;
        from = at + step;
        Some(at)
    })
}

fn first_lines(text: &str, old: &str) -> String {
    let lines: Vec<String> = places(text, old).take(3).map(|at| line_at(text, at).to_string()).collect();
    lines.join(", ")
}

fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// A hint at a similar text, which is most often what was meant.
fn hint(text: &str, old: &str) -> String {
    if text.contains("\r\n") && old.contains('\n') && text.contains(&with_carriage_returns(old)) {
        return "; the lines of this file end with \\r\\n, so write \\r\\n in `old` and `new` too".to_owned();
    }
    if let Some(line) = apart_from_white_space(text, old) {
        return format!("; the text in line {line} differs from it only in white space");
    }
    let first = old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    match text.find(first) {
        Some(at) if !first.is_empty() && first.len() < old.trim().len() => {
            format!("; its first line is in line {}, but what follows differs", line_at(text, at))
        }
        _ => "; read the file again to see how it is now".to_owned(),
    }
}

fn with_carriage_returns(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// The line at which a text begins that differs only in white space.
fn apart_from_white_space(text: &str, old: &str) -> Option<usize> {
    let (sought, _) = condensed(old);
    let (condensed, lines) = condensed(text);
    match sought.is_empty() {
        true => None,
        false => condensed.find(&sought).map(|at| lines[at]),
    }
}

/// A text without its white space, and the line number of each byte.
fn condensed(text: &str) -> (String, Vec<usize>) {
    let (mut condensed, mut lines, mut line) = (String::new(), Vec::new(), 1);
    for letter in text.chars() {
        line += usize::from(letter == '\n');
        if !letter.is_whitespace() {
            condensed.push(letter);
            lines.resize(condensed.len(), line);
        }
    }
    (condensed, lines)
}

#[cfg(test)]
#[path = "text_edits_tests.rs"]
mod tests;
