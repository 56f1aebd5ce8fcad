//! The last row: what answers, how full its context is, what it has cost, what goes on, and whether everything is saved.

use longhaul_protocol::EventKind;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::output::shortened;

/// What stands there.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StatusFacts {
    pub(crate) model: String,
    /// How many tokens the context may have.
    pub(crate) window: Option<u64>,
    /// How many it has, as far as is known.
    pub(crate) used: Option<u64>,
    /// What the session has cost, if that is known.
    pub(crate) cost: f64,
    /// Whether everything that was said is on disk.
    pub(crate) saved: SaveState,
}

/// Whether everything that was said is on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SaveState {
    /// Nothing was said yet.
    #[default]
    Nothing,
    /// It is on its way.
    NotYet,
    All,
}

impl StatusFacts {
    pub(crate) fn see(&mut self, kind: &EventKind) {
        match kind {
            EventKind::ModelChanged { to, .. } => self.model.clone_from(to),
            EventKind::Usage { input, output, cost, .. } => {
                if let Some(input) = input {
                    self.used = Some(input + output.unwrap_or(0));
                }
                self.cost += cost.unwrap_or(0.0);
            }
            EventKind::CompactDone { after, .. } => self.used = Some(*after),
            EventKind::TextDelta { .. } => self.saved = SaveState::NotYet,
            EventKind::InputAccepted { .. }
            | EventKind::InputTaken { .. }
            | EventKind::Message { .. }
            | EventKind::AttemptDiscarded { .. }
            | EventKind::TurnEnded { .. } => self.saved = SaveState::All,
            _ => {}
        }
    }

    /// The row. Where it is narrow, what matters least goes first.
    pub(crate) fn line(&self, tasks: usize, hint: &str, width: u16) -> Line<'static> {
        let dim = Style::new().add_modifier(Modifier::DIM);
        let plain = |text: String| Span::styled(text, dim);
        let mut parts: Vec<(u8, Span<'static>)> = vec![(1, plain(shortened(&self.model, 40)))];
        if let Some(used) = self.used {
            parts.push(self.fullness(used));
        }
        if self.cost > 0.0 {
            parts.push((3, plain(format!("${:.4}", self.cost))));
        }
        match tasks {
            0 => {}
            1 => parts.push((2, plain("1 task".to_owned()))),
            several => parts.push((2, plain(format!("{several} tasks")))),
        }
        match self.saved {
            SaveState::Nothing => {}
            SaveState::NotYet => {
                parts.push((2, Span::styled("not saved yet", Style::new().fg(Color::Yellow))))
            }
            SaveState::All => parts.push((2, plain("saved".to_owned()))),
        }
        if !hint.is_empty() {
            parts.push((4, plain(hint.to_owned())));
        }
        let length = |parts: &[(u8, Span<'static>)]| -> usize {
            parts.iter().map(|(_, span)| span.content.width() + 3).sum::<usize>().saturating_sub(3)
        };
        while parts.len() > 1 && length(&parts) > usize::from(width) {
            let least = parts.iter().enumerate().max_by_key(|(place, (matters, _))| (*matters, *place));
            let Some((place, _)) = least else { break };
            parts.remove(place);
        }
        let mut spans = Vec::new();
        for (_, span) in parts {
            if !spans.is_empty() {
                spans.push(Span::styled(" · ", dim));
            }
            spans.push(span);
        }
        Line::from(spans)
    }

    fn fullness(&self, used: u64) -> (u8, Span<'static>) {
        let Some(window) = self.window.filter(|window| *window > 0) else {
            return (
                2,
                Span::styled(format!("{} tokens", thousands(used)), Style::new().add_modifier(Modifier::DIM)),
            );
        };
        let share = used.saturating_mul(100) / window;
        let style = match share {
            0..80 => Style::new().add_modifier(Modifier::DIM),
            _ => Style::new().fg(Color::Yellow),
        };
        (2, Span::styled(format!("{share}% of {}", thousands(window)), style))
    }
}

/// `950`, `12k`, `1.2M`.
fn thousands(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}.{}M", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}
