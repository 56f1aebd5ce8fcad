//! Ctrl-R: a search in the history while the user types.

use super::history::History;

/// Bytes of an entry that are searched: longer ones are pasted texts, and a key must not wait for them.
const MAX_SEARCHED_BYTES: usize = 4096;
const MAX_QUERY_BYTES: usize = 200;

/// An open search.
pub(super) struct HistorySearch {
    query: String,
    /// The entry that is shown.
    found: Option<usize>,
    /// The last step found nothing; the entry before it is still shown.
    is_failing: bool,
    /// Where the cursor was before the search.
    pub(super) cursor_before: usize,
}

impl HistorySearch {
    pub(super) fn new(cursor_before: usize) -> Self {
        Self { query: String::new(), found: None, is_failing: false, cursor_before }
    }

    /// The index of the entry that is shown.
    pub(super) fn found(&self) -> Option<usize> {
        self.found
    }

    /// Adds a character to the query. The entry that is shown stays if it still matches.
    pub(super) fn push(&mut self, character: char, history: &History) {
        if self.query.len() + character.len_utf8() <= MAX_QUERY_BYTES {
            self.query.push(character);
        }
        self.search(self.found.map_or(history.len(), |found| found + 1), history);
    }

    /// Removes the last character and searches from the newest entry on.
    pub(super) fn pop(&mut self, history: &History) {
        self.query.pop();
        if self.query.is_empty() {
            (self.found, self.is_failing) = (None, false);
        } else {
            self.search(history.len(), history);
        }
    }

    /// Goes on to the next older entry with another text.
    pub(super) fn find_older(&mut self, history: &History) {
        self.search(self.found.unwrap_or(history.len()), history);
    }

    fn search(&mut self, before: usize, history: &History) {
        if self.query.is_empty() {
            return;
        }
        let query = self.query.to_lowercase();
        let shown = self.found.filter(|shown| *shown >= before).and_then(|shown| history.get(shown));
        let fits = |index: &usize| {
            let Some(entry) = history.get(*index) else { return false };
            let searched = &entry[..entry.floor_char_boundary(MAX_SEARCHED_BYTES)];
            Some(entry) != shown && searched.to_lowercase().contains(&query)
        };
        let found = (0..before).rev().find(fits);
        self.is_failing = found.is_none();
        self.found = found.or(self.found);
    }

    /// The row below the field.
    pub(super) fn line(&self) -> String {
        let state = if self.is_failing { "no match for" } else { "history search:" };
        format!("{state} {}_  ·  Enter takes it · Ctrl-R older · Esc leaves", self.query)
    }
}
