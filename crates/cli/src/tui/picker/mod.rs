//! Choosing one of a list, by typing a part of it.

pub(crate) mod standalone;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::input::{cut, list};

/// How far PageUp and PageDown go.
const PAGE_ROWS: usize = 10;
/// How long what is looked for may become.
const MAX_QUERY_CHARS: usize = 200;
const FIND: &str = "Find: ";

/// One of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PickerItem {
    /// What it is known by; looked through, and not shown.
    pub(crate) key: String,
    pub(crate) line: String,
    /// What stands beside, where there is room.
    pub(crate) detail: String,
}

/// What a key came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PickerOutcome {
    Nothing,
    /// The place in the list as it was given.
    Chosen(usize),
    Left,
}

/// A list of which one may be chosen.
pub(crate) struct Picker {
    title: String,
    choices: Vec<PickerItem>,
    /// Everything that is looked through, for each of them, in small letters.
    searched: Vec<String>,
    wanted: String,
    /// The places of those that match.
    found: Vec<usize>,
    /// Which of these is marked.
    marked: usize,
}

impl Picker {
    pub(crate) fn new(title: impl Into<String>, choices: Vec<PickerItem>) -> Self {
        let all =
            |choice: &PickerItem| format!("{} {} {}", choice.key, choice.line, choice.detail).to_lowercase();
        Self {
            title: title.into(),
            searched: choices.iter().map(all).collect(),
            found: (0..choices.len()).collect(),
            choices,
            wanted: String::new(),
            marked: 0,
        }
    }

    /// What a key came to.
    pub(crate) fn press(&mut self, key: KeyEvent) -> PickerOutcome {
        if key.kind == KeyEventKind::Release {
            return PickerOutcome::Nothing;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match (key.code, control, alt) {
            (KeyCode::Enter, ..) | (KeyCode::Char('m' | 'j'), true, _) => {
                return self
                    .found
                    .get(self.marked)
                    .map_or(PickerOutcome::Nothing, |place| PickerOutcome::Chosen(*place));
            }
            (KeyCode::Esc, ..) | (KeyCode::Char('c' | 'd'), true, _) => return PickerOutcome::Left,
            (KeyCode::Up | KeyCode::BackTab, ..) | (KeyCode::Char('p'), true, _) => self.back(),
            (KeyCode::Down | KeyCode::Tab, ..) | (KeyCode::Char('n'), true, _) => self.further(),
            (KeyCode::PageUp, ..) => self.marked = self.marked.saturating_sub(PAGE_ROWS),
            (KeyCode::PageDown, ..) => self.marked = (self.marked + PAGE_ROWS).min(self.last()),
            (KeyCode::Home, ..) => self.marked = 0,
            (KeyCode::End, ..) => self.marked = self.last(),
            (KeyCode::Backspace, false, false) | (KeyCode::Char('h'), true, _) => self.delete_character(),
            (KeyCode::Backspace, ..) | (KeyCode::Char('w'), true, _) => self.delete_word(),
            (KeyCode::Char('u'), true, _) => self.look_for(String::new()),
            (KeyCode::Char(character), false, false) => self.paste(character.encode_utf8(&mut [0; 4])),
            _ => {}
        }
        PickerOutcome::Nothing
    }

    /// Adds to what is looked for.
    pub(crate) fn paste(&mut self, text: &str) {
        let mut wanted = self.wanted.clone();
        wanted.extend(text.chars().map(|character| if character.is_control() { ' ' } else { character }));
        wanted.truncate(wanted.floor_char_boundary(MAX_QUERY_CHARS));
        self.look_for(wanted);
    }

    /// How it looks: a title, what is looked for, and the rows around the marked one, as far as there is room.
    pub(crate) fn lines(&self, width: u16, height: u16) -> Vec<Line<'static>> {
        let (width, height) = (usize::from(width), usize::from(height));
        let mut lines = Vec::new();
        if height >= 3 {
            lines.push(self.title_line(width));
        }
        if height >= 2 {
            lines.push(self.wanted_line(width));
        }
        let room = height - lines.len();
        if self.found.is_empty() && room > 0 {
            let none = if self.choices.is_empty() { "There is nothing here." } else { "Nothing matches." };
            lines.push(Line::styled(cut(none, width), Style::new().add_modifier(Modifier::DIM)));
            return lines;
        }
        let rows = self.found.iter().map(|place| &self.choices[*place]);
        let rows = rows.map(|choice| (choice.line.as_str(), choice.detail.as_str()));
        lines.extend(list(rows, self.marked, width, room));
        lines
    }

    /// The title, and how many match.
    fn title_line(&self, width: usize) -> Line<'static> {
        let count = cut(&format!("{} of {}", self.found.len(), self.choices.len()), width);
        let title = cut(&self.title, width.saturating_sub(count.width() + 2));
        let gap = if title.is_empty() { "" } else { "  " };
        Line::from(vec![
            Span::styled(title, Style::new().add_modifier(Modifier::BOLD)),
            Span::raw(gap),
            Span::styled(count, Style::new().add_modifier(Modifier::DIM)),
        ])
    }

    /// What is looked for, its end if there is no room for all, and where the next character goes.
    fn wanted_line(&self, width: usize) -> Line<'static> {
        let room = width.saturating_sub(FIND.len() + 1);
        let mut used = 0;
        let fits = |(_, cluster): &(usize, &str)| {
            used += cluster.width();
            used <= room
        };
        let seen = self.wanted.grapheme_indices(true).rev().take_while(fits).last();
        let end = seen.map_or("", |(start, _)| &self.wanted[start..]).to_owned();
        let cursor = if width > 0 { " " } else { "" };
        Line::from(vec![
            Span::styled(cut(FIND, width.saturating_sub(1)), Style::new().add_modifier(Modifier::DIM)),
            Span::raw(end),
            Span::styled(cursor, Style::new().add_modifier(Modifier::REVERSED)),
        ])
    }

    fn last(&self) -> usize {
        self.found.len().saturating_sub(1)
    }

    /// One further; after the last comes the first.
    fn further(&mut self) {
        self.marked = if self.marked >= self.last() { 0 } else { self.marked + 1 };
    }

    /// One back; before the first comes the last.
    fn back(&mut self) {
        self.marked = self.marked.checked_sub(1).unwrap_or(self.last());
    }

    fn delete_character(&mut self) {
        let end = self.wanted.grapheme_indices(true).next_back().map_or(0, |(start, _)| start);
        self.look_for(self.wanted[..end].to_owned());
    }

    fn delete_word(&mut self) {
        let rest = self.wanted.trim_end();
        let kept = rest.trim_end_matches(|character: char| !character.is_whitespace());
        self.look_for(kept.to_owned());
    }

    /// Finds what has all of these words; the marked one stays marked if it is among them.
    fn look_for(&mut self, wanted: String) {
        let marked = self.found.get(self.marked).copied();
        let words = wanted.to_lowercase();
        let words: Vec<&str> = words.split_whitespace().collect();
        let has_all = |place: &usize| words.iter().all(|word| self.searched[*place].contains(word));
        self.found = (0..self.choices.len()).filter(has_all).collect();
        self.marked = self.found.iter().position(|place| Some(*place) == marked).unwrap_or_default();
        self.wanted = wanted;
    }
}

#[cfg(test)]
#[path = "picker_tests.rs"]
mod tests;
