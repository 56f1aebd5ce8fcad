//! The input field at the prompt: several lines, with history, pastes and completion. Keys go in, lines come out; the view draws it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `keys` | what each key does, in one table |
//! | `text` | the text, its cursor, words, and the kill buffer |
//! | `chips` | long pastes, shown as one label |
//! | `graphemes`, `layout` | grapheme clusters, and the text wrapped into rows |
//! | `history`, `history_search` | earlier inputs, in a file; Ctrl-R |
//! | `completion`, `files` | completion of slash commands and of files after `@` |
//! | `file_index`, `fuzzy` | all files of the work folder, and how well one matches |

mod chips;
mod completion;
mod file_index;
mod files;
mod fuzzy;
mod graphemes;
mod history;
mod history_search;
mod keys;
mod layout;
mod server_menu;
mod text;

use std::cell::Cell;

use crossterm::event::KeyEvent;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

use self::chips::is_mark;
pub(crate) use self::completion::CompletionSources;
use self::completion::{After, Completer, Completion, EnterAction, ROWS};
pub(in crate::tui) use self::graphemes::{cut, list};
pub(crate) use self::history::History;
use self::history_search::HistorySearch;
use self::keys::{KeyAction, Kill, Motion, key_action};
use self::layout::{InputFrame, Layout};
pub(crate) use self::server_menu::ServerMenu;
use self::text::{InputFull, InputText, KillSide, MAX_INPUT_BYTES, WordRule};

/// The message when the input is full.
const INPUT_FULL: &str = "This would be more than 8 MiB: put it into a file, and ask the agent to read that.";
/// Where the text of before a history search is kept, among the edited history entries.
const BEFORE_SEARCH: usize = usize::MAX;
/// Columns of the text before it is first rendered.
const DEFAULT_COLUMNS: usize = 77;

/// The effect of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyOutcome {
    /// At most the field changed.
    Edited,
    /// The user entered this text: never empty, without white space at its end.
    Entered(String),
    /// Esc with nothing to close and nothing typed.
    Escape,
    /// Ctrl-C with nothing typed.
    Interrupt,
    /// Ctrl-D with nothing typed.
    End,
    /// A key that the field does not use.
    Other(KeyEvent),
}

/// The field, rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputView {
    pub(crate) lines: Vec<Line<'static>>,
    /// Column and row in these lines.
    pub(crate) cursor: (u16, u16),
    /// A message and completions below the field, at most 6 rows.
    pub(crate) completions: Vec<Line<'static>>,
}

/// What the last key did, as far as it matters to the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastKey {
    Kill,
    /// Up or down. In a long enough row the cursor returns to this column.
    Vertical(usize),
    Other,
}

pub(crate) struct InputField {
    text: InputText,
    history: History,
    /// The history entry being edited; `history.len()` is the new input.
    history_index: usize,
    completer: Completer,
    completion: Option<Completion>,
    search: Option<HistorySearch>,
    message: Option<&'static str>,
    last_key: LastKey,
    /// Columns of the text when it was last rendered: up and down move by rendered rows.
    columns: Cell<usize>,
}

impl InputField {
    pub(crate) fn new(history: History, sources: CompletionSources) -> Self {
        Self {
            text: InputText::default(),
            history_index: history.len(),
            history,
            completer: Completer::new(sources),
            completion: None,
            search: None,
            message: None,
            last_key: LastKey::Other,
            columns: Cell::new(DEFAULT_COLUMNS),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.content().is_empty()
    }

    /// The text, with one private-use character for each chip.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        self.text.content()
    }

    /// The text with its chips expanded.
    pub(crate) fn expanded(&self) -> String {
        self.text.expanded()
    }

    /// Replaces the text. One that is too long is refused with a message, and the present one stays.
    pub(crate) fn set(&mut self, text: &str) {
        if text.len() > MAX_INPUT_BYTES {
            self.message = Some(INPUT_FULL);
            return;
        }
        self.reset();
        let set = self.text.set(text);
        self.report_full(set);
    }

    /// Replaces the text with one from elsewhere. The present one stays in the history of this run.
    pub(crate) fn recall_text(&mut self, text: &str) {
        if !self.is_empty() {
            self.discard();
        }
        self.set(text);
    }

    /// The entry of the history that is shown unchanged.
    pub(crate) fn recalled(&self) -> Option<&str> {
        self.history.get(self.history_index).filter(|entry| *entry == self.text.content())
    }

    /// Shows a message below the text until the next key.
    pub(crate) fn set_message(&mut self, message: &'static str) {
        self.message = Some(message);
    }

    /// Whether the list of files may still change without a key.
    pub(crate) fn awaits_files(&self) -> bool {
        self.search.is_none() && self.completer.awaits_files()
    }

    /// Lists the files that were found since the last key.
    pub(crate) fn refresh_completion(&mut self) {
        if self.search.is_some() || !self.completer.has_new_files() {
            return;
        }
        let earlier = self.completion.take();
        self.completion = self.completer.find(self.text.content(), self.text.cursor());
        if let (Some(completion), Some(earlier)) = (&mut self.completion, &earlier) {
            completion.keep_selection(earlier);
        }
    }

    /// Puts a half typed text into the history when the chat ends.
    pub(crate) fn keep_in_history(&mut self) {
        let text = self.text.expanded();
        if !text.trim().is_empty() {
            self.history.add(&text);
        }
    }

    /// Inserts pasted text, all of it or nothing.
    pub(crate) fn paste(&mut self, text: &str) {
        self.accept_search();
        self.message = None;
        self.last_key = LastKey::Other;
        let pasted = self.text.paste(text);
        self.report_full(pasted);
        self.complete();
    }

    pub(crate) fn press(&mut self, key: KeyEvent) -> KeyOutcome {
        let key_action = key_action(&key);
        if key_action == KeyAction::Nothing {
            return KeyOutcome::Edited;
        }
        self.message = None;
        let last = std::mem::replace(&mut self.last_key, LastKey::Other);
        if self.search.is_some() && self.press_in_search(key_action) {
            return KeyOutcome::Edited;
        }
        match key_action {
            KeyAction::Type(character) => self.insert_with(|text| text.type_character(character)),
            KeyAction::NewLine => self.insert_with(|text| text.type_character('\n')),
            KeyAction::DeleteBefore => self.change(InputText::delete_before),
            KeyAction::DeleteAfter => self.change(InputText::delete_after),
            KeyAction::DeleteOrEnd if self.is_empty() => return KeyOutcome::End,
            KeyAction::DeleteOrEnd => self.change(InputText::delete_after),
            KeyAction::Yank => self.insert_with(InputText::yank),
            KeyAction::Kill(kill) => self.kill(kill, last),
            KeyAction::Move(Motion::Right) if self.is_at_end() && self.completion.is_some() => {
                self.accept_completion();
            }
            KeyAction::Move(motion) => self.move_by(motion),
            KeyAction::Up => self.up(last),
            KeyAction::Down => self.down(last),
            KeyAction::PreviousCompletion if self.completion.is_none() => return KeyOutcome::Other(key),
            KeyAction::PreviousCompletion => self.completion.iter_mut().for_each(Completion::up),
            KeyAction::SearchHistory => self.start_search(),
            KeyAction::Complete if self.completion.is_some() => self.accept_completion(),
            KeyAction::Complete => self.complete(),
            KeyAction::Enter => return self.enter(),
            KeyAction::Escape if self.completion.is_some() => self.close_completion(),
            KeyAction::Escape if self.is_empty() => return KeyOutcome::Escape,
            KeyAction::Interrupt if self.is_empty() => return KeyOutcome::Interrupt,
            KeyAction::Interrupt => self.discard(),
            KeyAction::Escape | KeyAction::Nothing => {}
            KeyAction::Other => return KeyOutcome::Other(key),
        }
        KeyOutcome::Edited
    }

    /// Whether completions are shown. Then Shift-Tab goes to the one before.
    pub(crate) fn has_completions(&self) -> bool {
        self.completion.is_some()
    }

    /// Renders the field in at most `rows` rows, around the cursor.
    pub(crate) fn render(&self, prompt: &str, width: u16, rows: u16) -> InputView {
        let (width, height) = (usize::from(width), usize::from(rows));
        let frame = InputFrame::new(prompt, width);
        self.columns.set(frame.columns);
        if width == 0 || height == 0 {
            return InputView { lines: Vec::new(), cursor: (0, 0), completions: Vec::new() };
        }
        let (lines, cursor) = frame.lines(Layout::new(&self.text, frame.columns).visible_rows(height));
        let dim = Style::new().add_modifier(Modifier::DIM);
        let search = self.search.as_ref().map(HistorySearch::line);
        let notes = search.iter().map(String::as_str).chain(self.message);
        let mut completions: Vec<Line<'static>> =
            notes.map(|note| Line::styled(cut(note, width), dim)).collect();
        if let Some(completion) = &self.completion {
            completions.extend(completion.lines(width, ROWS - completions.len()));
        }
        InputView { lines, cursor, completions }
    }

    /// Changes the text and updates the completion.
    fn change(&mut self, change: impl FnOnce(&mut InputText)) {
        change(&mut self.text);
        self.complete();
    }

    /// Adds to the text if there is room, and updates the completion.
    fn insert_with(&mut self, change: impl FnOnce(&mut InputText) -> Result<(), InputFull>) {
        let changed = change(&mut self.text);
        self.report_full(changed);
        self.complete();
    }

    fn report_full(&mut self, changed: Result<(), InputFull>) {
        if changed == Err(InputFull) {
            self.message = Some(INPUT_FULL);
        }
    }

    fn kill(&mut self, kill: Kill, last: LastKey) {
        let text = &self.text;
        let range = match kill {
            Kill::LineStart => text.start_of_line(),
            Kill::LineEnd => text.rest_of_line(),
            Kill::WordBefore(words) => text.word_start(words)..text.cursor(),
            Kill::WordAfter => text.cursor()..text.word_end(WordRule::Plain),
        };
        let joins: Option<KillSide> = (last == LastKey::Kill).then_some(kill.side());
        self.text.kill(range, joins);
        self.last_key = LastKey::Kill;
        self.complete();
    }

    fn move_by(&mut self, motion: Motion) {
        self.close_completion();
        let text = &mut self.text;
        match motion {
            Motion::Left => text.move_left(),
            Motion::Right => text.move_right(),
            Motion::WordLeft => text.move_to(text.word_start(WordRule::Plain)),
            Motion::WordRight => text.move_to(text.word_end(WordRule::Plain)),
            Motion::LineStart => text.move_to(text.line().start),
            Motion::LineEnd => text.move_to(text.line().end),
            Motion::Start => text.move_to(0),
            Motion::End => text.move_to(text.content().len()),
        }
    }

    fn up(&mut self, last: LastKey) {
        if let Some(completion) = &mut self.completion {
            return completion.up();
        }
        let (column, offset) = self.vertical_target(last, Layout::above);
        match offset {
            Some(offset) => self.move_vertically(offset, column),
            None => self.recall(self.history_index.checked_sub(1)),
        }
    }

    fn down(&mut self, last: LastKey) {
        if let Some(completion) = &mut self.completion {
            return completion.down();
        }
        let (column, offset) = self.vertical_target(last, Layout::below);
        match offset {
            Some(offset) => self.move_vertically(offset, column),
            None => self.recall((self.history_index < self.history.len()).then_some(self.history_index + 1)),
        }
    }

    /// The column to keep, and the offset in it one row higher or lower.
    fn vertical_target<'a>(
        &'a self,
        last: LastKey,
        step: impl Fn(&Layout<'a>, usize) -> Option<usize>,
    ) -> (usize, Option<usize>) {
        let layout = Layout::new(&self.text, self.columns.get());
        let column = match last {
            LastKey::Vertical(column) => column,
            LastKey::Kill | LastKey::Other => layout.cursor_column(),
        };
        (column, step(&layout, column))
    }

    fn move_vertically(&mut self, offset: usize, column: usize) {
        self.text.move_to(offset);
        self.last_key = LastKey::Vertical(column);
    }

    /// Shows another history entry. Changes to the present one are kept until the input is entered.
    fn recall(&mut self, index: Option<usize>) {
        let Some(index) = index else { return };
        if self.history.get(self.history_index) != Some(self.text.content()) {
            self.text.save_edit(self.history_index);
        }
        self.history_index = index;
        if !self.text.restore_edit(index) {
            let recalled = self.text.set(self.history.get(index).unwrap_or_default());
            self.report_full(recalled);
        }
    }

    fn enter(&mut self) -> KeyOutcome {
        if let Some(completion) = &self.completion {
            match completion.enter_action(&self.text.content()[completion.from()..self.text.cursor()]) {
                EnterAction::Send => {}
                EnterAction::Run => self.accept_completion(),
                EnterAction::Complete => {
                    self.accept_completion();
                    return KeyOutcome::Edited;
                }
            }
        }
        if self.text.content()[..self.text.cursor()].ends_with('\\') {
            self.insert_with(|text| {
                text.delete_before();
                text.type_character('\n')
            });
            return KeyOutcome::Edited;
        }
        let mut entered = self.text.expanded();
        entered.truncate(entered.trim_end().len());
        // A command of the user's is typed, never hidden in a chip.
        if entered.starts_with('!') && self.text.content().starts_with(is_mark) {
            entered.insert(0, '\n');
        }
        if entered.is_empty() {
            return KeyOutcome::Edited;
        }
        self.history.add(&entered);
        self.reset();
        KeyOutcome::Entered(entered)
    }

    fn start_search(&mut self) {
        self.close_completion();
        self.text.save_edit(BEFORE_SEARCH);
        self.search = Some(HistorySearch::new(self.text.cursor()));
    }

    /// A key during a history search. False if it ends the search and then does what it always does.
    fn press_in_search(&mut self, key_action: KeyAction) -> bool {
        let (Some(search), history) = (&mut self.search, &self.history) else { return false };
        match key_action {
            KeyAction::Type(character) => search.push(character, history),
            KeyAction::DeleteBefore => search.pop(history),
            KeyAction::SearchHistory => search.find_older(history),
            KeyAction::Escape | KeyAction::Interrupt => {
                self.cancel_search();
                return true;
            }
            KeyAction::Enter => {
                self.accept_search();
                return true;
            }
            _ => {
                self.accept_search();
                return false;
            }
        }
        let shown = match self.search.as_ref().and_then(HistorySearch::found) {
            Some(found) => self.text.set(self.history.get(found).unwrap_or_default()),
            None => {
                self.text.restore_edit(BEFORE_SEARCH);
                Ok(())
            }
        };
        self.report_full(shown);
        true
    }

    /// Ends the search and keeps the entry that it shows. Down leads back to the text of before.
    fn accept_search(&mut self) {
        let Some(search) = self.search.take() else { return };
        let Some(found) = search.found() else { return self.restore_before_search(&search) };
        if self.history_index == self.history.len() {
            self.text.move_edit(BEFORE_SEARCH, self.history_index);
        }
        self.history_index = found;
    }

    fn cancel_search(&mut self) {
        if let Some(search) = self.search.take() {
            self.restore_before_search(&search);
        }
    }

    fn restore_before_search(&mut self, search: &HistorySearch) {
        self.text.restore_edit(BEFORE_SEARCH);
        self.text.move_to(search.cursor_before);
    }

    /// Ctrl-C: clears the field. The text stays in the history of this run.
    fn discard(&mut self) {
        self.history.add_for_this_run(&self.text.expanded());
        self.reset();
    }

    fn reset(&mut self) {
        self.text.clear();
        self.text.forget_edits();
        self.history_index = self.history.len();
        self.message = None;
        self.last_key = LastKey::Other;
        self.close_completion();
    }

    fn is_at_end(&self) -> bool {
        self.text.cursor() == self.text.content().len()
    }

    /// Updates the completion for the present text.
    fn complete(&mut self) {
        self.completion = self.completer.find(self.text.content(), self.text.cursor());
    }

    fn close_completion(&mut self) {
        self.completion = None;
        self.completer.forget();
    }

    fn accept_completion(&mut self) {
        let Some(completion) = self.completion.take() else { return };
        let (from, text, after) = completion.accept();
        let accepted = self.text.replace_before_cursor(from, text);
        self.report_full(accepted);
        match after {
            After::Close => self.close_completion(),
            After::Continue => self.complete(),
        }
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
