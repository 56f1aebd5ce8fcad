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
    Block, BlockContent, StyledLine, call_summary_line, has_more_output, reasoning_summary, wrap_line,
};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use tokio::sync::mpsc::UnboundedSender;

use self::opened::{OpenDetail, OpenedOutcome};
pub(crate) use self::output_pages::{OutputPages, OutputPagesWriter};
use super::styled_text::{to_line, to_lines};
use super::viewport::Frame;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Asks for the whole output of a call, which arrives later.
pub(crate) type OutputRequests = UnboundedSender<CallId>;

/// The list, and the block that is open.
pub(crate) struct DetailView {
    /// The oldest first.
    items: Vec<Block>,
    selected: usize,
    opened: Option<OpenDetail>,
    output_requests: Option<OutputRequests>,
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
        Some(Self { items, selected, opened: None, output_requests })
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
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return DetailOutcome::Closed,
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
        self.opened.iter_mut().for_each(|opened| opened.paste(text));
    }

    fn select(&mut self, place: usize) {
        self.selected = place.min(self.items.len() - 1);
    }

    fn open(&mut self, width: u16) {
        let block = &self.items[self.selected];
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
                let shown = self.items.iter().enumerate().skip(from).take(room);
                let shown = shown.map(|(place, item)| list_row(item, place == selected, width)).collect();
                let keys = format!(
                    "{} of {} · ↑↓ choose · Enter opens · Esc closes",
                    selected + 1,
                    self.items.len()
                );
                (shown, StyledLine::dim(keys))
            }
        };
        rows.resize(room, Line::default());
        rows.push(Line::default());
        rows.extend(to_lines(wrap_line(&keys, width, "")).into_iter().take(1));
        rows.truncate(usize::from(height).max(1));
        let last = u16::try_from(rows.len().saturating_sub(1)).unwrap_or(0);
        let column = self.opened.as_ref().map_or(0, OpenDetail::cursor_column);
        Frame { above: vec![], rows, cursor: (column.min(width.saturating_sub(1)), last) }
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
