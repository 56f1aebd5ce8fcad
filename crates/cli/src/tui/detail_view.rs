//! The detail view: a list of calls and reasoning over the whole terminal, each of which can be opened.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use longhaul_transcript::{
    Block, BlockContent, StyledLine, call_detail_lines, finished_call_lines, format_elapsed, reasoning_lines,
    wrap_line,
};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::styled_text::{to_line, to_lines};
use super::viewport::Frame;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// The list, and the block that is open.
pub(crate) struct DetailView {
    /// The oldest first.
    items: Vec<Block>,
    selected: usize,
    opened: Option<OpenDetail>,
}

/// The rows of the open block.
struct OpenDetail {
    lines: Vec<Line<'static>>,
    /// The width that they were wrapped for.
    width: u16,
    /// The first visible row.
    from: usize,
}

/// Whether a key closes the view.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DetailOutcome {
    Open,
    Closed,
}

impl DetailView {
    /// Opens the view with the newest block selected. None if there are no blocks.
    pub(crate) fn new(items: Vec<Block>) -> Option<Self> {
        let selected = items.len().checked_sub(1)?;
        Some(Self { items, selected, opened: None })
    }

    pub(crate) fn press(&mut self, key: KeyEvent, (width, height): (u16, u16)) -> DetailOutcome {
        let page = usize::from(height.saturating_sub(3)).max(1);
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, &mut self.opened) {
            (KeyCode::Char('c' | 'd' | 'o'), _) if with_control => return DetailOutcome::Closed,
            (KeyCode::Esc | KeyCode::Char('q'), None) => return DetailOutcome::Closed,
            (KeyCode::Esc | KeyCode::Char('q') | KeyCode::Left, opened @ Some(_)) => *opened = None,
            (KeyCode::Up | KeyCode::Char('k'), Some(opened)) => opened.from = opened.from.saturating_sub(1),
            (KeyCode::Down | KeyCode::Char('j'), Some(opened)) => opened.scroll_down(1, page),
            (KeyCode::PageUp, Some(opened)) => opened.from = opened.from.saturating_sub(page),
            (KeyCode::PageDown | KeyCode::Char(' '), Some(opened)) => opened.scroll_down(page, page),
            (KeyCode::Home, Some(opened)) => opened.from = 0,
            (KeyCode::End, Some(opened)) => opened.scroll_down(usize::MAX / 2, page),
            (KeyCode::Up | KeyCode::Char('k'), None) => self.selected = self.selected.saturating_sub(1),
            (KeyCode::Down | KeyCode::Char('j'), None) => self.select(self.selected + 1),
            (KeyCode::PageUp, None) => self.selected = self.selected.saturating_sub(page),
            (KeyCode::PageDown, None) => self.select(self.selected + page),
            (KeyCode::Home, None) => self.selected = 0,
            (KeyCode::End, None) => self.select(usize::MAX / 2),
            (KeyCode::Enter | KeyCode::Right, None) => {
                self.opened = Some(OpenDetail { lines: self.detail_lines(width), width, from: 0 });
            }
            _ => {}
        }
        DetailOutcome::Open
    }

    fn select(&mut self, place: usize) {
        self.selected = place.min(self.items.len() - 1);
    }

    fn detail_lines(&self, width: u16) -> Vec<Line<'static>> {
        let block = &self.items[self.selected];
        to_lines(match &block.content {
            BlockContent::Call(call) => call_detail_lines(call, block.elapsed(block.started_at), width),
            BlockContent::Reasoning { text } => reasoning_lines(text, width),
            _ => vec![],
        })
    }

    /// A frame that covers the whole terminal.
    pub(crate) fn frame(&mut self, (width, height): (u16, u16)) -> Frame {
        let selected = self.selected;
        if self.opened.as_ref().is_some_and(|opened| opened.width != width) {
            let lines = self.detail_lines(width);
            self.opened = Some(OpenDetail { lines, width, from: 0 });
        }
        let room = usize::from(height.saturating_sub(2)).max(1);
        let (mut rows, keys) = match &self.opened {
            Some(opened) => {
                let shown = opened.lines.iter().skip(opened.from).take(room).cloned().collect::<Vec<_>>();
                let through = (opened.from + room).min(opened.lines.len());
                (
                    shown,
                    format!("{through} of {} rows · ↑↓ PgUp PgDn move · Esc goes back", opened.lines.len()),
                )
            }
            None => {
                let from = selected.saturating_sub(room.saturating_sub(1));
                let shown = self.items.iter().enumerate().skip(from).take(room);
                let shown = shown.map(|(place, item)| list_row(item, place == selected, width)).collect();
                (
                    shown,
                    format!(
                        "{} of {} · ↑↓ choose · Enter opens · Esc closes",
                        selected + 1,
                        self.items.len()
                    ),
                )
            }
        };
        rows.resize(room, Line::default());
        rows.push(Line::default());
        rows.extend(to_lines(wrap_line(&StyledLine::dim(keys), width, "")).into_iter().take(1));
        rows.truncate(usize::from(height).max(1));
        let last = u16::try_from(rows.len().saturating_sub(1)).unwrap_or(0);
        Frame { above: vec![], rows, cursor: (0, last) }
    }
}

impl OpenDetail {
    fn scroll_down(&mut self, rows: usize, page: usize) {
        self.from = (self.from + rows).min(self.lines.len().saturating_sub(page));
    }
}

fn list_row(block: &Block, is_selected: bool, width: u16) -> Line<'static> {
    let mark = if is_selected { "▸ " } else { "  " };
    let took = block.elapsed(block.started_at);
    let line = match &block.content {
        BlockContent::Call(call) => {
            let mut lines = finished_call_lines(call, took, width.saturating_sub(2));
            to_line(lines.swap_remove(0))
        }
        _ => Line::styled(format!("  thought for {}", format_elapsed(took)), DIM),
    };
    let mut spans = vec![Span::raw(mark)];
    spans.extend(line.spans);
    let style = if is_selected { line.style.add_modifier(Modifier::BOLD) } else { line.style };
    Line::from(spans).style(style)
}
