//! The status line: model, context, cost, running tasks, and whether everything is saved.

use longhaul_protocol::EventKind;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::output::truncate;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StatusFacts {
    pub(crate) model: String,
    /// Tokens of the context window.
    pub(crate) window: Option<u64>,
    /// Tokens in the context.
    pub(crate) used: Option<u64>,
    /// US dollars spent since the chat was opened, as far as prices are known.
    pub(crate) cost: f64,
    pub(crate) saved: SaveState,
}

/// Whether everything in the session is on disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SaveState {
    /// There is nothing to save yet.
    #[default]
    Nothing,
    NotYet,
    All,
}

impl StatusFacts {
    pub(crate) fn update(&mut self, kind: &EventKind) {
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

    /// The row. In a narrow terminal the least important parts are left out.
    pub(crate) fn line(&self, tasks: usize, hint: &str, width: u16) -> Line<'static> {
        let dim = Style::new().add_modifier(Modifier::DIM);
        let plain = |text: String| Span::styled(text, dim);
        // Each part with its rank: the highest number is left out first.
        let mut parts: Vec<(u8, Span<'static>)> = vec![(1, plain(truncate(&self.model, 40)))];
        if let Some(used) = self.used {
            parts.push(self.context_part(used));
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
                parts.push((2, Span::styled("not saved yet", Style::new().fg(Color::Yellow))));
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
            let least = parts.iter().enumerate().max_by_key(|(index, (rank, _))| (*rank, *index));
            let Some((index, _)) = least else { break };
            parts.remove(index);
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

    fn context_part(&self, used: u64) -> (u8, Span<'static>) {
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
