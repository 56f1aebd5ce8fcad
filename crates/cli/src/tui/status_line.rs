//! The status line: model, context, cost, running tasks, and whether everything is saved.

use longhaul_memory::MemoryCalls;
use longhaul_protocol::{EventKind, PermissionMode};
use longhaul_transcript::{Color, SessionCost, Span, StyledLine, text_width};

use crate::commands::status::memory_calls;
use crate::output::{format_count, truncate};

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct StatusFacts {
    pub(crate) model: String,
    /// Tokens of the context window.
    pub(crate) window: Option<u64>,
    /// Tokens in the context, as `/status` counts them.
    pub(crate) used: Option<u64>,
    /// What was spent since the chat was opened.
    pub(crate) cost: SessionCost,
    pub(crate) saved: SaveState,
    /// The model calls of memory for this session, since it began.
    pub(crate) memory: MemoryCalls,
    /// The permission mode, once it is known.
    pub(crate) mode: Option<PermissionMode>,
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
            EventKind::ModelChanged { to, .. } => {
                // The window of the other model is not known here.
                if self.model != *to {
                    self.window = None;
                }
                self.model.clone_from(to);
            }
            EventKind::ModeChanged { to, .. } => self.mode = Some(*to),
            EventKind::Usage { cost, .. } => self.cost.add_price(*cost),
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
    pub(crate) fn line(&self, tasks: usize, hint: &str, width: u16) -> StyledLine {
        // Each part with its rank: the highest number is left out first.
        let mut parts: Vec<(u8, Span)> = Vec::new();
        // It is not known while the chat asks which session to open.
        if !self.model.is_empty() {
            parts.push((1, Span::dim(truncate(&self.model, 40))));
        }
        // The usual mode is not worth the room.
        if let Some(mode) = self.mode.filter(|mode| *mode != PermissionMode::Auto) {
            parts.push((1, Span::colored(mode.name(), Color::Yellow)));
        }
        if let Some(used) = self.used {
            parts.push((2, self.context_part(used)));
        }
        if let Some(dollars) = self.cost.cost.filter(|dollars| *dollars > 0.0) {
            parts.push((3, Span::dim(format!("${dollars:.4}"))));
        }
        match tasks {
            0 => {}
            tasks => parts.push((2, Span::dim(format_count(tasks as u64, "task")))),
        }
        match self.saved {
            SaveState::Nothing => {}
            SaveState::NotYet => parts.push((2, Span::colored("not saved yet", Color::Yellow))),
            SaveState::All => parts.push((2, Span::dim("saved"))),
        }
        if self.memory.calls > 0 {
            parts.push((5, Span::dim(format!("memory: {}", memory_calls(&self.memory)))));
        }
        if !hint.is_empty() {
            parts.push((4, Span::dim(hint)));
        }
        let length = |parts: &[(u8, Span)]| -> usize {
            parts.iter().map(|(_, span)| text_width(&span.content) + 3).sum::<usize>().saturating_sub(3)
        };
        while parts.len() > 1 && length(&parts) > usize::from(width) {
            let least = parts.iter().enumerate().max_by_key(|(index, (rank, _))| (*rank, *index));
            let Some((index, _)) = least else { break };
            parts.remove(index);
        }
        let mut spans = Vec::new();
        for (_, span) in parts {
            if !spans.is_empty() {
                spans.push(Span::dim(" · "));
            }
            spans.push(span);
        }
        StyledLine::from(spans)
    }

    fn context_part(&self, used: u64) -> Span {
        let Some(window) = self.window.filter(|window| *window > 0) else {
            return Span::dim(format!("{} tokens", thousands(used)));
        };
        let share = used.saturating_mul(100) / window;
        let text = format!("{share}% of {}", thousands(window));
        if share < 80 { Span::dim(text) } else { Span::colored(text, Color::Yellow) }
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
