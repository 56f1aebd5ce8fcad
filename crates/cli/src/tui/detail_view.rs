//! What stands on one line, opened: a list of calls and thoughts over the whole terminal, and each of them whole.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::calls;
use super::calls::Concluded;
use super::transcript::{Detail, elapsed};
use super::viewport::Frame;
use super::wrap::wrapped;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// The list, and what of it is open.
pub(crate) struct Details {
    /// The oldest first.
    items: Vec<Detail>,
    chosen: usize,
    opened: Option<OpenDetail>,
}

/// One of them, whole.
struct OpenDetail {
    lines: Vec<Line<'static>>,
    /// The width for which they were made.
    width: u16,
    /// The first row that is seen.
    from: usize,
}

/// What became of it with a key.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum DetailOutcome {
    Open,
    Closed,
}

impl Details {
    /// With the newest chosen; nothing, if there is nothing to open.
    pub(crate) fn new(items: Vec<Detail>) -> Option<Self> {
        let chosen = items.len().checked_sub(1)?;
        Some(Self { items, chosen, opened: None })
    }

    pub(crate) fn press(&mut self, key: KeyEvent, (width, height): (u16, u16)) -> DetailOutcome {
        let page = usize::from(height.saturating_sub(3)).max(1);
        let with_control = key.modifiers.contains(KeyModifiers::CONTROL);
        match (key.code, &mut self.opened) {
            (KeyCode::Char('c' | 'd' | 'o'), _) if with_control => return DetailOutcome::Closed,
            (KeyCode::Esc | KeyCode::Char('q'), None) => return DetailOutcome::Closed,
            (KeyCode::Esc | KeyCode::Char('q') | KeyCode::Left, opened @ Some(_)) => *opened = None,
            (KeyCode::Up | KeyCode::Char('k'), Some(opened)) => opened.from = opened.from.saturating_sub(1),
            (KeyCode::Down | KeyCode::Char('j'), Some(opened)) => opened.down(1, page),
            (KeyCode::PageUp, Some(opened)) => opened.from = opened.from.saturating_sub(page),
            (KeyCode::PageDown | KeyCode::Char(' '), Some(opened)) => opened.down(page, page),
            (KeyCode::Home, Some(opened)) => opened.from = 0,
            (KeyCode::End, Some(opened)) => opened.down(usize::MAX / 2, page),
            (KeyCode::Up | KeyCode::Char('k'), None) => self.chosen = self.chosen.saturating_sub(1),
            (KeyCode::Down | KeyCode::Char('j'), None) => self.choose(self.chosen + 1),
            (KeyCode::PageUp, None) => self.chosen = self.chosen.saturating_sub(page),
            (KeyCode::PageDown, None) => self.choose(self.chosen + page),
            (KeyCode::Home, None) => self.chosen = 0,
            (KeyCode::End, None) => self.choose(usize::MAX / 2),
            (KeyCode::Enter | KeyCode::Right, None) => {
                self.opened = Some(OpenDetail { lines: self.whole(width), width, from: 0 });
            }
            _ => {}
        }
        DetailOutcome::Open
    }

    fn choose(&mut self, place: usize) {
        self.chosen = place.min(self.items.len() - 1);
    }

    fn whole(&self, width: u16) -> Vec<Line<'static>> {
        match &self.items[self.chosen] {
            Detail::Call { name, arguments, content, is_error, took } => {
                let call = Concluded { name, arguments, content, is_error: *is_error, took: *took };
                calls::opened(&call, width)
            }
            Detail::Thought { text, .. } => calls::open_reasoning(text, width),
        }
    }

    /// All of the terminal.
    pub(crate) fn frame(&mut self, (width, height): (u16, u16)) -> Frame {
        let chosen = self.chosen;
        if self.opened.as_ref().is_some_and(|opened| opened.width != width) {
            let lines = self.whole(width);
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
                let from = chosen.saturating_sub(room.saturating_sub(1));
                let shown = self.items.iter().enumerate().skip(from).take(room);
                let shown = shown.map(|(place, item)| headline(item, place == chosen, width)).collect();
                (
                    shown,
                    format!("{} of {} · ↑↓ choose · Enter opens · Esc closes", chosen + 1, self.items.len()),
                )
            }
        };
        rows.resize(room, Line::default());
        let keys = wrapped(&Line::styled(keys, DIM), width, "").into_iter().next().unwrap_or_default();
        rows.extend([Line::default(), keys]);
        rows.truncate(usize::from(height).max(1));
        let last = u16::try_from(rows.len().saturating_sub(1)).unwrap_or(0);
        Frame { above: vec![], rows, cursor: (0, last) }
    }
}

impl OpenDetail {
    fn down(&mut self, rows: usize, page: usize) {
        self.from = (self.from + rows).min(self.lines.len().saturating_sub(page));
    }
}

fn headline(item: &Detail, is_chosen: bool, width: u16) -> Line<'static> {
    let mark = if is_chosen { "▸ " } else { "  " };
    let line = match item {
        Detail::Call { name, arguments, content, is_error, took } => {
            let call = Concluded { name, arguments, content, is_error: *is_error, took: *took };
            calls::concluded(&call, width.saturating_sub(2)).into_iter().next().unwrap_or_default()
        }
        Detail::Thought { took, .. } => Line::styled(format!("  thought for {}", elapsed(*took)), DIM),
    };
    let mut spans = vec![Span::raw(mark)];
    spans.extend(line.spans);
    let style = if is_chosen { line.style.add_modifier(Modifier::BOLD) } else { line.style };
    Line::from(spans).style(style)
}
