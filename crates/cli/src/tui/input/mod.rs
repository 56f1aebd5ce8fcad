//! The input: what a person types at the prompt, over several lines, with a history, pastes and completion.
//!
//! It takes keys and gives lines; whoever owns the terminal does the rest.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `keys` | what each key means, in one table |
//! | `text` | the text, its cursor, words and what was killed |
//! | `chips` | long pastes, which are shown as one piece |
//! | `cells`, `layout` | characters as people count them, and the text in rows of a width |
//! | `history` | what was entered before |
//! | `completion`, `files` | what could be meant by what is typed so far |

mod chips;
mod completion;
mod files;
mod graphemes;
mod history;
mod keys;
mod layout;
mod text;

use std::cell::Cell;

use crossterm::event::KeyEvent;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

pub(crate) use self::completion::CompletionSources;
use self::completion::{After, Completer, Completion, ROWS};
pub(in crate::tui) use self::graphemes::{cut, list};
pub(crate) use self::history::History;
use self::keys::{KeyAction, Kill, Motion, key_action};
use self::layout::{InputFrame, Layout};
use self::text::{InputFull, InputText, KillSide, WordRule};

/// The word about an input that can't become longer.
const INPUT_FULL: &str = "This would be more than 8 MiB: put it into a file and name that with @.";
/// The columns of the text before anybody has asked how it looks.
const DEFAULT_COLUMNS: usize = 77;

/// What a key came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyOutcome {
    /// The input looks different, or not; nothing else.
    Edited,
    /// This was entered, without white space at its end; it is never empty.
    Entered(String),
    /// Esc with nothing to close and nothing typed.
    Escape,
    /// Ctrl-C with nothing typed.
    Interrupt,
    /// Ctrl-D with nothing typed.
    End,
    /// A key that is not the input's.
    Other(KeyEvent),
}

/// How the input looks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputView {
    pub(crate) lines: Vec<Line<'static>>,
    /// Column and row in these lines.
    pub(crate) cursor: (u16, u16),
    /// What stands below: a word about the input, and what could be meant; at most 6 rows.
    pub(crate) completions: Vec<Line<'static>>,
}

/// What the last key did, where the next one goes on from that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastKey {
    Kill,
    /// Up or down, from this column, to which longer rows return.
    Vertical(usize),
    Else,
}

/// The input.
pub(crate) struct InputField {
    text: InputText,
    history: History,
    /// Which entry of the history is there; after the last one stands what is being typed.
    place: usize,
    completer: Completer,
    completion: Option<Completion>,
    word: Option<&'static str>,
    last: LastKey,
    /// The columns of the text when it was shown last: up and down go by what is seen.
    columns: Cell<usize>,
}

impl InputField {
    pub(crate) fn new(history: History, sources: CompletionSources) -> Self {
        Self {
            text: InputText::default(),
            place: history.len(),
            history,
            completer: Completer::new(sources),
            completion: None,
            word: None,
            last: LastKey::Else,
            columns: Cell::new(DEFAULT_COLUMNS),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.content().is_empty()
    }

    /// What is typed, with one character of a private-use plane for each piece that is shown as one.
    #[cfg(test)]
    pub(crate) fn text(&self) -> &str {
        self.text.content()
    }

    /// Puts a text there to be edited.
    #[cfg(test)]
    pub(crate) fn set(&mut self, text: &str) {
        self.start_anew();
        let set = self.text.set(text);
        self.note(set);
    }

    /// Puts what is half typed into the history, since nobody can go on typing.
    pub(crate) fn keep(&mut self) {
        let text = self.text.expanded();
        if !text.trim().is_empty() {
            self.history.add(&text);
        }
    }

    /// What was pasted, all of it or nothing.
    pub(crate) fn paste(&mut self, text: &str) {
        self.word = None;
        self.last = LastKey::Else;
        let pasted = self.text.paste(text);
        self.note(pasted);
        self.complete();
    }

    /// What a key came to.
    pub(crate) fn press(&mut self, key: KeyEvent) -> KeyOutcome {
        let key_action = key_action(&key);
        if key_action == KeyAction::Nothing {
            return KeyOutcome::Edited;
        }
        self.word = None;
        let last = std::mem::replace(&mut self.last, LastKey::Else);
        match key_action {
            KeyAction::Type(character) => self.edit(|text| text.type_character(character)),
            KeyAction::NewLine => self.edit(|text| text.type_character('\n')),
            KeyAction::DeleteBefore => self.change(InputText::delete_before),
            KeyAction::DeleteAfter => self.change(InputText::delete_after),
            KeyAction::DeleteOrEnd if self.is_empty() => return KeyOutcome::End,
            KeyAction::DeleteOrEnd => self.change(InputText::delete_after),
            KeyAction::Yank => self.edit(InputText::yank),
            KeyAction::Kill(kill) => self.kill(kill, last),
            KeyAction::Move(Motion::Right) if self.is_at_end() && self.completion.is_some() => self.accept(),
            KeyAction::Move(motion) => self.move_by(motion),
            KeyAction::Up => self.up(last),
            KeyAction::Down => self.down(last),
            KeyAction::Back => self.completion.iter_mut().for_each(Completion::up),
            KeyAction::Complete if self.completion.is_some() => self.accept(),
            KeyAction::Complete => self.complete(),
            KeyAction::Enter => return self.enter(),
            KeyAction::Escape if self.completion.is_some() => self.close(),
            KeyAction::Escape if self.is_empty() => return KeyOutcome::Escape,
            KeyAction::Interrupt if self.is_empty() => return KeyOutcome::Interrupt,
            KeyAction::Interrupt => self.clear_away(),
            KeyAction::Escape | KeyAction::Nothing => {}
            KeyAction::Other => return KeyOutcome::Other(key),
        }
        KeyOutcome::Edited
    }

    /// How it looks at this width. The rows around the cursor are shown, where not all have room.
    pub(crate) fn shown(&self, prompt: &str, width: u16, rows: u16) -> InputView {
        let (width, height) = (usize::from(width), usize::from(rows));
        let frame = InputFrame::new(prompt, width);
        self.columns.set(frame.columns);
        if width == 0 || height == 0 {
            return InputView { lines: Vec::new(), cursor: (0, 0), completions: Vec::new() };
        }
        let (lines, cursor) = frame.lines(Layout::new(&self.text, frame.columns).seen(height));
        let dim = Style::new().add_modifier(Modifier::DIM);
        let mut completions: Vec<Line<'static>> =
            self.word.iter().map(|word| Line::styled(cut(word, width), dim)).collect();
        if let Some(completion) = &self.completion {
            completions.extend(completion.lines(width, ROWS - completions.len()));
        }
        InputView { lines, cursor, completions }
    }

    /// Changes the text, and shows what could be meant by it then.
    fn change(&mut self, change: impl FnOnce(&mut InputText)) {
        change(&mut self.text);
        self.complete();
    }

    /// Adds to the text, if there is room.
    fn edit(&mut self, change: impl FnOnce(&mut InputText) -> Result<(), InputFull>) {
        let changed = change(&mut self.text);
        self.note(changed);
        self.complete();
    }

    fn note(&mut self, changed: Result<(), InputFull>) {
        if changed == Err(InputFull) {
            self.word = Some(INPUT_FULL);
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
        self.last = LastKey::Kill;
        self.complete();
    }

    fn move_by(&mut self, motion: Motion) {
        self.close();
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
        let (column, place) = self.beside(last, Layout::above);
        match place {
            Some(place) => self.move_vertically(place, column),
            None => self.recall(self.place.checked_sub(1)),
        }
    }

    fn down(&mut self, last: LastKey) {
        if let Some(completion) = &mut self.completion {
            return completion.down();
        }
        let (column, place) = self.beside(last, Layout::below);
        match place {
            Some(place) => self.move_vertically(place, column),
            None => self.recall((self.place < self.history.len()).then_some(self.place + 1)),
        }
    }

    /// The column to keep to, and the place in it a row higher or lower.
    fn beside<'a>(
        &'a self,
        last: LastKey,
        step: impl Fn(&Layout<'a>, usize) -> Option<usize>,
    ) -> (usize, Option<usize>) {
        let layout = Layout::new(&self.text, self.columns.get());
        let column = match last {
            LastKey::Vertical(column) => column,
            LastKey::Kill | LastKey::Else => layout.cursor_column(),
        };
        (column, step(&layout, column))
    }

    fn move_vertically(&mut self, place: usize, column: usize) {
        self.text.move_to(place);
        self.last = LastKey::Vertical(column);
    }

    /// Goes to another entry of the history. What was typed here comes back with this place.
    fn recall(&mut self, place: Option<usize>) {
        let Some(place) = place else { return };
        if self.history.get(self.place) != Some(self.text.content()) {
            self.text.put_aside(self.place);
        }
        self.place = place;
        if !self.text.bring_back(place) {
            let recalled = self.text.set(self.history.get(place).unwrap_or_default());
            self.note(recalled);
        }
    }

    fn enter(&mut self) -> KeyOutcome {
        if self.completion.as_ref().is_some_and(Completion::was_chosen) {
            self.accept();
            return KeyOutcome::Edited;
        }
        if self.text.content()[..self.text.cursor()].ends_with('\\') {
            self.edit(|text| {
                text.delete_before();
                text.type_character('\n')
            });
            return KeyOutcome::Edited;
        }
        let mut entered = self.text.expanded();
        entered.truncate(entered.trim_end().len());
        if entered.is_empty() {
            return KeyOutcome::Edited;
        }
        self.history.add(&entered);
        self.start_anew();
        KeyOutcome::Entered(entered)
    }

    /// What is cleared away can be brought back, in this run.
    fn clear_away(&mut self) {
        self.history.add_for_this_run(&self.text.expanded());
        self.start_anew();
    }

    fn start_anew(&mut self) {
        self.text.clear();
        self.text.forget_aside();
        self.place = self.history.len();
        self.word = None;
        self.last = LastKey::Else;
        self.close();
    }

    fn is_at_end(&self) -> bool {
        self.text.cursor() == self.text.content().len()
    }

    /// Shows what could be meant by the text now, if anything could.
    fn complete(&mut self) {
        self.completion = self.completer.find(self.text.content(), self.text.cursor());
        if self.completion.is_none() {
            self.completer.forget();
        }
    }

    fn close(&mut self) {
        self.completion = None;
        self.completer.forget();
    }

    fn accept(&mut self) {
        let Some(completion) = self.completion.take() else { return };
        let (from, text, after) = completion.accepted();
        let accepted = self.text.replace_before_cursor(from, text);
        self.note(accepted);
        match after {
            After::Close => self.close(),
            After::GoOn => self.complete(),
        }
    }
}

#[cfg(test)]
#[path = "input_tests.rs"]
mod tests;
