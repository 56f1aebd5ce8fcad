//! What a search in the detail view looks for.

use std::ops::Range;

/// A text to look for. Without a capital letter it matches capital letters too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SearchPattern {
    text: String,
    matches_case: bool,
}

impl SearchPattern {
    /// None if there is nothing to look for.
    pub(super) fn new(text: &str) -> Option<Self> {
        let matches_case = text.chars().any(char::is_uppercase);
        (!text.is_empty()).then(|| Self { text: text.to_owned(), matches_case })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn is_in(&self, line: &str) -> bool {
        self.next_match(line).is_some()
    }

    /// The matches in a line, from left to right.
    pub(super) fn ranges_in(&self, line: &str) -> Vec<Range<usize>> {
        let (mut ranges, mut from) = (Vec::new(), 0);
        while let Some(found) = self.next_match(&line[from..]) {
            ranges.push(from + found.start..from + found.end);
            from += found.end;
        }
        ranges
    }

    fn next_match(&self, line: &str) -> Option<Range<usize>> {
        if self.matches_case {
            let start = line.find(&self.text)?;
            return Some(start..start + self.text.len());
        }
        let first = self.text.chars().next()?;
        line.char_indices().filter(|(_, letter)| is_same_letter(*letter, first)).find_map(|(start, _)| {
            let end = self.end_of_match(&line[start..])?;
            Some(start..start + end)
        })
    }

    /// Where the pattern ends, if the line begins with it.
    fn end_of_match(&self, line: &str) -> Option<usize> {
        let mut letters = line.chars();
        for wanted in self.text.chars() {
            letters.next().filter(|letter| is_same_letter(*letter, wanted))?;
        }
        Some(line.len() - letters.as_str().len())
    }
}

fn is_same_letter(one: char, lower_case: char) -> bool {
    one == lower_case || one.eq_ignore_ascii_case(&lower_case) || one.to_lowercase().eq([lower_case])
}

#[cfg(test)]
#[path = "search_pattern_tests.rs"]
mod tests;
