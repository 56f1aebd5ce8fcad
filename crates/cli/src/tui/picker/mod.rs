//! A list in which the user picks one item by typing a part of it.

pub(crate) mod standalone;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::input::{cut, list};

/// Rows that PageUp and PageDown move.
const PAGE_ROWS: usize = 10;
const MAX_QUERY_BYTES: usize = 200;
const FIND: &str = "Find: ";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickerItem {
    /// Searched, but not shown.
    pub(crate) key: String,
    pub(crate) line: String,
    /// Shown beside the line where there is room.
    pub(crate) detail: String,
}

/// The effect of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickerOutcome {
    Nothing,
    /// An index into the items.
    Chosen(usize),
    Cancelled,
}

pub(crate) struct Picker {
    title: String,
    items: Vec<PickerItem>,
    /// For each item its searched text, in lower case.
    searched: Vec<String>,
    query: String,
    /// Indices of the items that match.
    matches: Vec<usize>,
    /// An index into `matches`.
    selected: usize,
}

impl Picker {
    pub(crate) fn new(title: impl Into<String>, items: Vec<PickerItem>) -> Self {
        let all = |item: &PickerItem| format!("{} {} {}", item.key, item.line, item.detail).to_lowercase();
        Self {
            title: title.into(),
            searched: items.iter().map(all).collect(),
            matches: (0..items.len()).collect(),
            items,
            query: String::new(),
            selected: 0,
        }
    }

    pub(crate) fn press(&mut self, key: KeyEvent) -> PickerOutcome {
        if key.kind == KeyEventKind::Release {
            return PickerOutcome::Nothing;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match (key.code, control, alt) {
            (KeyCode::Enter, ..) | (KeyCode::Char('m' | 'j'), true, _) => {
                return self
                    .matches
                    .get(self.selected)
                    .map_or(PickerOutcome::Nothing, |index| PickerOutcome::Chosen(*index));
            }
            (KeyCode::Esc, ..) | (KeyCode::Char('c' | 'd'), true, _) => return PickerOutcome::Cancelled,
            (KeyCode::Up | KeyCode::BackTab, ..) | (KeyCode::Char('p'), true, _) => self.select_previous(),
            (KeyCode::Down | KeyCode::Tab, ..) | (KeyCode::Char('n'), true, _) => self.select_next(),
            (KeyCode::PageUp, ..) => self.selected = self.selected.saturating_sub(PAGE_ROWS),
            (KeyCode::PageDown, ..) => self.selected = (self.selected + PAGE_ROWS).min(self.last_match()),
            (KeyCode::Home, ..) => self.selected = 0,
            (KeyCode::End, ..) => self.selected = self.last_match(),
            (KeyCode::Backspace, false, false) | (KeyCode::Char('h'), true, _) => self.delete_character(),
            (KeyCode::Backspace, ..) | (KeyCode::Char('w'), true, _) => self.delete_word(),
            (KeyCode::Char('u'), true, _) => self.set_query(String::new()),
            (KeyCode::Char(character), false, false) => self.paste(character.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        PickerOutcome::Nothing
    }

    /// Appends to the query.
    pub(crate) fn paste(&mut self, text: &str) {
        let mut query = self.query.clone();
        query.extend(text.chars().map(|character| if character.is_control() { ' ' } else { character }));
        query.truncate(query.floor_char_boundary(MAX_QUERY_BYTES));
        self.set_query(query);
    }

    /// The title, the query, and the rows around the selected one, as far as there is room.
    pub(crate) fn lines(&self, width: u16, height: u16) -> Vec<Line<'static>> {
        let (width, height) = (usize::from(width), usize::from(height));
        let mut lines = Vec::new();
        if height >= 3 {
            lines.push(self.title_line(width));
        }
        if height >= 2 {
            lines.push(self.query_line(width));
        }
        let room = height - lines.len();
        if self.matches.is_empty() && room > 0 {
            let none = if self.items.is_empty() { "There is nothing here." } else { "Nothing matches." };
            lines.push(Line::styled(cut(none, width), Style::new().add_modifier(Modifier::DIM)));
            return lines;
        }
        let rows = self.matches.iter().map(|index| &self.items[*index]);
        let rows = rows.map(|item| (item.line.as_str(), item.detail.as_str()));
        lines.extend(list(rows, self.selected, width, room));
        lines
    }

    /// The title, and the number of matches.
    fn title_line(&self, width: usize) -> Line<'static> {
        let count = cut(&format!("{} of {}", self.matches.len(), self.items.len()), width);
        let title = cut(&self.title, width.saturating_sub(count.width() + 2));
        let gap = if title.is_empty() { "" } else { "  " };
        Line::from(vec![
            Span::styled(title, Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(gap),
            Span::styled(count, Style::new().add_modifier(Modifier::DIM)),
        ])
    }

    /// The end of the query, as far as there is room, with the cursor.
    fn query_line(&self, width: usize) -> Line<'static> {
        let room = width.saturating_sub(FIND.len() + 1);
        let mut used = 0;
        let fits = |(_, cluster): &(usize, &str)| {
            used += cluster.width();
            used <= room
        };
        let seen = self.query.grapheme_indices(true).rev().take_while(fits).last();
        let end = seen.map_or("", |(start, _)| &self.query[start..]).to_owned();
        let cursor = if width > 0 { " " } else { "" };
        Line::from(vec![
            Span::styled(cut(FIND, width.saturating_sub(1)), Style::new().add_modifier(Modifier::DIM)),
            Span::raw(end),
            Span::styled(cursor, Style::new().add_modifier(Modifier::REVERSED)),
        ])
    }

    fn last_match(&self) -> usize {
        self.matches.len().saturating_sub(1)
    }

    /// Selects the next match; after the last, the first.
    fn select_next(&mut self) {
        self.selected = if self.selected >= self.last_match() { 0 } else { self.selected + 1 };
    }

    /// Selects the previous match; before the first, the last.
    fn select_previous(&mut self) {
        self.selected = self.selected.checked_sub(1).unwrap_or(self.last_match());
    }

    fn delete_character(&mut self) {
        let end = self.query.grapheme_indices(true).next_back().map_or(0, |(start, _)| start);
        self.set_query(self.query[..end].to_owned());
    }

    fn delete_word(&mut self) {
        let rest = self.query.trim_end();
        let kept = rest.trim_end_matches(|character: char| !character.is_whitespace());
        self.set_query(kept.to_owned());
    }

    /// Matches the items that contain all words of the query. The selected item stays selected if it matches.
    fn set_query(&mut self, query: String) {
        let selected = self.matches.get(self.selected).copied();
        let words = query.to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let has_all = |index: &usize| words.iter().all(|word| self.searched[*index].contains(word));
        self.matches = (0..self.items.len()).filter(has_all).collect();
        self.selected = self.matches.iter().position(|index| Some(*index) == selected).unwrap_or_default();
        self.query = query;
    }
}

#[cfg(test)]
#[path = "picker_tests.rs"]
mod tests;
