//! The detail view: a list of calls and reasoning over the whole terminal, each of which can be opened, read and searched.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `opened` | the entry that is open: scrolling and searching |
//! | `document` | its rows, wrapped where they are looked at |
//! | `output_pages` | a long output, read in pages |
//! | `search_pattern` | what a search looks for |

mod document;
mod opened;
mod output_pages;
mod search_pattern;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use longhaul_protocol::CallId;
use longhaul_transcript::{
    Block, BlockContent, StyledLine, call_summary_line, has_more_output, reasoning_summary, text_width,
    wrap_line,
};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use tokio::sync::mpsc::UnboundedSender;

use self::opened::{MAX_PATTERN_CHARS, OpenDetail, OpenedOutcome};
pub(crate) use self::output_pages::{OutputPages, OutputPagesWriter};
use super::styled_text::{to_line, to_lines};
use super::viewport::Frame;
use crate::output::sanitize;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Asks for the whole output of a call, which arrives later.
pub(crate) type OutputRequests = UnboundedSender<CallId>;

/// The list, and the block that is open.
pub(crate) struct DetailView {
    /// The oldest first.
    items: Vec<Block>,
    filter: ListFilter,
    /// Indices of the items that the filter lets through.
    matches: Vec<usize>,
    /// An index into `matches`.
    selected: usize,
    opened: Option<OpenDetail>,
    output_requests: Option<OutputRequests>,
}

/// What an entry of the list must contain.
#[derive(Default)]
struct ListFilter {
    text: String,
    is_being_typed: bool,
}

/// Whether a key closes the view.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DetailOutcome {
    Open,
    Closed,
}

impl DetailView {
    /// Opens the view with the newest block selected. None if there are no blocks.
    pub(crate) fn new(items: Vec<Block>, output_requests: Option<OutputRequests>) -> Option<Self> {
        let selected = items.len().checked_sub(1)?;
        let (matches, filter) = ((0..items.len()).collect(), ListFilter::default());
        Some(Self { items, filter, matches, selected, opened: None, output_requests })
    }

    pub(crate) fn press(&mut self, key: KeyEvent, size: (u16, u16)) -> DetailOutcome {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        if with_control && matches!(key.code, KeyCode::Char('c' | 'd' | 'o')) {
            return DetailOutcome::Closed;
        }
        if let Some(opened) = &mut self.opened {
            if opened.press(key, page_rows(size)) == OpenedOutcome::Closed {
                self.opened = None;
            }
            return DetailOutcome::Open;
        }
        let page = page_rows(size);
        if self.filter.is_being_typed && self.press_in_filter(key) {
            return DetailOutcome::Open;
        }
        match key.code {
            KeyCode::Esc if !self.filter.text.is_empty() => self.set_filter(""),
            KeyCode::Esc | KeyCode::Char('q') => return DetailOutcome::Closed,
            KeyCode::Char('/') => {
                self.set_filter("");
                self.filter.is_being_typed = true;
            }
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.select(self.selected + 1),
            KeyCode::PageUp => self.selected = self.selected.saturating_sub(page),
            KeyCode::PageDown => self.select(self.selected + page),
            KeyCode::Home | KeyCode::Char('g') => self.selected = 0,
            KeyCode::End | KeyCode::Char('G') => self.select(usize::MAX / 2),
            KeyCode::Enter | KeyCode::Right => self.open(size.0),
            _ => {}
        }
        DetailOutcome::Open
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.opened {
            Some(opened) => opened.paste(text),
            None if self.filter.is_being_typed => {
                let line = text.lines().next().unwrap_or_default();
                self.set_filter(&(self.filter.text.clone() + line));
            }
            None => {}
        }
    }

    /// Handles a key while the filter is typed. False if the key moves in the list.
    fn press_in_filter(&mut self, key: KeyEvent) -> bool {
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        let mut text = self.filter.text.clone();
        match key.code {
            KeyCode::Enter => self.filter.is_being_typed = false,
            KeyCode::Esc => {
                self.filter.is_being_typed = false;
                self.set_filter("");
            }
            KeyCode::Backspace => {
                self.filter.is_being_typed = text.pop().is_some();
                self.set_filter(&text);
            }
            KeyCode::Char('u') if with_control => self.set_filter(""),
            KeyCode::Char(character) if !with_control && !key.modifiers.contains(KeyModifiers::ALT) => {
                text.push(character);
                self.set_filter(&text);
            }
            _ => return false,
        }
        true
    }

    /// Lists the items that contain the text. The selected one stays selected if it does; else the newest is.
    fn set_filter(&mut self, text: &str) {
        let chosen = self.matches.get(self.selected).copied();
        let text: String = text.chars().take(MAX_PATTERN_CHARS).collect();
        let wanted = text.to_lowercase();
        let has_it = |index: &usize| searched_text(&self.items[*index]).to_lowercase().contains(&wanted);
        self.matches = (0..self.items.len()).filter(has_it).collect();
        let place = self.matches.iter().position(|index| Some(*index) == chosen);
        self.selected = place.unwrap_or(self.matches.len().saturating_sub(1));
        self.filter.text = text;
    }

    fn select(&mut self, place: usize) {
        self.selected = place.min(self.matches.len().saturating_sub(1));
    }

    fn open(&mut self, width: u16) {
        let Some(block) = self.matches.get(self.selected).map(|index| &self.items[*index]) else { return };
        self.opened = Some(OpenDetail::new(block.clone(), width));
        if let BlockContent::Call(call) = &block.content
            && has_more_output(call)
        {
            let is_asked =
                self.output_requests.as_ref().is_some_and(|requests| requests.send(call.call).is_ok());
            if !is_asked {
                self.keep_output(call.call);
            }
        }
    }

    /// The whole output of a call has been read.
    pub(crate) fn show_output(&mut self, call: CallId, output: OutputPages, size: (u16, u16)) {
        if let Some(opened) = self.opened.as_mut().filter(|opened| opened.is_of_call(call)) {
            opened.set_output(output, page_rows(size));
        }
    }

    /// The entry that is open has all the output that there is.
    pub(crate) fn keep_output(&mut self, call: CallId) {
        if let Some(opened) = self.opened.as_mut().filter(|opened| opened.is_of_call(call)) {
            opened.end_loading();
        }
    }

    /// A running command has printed more.
    pub(crate) fn refresh_output(&mut self, call: CallId) {
        let is_open =
            self.opened.as_mut().is_some_and(|opened| opened.is_of_call(call) && opened.wants_more());
        if let (true, Some(requests)) = (is_open, &self.output_requests) {
            let _ = requests.send(call);
        }
    }

    /// The last row of the list: which entry is selected, and which keys there are; or the filter that is being typed.
    fn keys_line(&self) -> StyledLine {
        let filter = sanitize(&self.filter.text);
        if self.filter.is_being_typed {
            return StyledLine::raw(format!("/{filter}"));
        }
        let (count, all) = (self.matches.len(), self.items.len());
        let place = (self.selected + 1).min(count);
        StyledLine::dim(match filter.is_empty() {
            true => format!("{place} of {count} · ↑↓ choose · Enter opens · / filters · Esc closes"),
            false => {
                format!("{place} of {count} with {filter:?} · ↑↓ choose · Enter opens · Esc shows all {all}")
            }
        })
    }

    /// A frame that covers the whole terminal.
    pub(crate) fn frame(&mut self, (width, height): (u16, u16)) -> Frame {
        let selected = self.selected;
        let room = usize::from(height.saturating_sub(2)).max(1);
        let (mut rows, keys) = match &mut self.opened {
            Some(opened) => {
                opened.resize(width);
                (to_lines(opened.rows(room)), opened.keys_line(room))
            }
            None => {
                let from = selected.saturating_sub(room.saturating_sub(1));
                let shown = self.matches.iter().enumerate().skip(from).take(room);
                let row =
                    |(place, index): (usize, &usize)| list_row(&self.items[*index], place == selected, width);
                (shown.map(row).collect(), self.keys_line())
            }
        };
        rows.resize(room, Line::default());
        rows.push(Line::default());
        rows.extend(to_lines(wrap_line(&keys, width, "")).into_iter().take(1));
        rows.truncate(usize::from(height).max(1));
        let last = u16::try_from(rows.len().saturating_sub(1)).unwrap_or(0);
        let column = match &self.opened {
            Some(opened) => opened.cursor_column(),
            None if self.filter.is_being_typed => {
                u16::try_from(1 + text_width(&sanitize(&self.filter.text))).unwrap_or(u16::MAX)
            }
            None => 0,
        };
        Frame { above: vec![], rows, cursor: (column.min(width.saturating_sub(1)), last) }
    }
}

/// The text of an entry in which the filter looks.
fn searched_text(block: &Block) -> String {
    match &block.content {
        BlockContent::Call(call) => format!("{} {}", call.name, call.arguments),
        BlockContent::Reasoning { text } => text.clone(),
        _ => String::new(),
    }
}

/// Rows of a page: all but the row of keys and the blank row above it.
fn page_rows((_, height): (u16, u16)) -> usize {
    usize::from(height.saturating_sub(2)).max(1)
}

fn list_row(block: &Block, is_selected: bool, width: u16) -> Line<'static> {
    let mark = if is_selected { "▸ " } else { "  " };
    let took = block.elapsed(block.started_at);
    let line = match &block.content {
        BlockContent::Call(call) => to_line(call_summary_line(call, took, width.saturating_sub(2))),
        BlockContent::Reasoning { text } => Line::styled(format!("  {}", reasoning_summary(text, took)), DIM),
        _ => Line::default(),
    };
    let mut spans = vec![Span::raw(mark)];
    spans.extend(line.spans);
    let style = if is_selected { line.style.add_modifier(Modifier::BOLD) } else { line.style };
    Line::from(spans).style(style)
}
