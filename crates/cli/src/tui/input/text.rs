//! The text of the input field, with its cursor and its kill buffer.

use std::collections::BTreeMap;
use std::ops::Range;

use super::chips::{Chips, clean, is_long_paste, is_mark, is_too_long_to_edit, pasted_label};
use super::graphemes::{next, previous};

/// The longest input, with the text of its chips.
pub(super) const MAX_INPUT_BYTES: usize = 8 * 1024 * 1024;

/// The input would be too long; nothing was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InputFull;

/// On which side of the cursor the killed text was, and so at which end it joins the kill buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KillSide {
    Before,
    After,
}

/// What separates words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordRule {
    /// Everything but letters, digits and underscores.
    Plain,
    /// White space alone.
    Spaced,
}

/// All changes go through `insert` and `remove`, which count the bytes.
#[derive(Default)]
pub(super) struct InputText {
    /// With one mark character for each chip.
    content: String,
    cursor: usize,
    /// Bytes of the text with its chips expanded.
    size: usize,
    killed: String,
    chips: Chips,
    /// Edited texts by history index: the new input, and changed entries.
    edits: BTreeMap<usize, String>,
}

impl InputText {
    pub(super) fn content(&self) -> &str {
        &self.content
    }

    pub(super) fn cursor(&self) -> usize {
        self.cursor
    }

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

    /// The byte range of the line with the cursor, without the line break.
    pub(super) fn line(&self) -> Range<usize> {
        let start = self.content[..self.cursor].rfind('\n').map_or(0, |at| at + 1);
        let end = self.content[self.cursor..].find('\n').map_or(self.content.len(), |at| self.cursor + at);
        start..end
    }

    /// Inserts a typed character. A mark character becomes a chip, so that every mark has one.
    pub(super) fn type_character(&mut self, character: char) -> Result<(), InputFull> {
        match is_mark(character) {
            true => self.insert_chip(character.to_string(), "\u{FFFD}".to_owned()),
            false => self.insert(character.encode_utf8(&mut [0; 4])),
        }
    }

    /// Inserts pasted text, all of it or nothing.
    pub(super) fn paste(&mut self, text: &str) -> Result<(), InputFull> {
        if text.len() > MAX_INPUT_BYTES {
            return Err(InputFull);
        }
        self.insert_text(clean(text), is_long_paste)
    }

    /// Replaces the text; the cursor goes to its end.
    pub(super) fn set(&mut self, text: &str) -> Result<(), InputFull> {
        self.clear();
        self.insert_text(clean(text), is_too_long_to_edit)
    }

    fn insert_text(&mut self, text: String, becomes_chip: fn(&str) -> bool) -> Result<(), InputFull> {
        match becomes_chip(&text) {
            true => {
                let label = pasted_label(&text);
                self.insert_chip(text, label)
            }
            false => self.insert(&text),
        }
    }

    pub(super) fn clear(&mut self) {
        self.content.clear();
        self.cursor = 0;
        self.size = 0;
    }

    /// Keeps the text under a history index, for `restore_edit`.
    pub(super) fn save_edit(&mut self, index: usize) {
        self.edits.insert(index, self.content.clone());
    }

    /// Restores the text that was kept under a history index. False if there is none.
    pub(super) fn restore_edit(&mut self, index: usize) -> bool {
        let Some(content) = self.edits.get(&index) else { return false };
        self.content.clone_from(content);
        self.cursor = self.content.len();
        self.size = self.chips.size(&self.content);
        true
    }

    /// Keeps an edited text under another history index.
    pub(super) fn move_edit(&mut self, from: usize, to: usize) {
        if let Some(content) = self.edits.remove(&from) {
            self.edits.insert(to, content);
        }
    }

    pub(super) fn forget_edits(&mut self) {
        self.edits.clear();
    }

    fn insert_chip(&mut self, text: String, label: String) -> Result<(), InputFull> {
        if self.size + text.len() > MAX_INPUT_BYTES {
            return Err(InputFull);
        }
        let others = [self.content.as_str(), self.killed.as_str()];
        let in_use = others.into_iter().chain(self.edits.values().map(String::as_str));
        let mark = self.chips.add(text, label, in_use).ok_or(InputFull)?;
        self.insert(mark.encode_utf8(&mut [0; 4]))
    }

    /// Inserts text at the cursor. Its marks must be chips of this text.
    fn insert(&mut self, text: &str) -> Result<(), InputFull> {
        let more = self.chips.size(text);
        if self.size + more > MAX_INPUT_BYTES {
            return Err(InputFull);
        }
        self.content.insert_str(self.cursor, text);
        self.cursor += text.len();
        self.size += more;
        Ok(())
    }

    fn remove(&mut self, range: Range<usize>) -> String {
        let removed: String = self.content.drain(range.clone()).collect();
        self.size -= self.chips.size(&removed);
        self.cursor = range.start;
        removed
    }

    /// Replaces the text from `from` to the cursor.
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

    pub(super) fn move_to(&mut self, offset: usize) {
        self.cursor = offset;
    }

    pub(super) fn move_left(&mut self) {
        self.cursor = previous(&self.content, self.cursor);
    }

    pub(super) fn move_right(&mut self) {
        self.cursor = next(&self.content, self.cursor);
    }

    /// Removes a range into the kill buffer. `joins` says where it joins text that was killed just before.
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

    /// What Ctrl-K kills: the rest of the line, or at its end the line break.
    pub(super) fn rest_of_line(&self) -> Range<usize> {
        match self.line().end {
            end if end == self.cursor => self.cursor..next(&self.content, self.cursor),
            end => self.cursor..end,
        }
    }

    /// What Ctrl-U kills: the line before the cursor, or at its start the line break before it.
    pub(super) fn start_of_line(&self) -> Range<usize> {
        match self.line().start {
            start if start == self.cursor => previous(&self.content, self.cursor)..self.cursor,
            start => start..self.cursor,
        }
    }

    /// Where the word before the cursor begins.
    pub(super) fn word_start(&self, words: WordRule) -> usize {
        self.word_boundary(words, previous)
    }

    /// Where the word after the cursor ends.
    pub(super) fn word_end(&self, words: WordRule) -> usize {
        self.word_boundary(words, next)
    }

    /// The far side of the next word in the direction of `step`.
    fn word_boundary(&self, words: WordRule, step: fn(&str, usize) -> usize) -> usize {
        let (mut at, mut was_in_word) = (self.cursor, false);
        loop {
            let reached = step(&self.content, at);
            if reached == at {
                return at;
            }
            match self.class_at(at.min(reached), words) {
                CharacterClass::Gap | CharacterClass::Chip if was_in_word => return at,
                CharacterClass::Chip => return reached,
                CharacterClass::Gap => {}
                CharacterClass::Word => was_in_word = true,
            }
            at = reached;
        }
    }

    fn class_at(&self, at: usize, words: WordRule) -> CharacterClass {
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

/// What a character is to the word motions.
enum CharacterClass {
    Word,
    Gap,
    /// A word of its own.
    Chip,
}
