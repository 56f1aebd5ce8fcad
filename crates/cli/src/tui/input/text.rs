//! The text that is being typed, with a cursor in it and what was killed last.

use std::collections::BTreeMap;
use std::ops::Range;

use super::chips::{Chips, clean, is_long_paste, is_mark, is_too_long_to_edit, pasted_label};
use super::graphemes::{next, previous};

/// How long an input may become, with everything that was pasted into it.
pub(super) const MAX_INPUT_BYTES: usize = 8 * 1024 * 1024;

/// The input is as long as it may be; nothing was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InputFull;

/// Where a killed piece stood: whether it joins what was killed just before at its beginning or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillSide {
    Before,
    After,
}

/// What divides words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordRule {
    /// Everything but letters, digits and underscores.
    Plain,
    /// White space alone.
    Spaced,
}

/// The text of the input. Everything that changes it goes through `insert` and `remove`, which count its bytes.
#[derive(Default)]
pub(super) struct InputText {
    /// With one mark for each piece that is shown as one.
    content: String,
    cursor: usize,
    /// The bytes of the content with its pieces.
    size: usize,
    killed: String,
    chips: Chips,
    /// Texts that may come back, by their places in the history: what was being typed, and entries that were changed.
    aside: BTreeMap<usize, String>,
}

impl InputText {
    pub(super) fn content(&self) -> &str {
        &self.content
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

    /// The bytes of the text with its pieces, as they were counted.
    #[cfg(test)]
    pub(super) fn counted(&self) -> usize {
        self.size
    }

    pub(super) fn chips(&self) -> &Chips {
        &self.chips
    }

    pub(super) fn expanded(&self) -> String {
        self.chips.expand(&self.content)
    }

    /// The bytes of the line with the cursor, without its end.
    pub(super) fn line(&self) -> Range<usize> {
        let start = self.content[..self.cursor].rfind('\n').map_or(0, |at| at + 1);
        let end = self.content[self.cursor..].find('\n').map_or(self.content.len(), |at| self.cursor + at);
        start..end
    }

    /// A character that was typed.
    pub(super) fn type_character(&mut self, character: char) -> Result<(), InputFull> {
        match is_mark(character) {
            true => self.insert_piece(character.to_string(), "\u{FFFD}".to_owned()),
            false => self.insert(character.encode_utf8(&mut [0; 4])),
        }
    }

    /// What was pasted, at the cursor; all of it or nothing.
    pub(super) fn paste(&mut self, text: &str) -> Result<(), InputFull> {
        if text.len() > MAX_INPUT_BYTES {
            return Err(InputFull);
        }
        let text = clean(text);
        match is_long_paste(&text) {
            true => {
                let label = pasted_label(&text);
                self.insert_piece(text, label)
            }
            false => self.insert(&text),
        }
    }

    /// Puts a text in place of what is there, with the cursor at its end.
    pub(super) fn set(&mut self, text: &str) -> Result<(), InputFull> {
        self.clear();
        let text = clean(text);
        match is_too_long_to_edit(&text) {
            true => {
                let label = pasted_label(&text);
                self.insert_piece(text, label)
            }
            false => self.insert(&text),
        }
    }

    pub(super) fn clear(&mut self) {
        self.content.clear();
        self.cursor = 0;
        self.size = 0;
    }

    /// Puts the text aside under a place, where `bring_back` finds it.
    pub(super) fn put_aside(&mut self, place: usize) {
        self.aside.insert(place, self.content.clone());
    }

    /// Puts the text there that was put aside under a place; says whether there was one.
    pub(super) fn bring_back(&mut self, place: usize) -> bool {
        let Some(content) = self.aside.get(&place) else { return false };
        self.content.clone_from(content);
        self.cursor = self.content.len();
        self.size = self.chips.size(&self.content);
        true
    }

    pub(super) fn forget_aside(&mut self) {
        self.aside.clear();
    }

    fn insert_piece(&mut self, text: String, label: String) -> Result<(), InputFull> {
        if self.size + text.len() > MAX_INPUT_BYTES {
            return Err(InputFull);
        }
        let others = [self.content.as_str(), self.killed.as_str()];
        let in_use = others.into_iter().chain(self.aside.values().map(String::as_str));
        let mark = self.chips.keep(text, label, in_use).ok_or(InputFull)?;
        self.insert(mark.encode_utf8(&mut [0; 4]))
    }

    /// Puts a piece of text at the cursor; its marks must be in the table.
    fn insert(&mut self, piece: &str) -> Result<(), InputFull> {
        let more = self.chips.size(piece);
        if self.size + more > MAX_INPUT_BYTES {
            return Err(InputFull);
        }
        self.content.insert_str(self.cursor, piece);
        self.cursor += piece.len();
        self.size += more;
        Ok(())
    }

    fn remove(&mut self, range: Range<usize>) -> String {
        let removed: String = self.content.drain(range.clone()).collect();
        self.size -= self.chips.size(&removed);
        self.cursor = range.start;
        removed
    }

    /// Puts other text in place of a piece that ends at the cursor.
    pub(super) fn replace_before_cursor(&mut self, from: usize, text: &str) -> Result<(), InputFull> {
        self.remove(from..self.cursor);
        self.insert(text)
    }

    pub(super) fn delete_before(&mut self) {
        self.remove(previous(&self.content, self.cursor)..self.cursor);
    }

    pub(super) fn delete_after(&mut self) {
        self.remove(self.cursor..next(&self.content, self.cursor));
    }

    pub(super) fn move_to(&mut self, place: usize) {
        self.cursor = place;
    }

    pub(super) fn move_left(&mut self) {
        self.cursor = previous(&self.content, self.cursor);
    }

    pub(super) fn move_right(&mut self) {
        self.cursor = next(&self.content, self.cursor);
    }

    /// Removes a range and keeps it for `yank`; with what was killed just before, if the person goes on killing.
    pub(super) fn kill(&mut self, range: Range<usize>, joins: Option<KillSide>) {
        if range.is_empty() {
            return;
        }
        let removed = self.remove(range);
        match joins {
            None => self.killed = removed,
            Some(KillSide::Before) => self.killed.insert_str(0, &removed),
            Some(KillSide::After) => self.killed.push_str(&removed),
        }
    }

    pub(super) fn yank(&mut self) -> Result<(), InputFull> {
        let killed = std::mem::take(&mut self.killed);
        let inserted = self.insert(&killed);
        self.killed = killed;
        inserted
    }

    /// What Ctrl-K kills: the rest of the line, or its end if there is no rest.
    pub(super) fn rest_of_line(&self) -> Range<usize> {
        match self.line().end {
            end if end == self.cursor => self.cursor..next(&self.content, self.cursor),
            end => self.cursor..end,
        }
    }

    /// What Ctrl-U kills: the line before the cursor, or the end of the line above.
    pub(super) fn start_of_line(&self) -> Range<usize> {
        match self.line().start {
            start if start == self.cursor => previous(&self.content, self.cursor)..self.cursor,
            start => start..self.cursor,
        }
    }

    /// Where the word before the cursor begins.
    pub(super) fn word_start(&self, words: WordRule) -> usize {
        let mut at = self.cursor;
        let mut was_in_word = false;
        while at > 0 {
            let before = previous(&self.content, at);
            match self.part_of_word(before, words) {
                CharacterClass::Gap | CharacterClass::Chip if was_in_word => break,
                CharacterClass::Chip => return before,
                CharacterClass::Gap => {}
                CharacterClass::Word => was_in_word = true,
            }
            at = before;
        }
        at
    }

    /// Where the word after the cursor ends.
    pub(super) fn word_end(&self, words: WordRule) -> usize {
        let mut at = self.cursor;
        let mut was_in_word = false;
        while at < self.content.len() {
            let after = next(&self.content, at);
            match self.part_of_word(at, words) {
                CharacterClass::Gap | CharacterClass::Chip if was_in_word => break,
                CharacterClass::Chip => return after,
                CharacterClass::Gap => {}
                CharacterClass::Word => was_in_word = true,
            }
            at = after;
        }
        at
    }

    fn part_of_word(&self, at: usize, words: WordRule) -> CharacterClass {
        let Some(character) = self.content[at..].chars().next() else { return CharacterClass::Gap };
        let is_word = match words {
            WordRule::Plain => character.is_alphanumeric() || character == '_',
            WordRule::Spaced => !character.is_whitespace(),
        };
        match is_word {
            _ if is_mark(character) => CharacterClass::Chip,
            true => CharacterClass::Word,
            false => CharacterClass::Gap,
        }
    }
}

/// What a character is to the keys that go by words.
enum CharacterClass {
    Word,
    Gap,
    /// A word of its own.
    Chip,
}
