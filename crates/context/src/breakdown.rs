//! The tokens of a context by its parts, for `/context` and similar commands.

use std::sync::Arc;

use longhaul_protocol::{Item, MEMORY_MARK, SKILLS_MARK};
use serde::Serialize;

use crate::token_estimate::estimate_item;

/// Tokens of each part of a context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the words say it")]
pub struct ContextBreakdown {
    pub system: u64,
    pub tools: u64,
    pub memory: u64,
    pub summary: u64,
    pub pins: u64,
    pub turns: u64,
    pub tool_output: u64,
}

impl ContextBreakdown {
    /// The parts of these items, uncorrected. The first `preface` items are the summary, the memory and the pins.
    pub fn of_items(items: &[Arc<Item>], preface: usize) -> Self {
        let mut parts = Self::default();
        for (index, item) in items.iter().enumerate() {
            let part = match &**item {
                Item::Text { text, .. } if index < preface && text.starts_with(MEMORY_MARK) => {
                    &mut parts.memory
                }
                // A new session has skills before it has a summary.
                Item::Text { text, .. } if index < preface && text.starts_with(SKILLS_MARK) => {
                    &mut parts.pins
                }
                _ if index < preface && index == 0 => &mut parts.summary,
                _ if index < preface => &mut parts.pins,
                Item::ToolResult { .. } => &mut parts.tool_output,
                _ => &mut parts.turns,
            };
            *part += estimate_item(item);
        }
        parts
    }

    pub fn total(&self) -> u64 {
        let Self { system, tools, memory, summary, pins, turns, tool_output } = *self;
        [system, tools, memory, summary, pins, turns, tool_output].into_iter().fold(0, u64::saturating_add)
    }

    /// Scales the parts to a provider's total. The remainder of rounding goes to the largest part.
    #[must_use]
    pub fn scaled_to(self, total: u64) -> Self {
        let estimated = u128::from(self.total().max(1));
        let scaled = |part: u64| {
            u64::try_from(u128::from(part) * u128::from(total) / estimated).unwrap_or(u64::MAX).min(total)
        };
        let mut parts = Self {
            system: scaled(self.system),
            tools: scaled(self.tools),
            memory: scaled(self.memory),
            summary: scaled(self.summary),
            pins: scaled(self.pins),
            turns: scaled(self.turns),
            tool_output: scaled(self.tool_output),
        };
        let rest = total.saturating_sub(parts.total());
        *parts.largest_passing() += rest;
        parts
    }

    fn largest_passing(&mut self) -> &mut u64 {
        let Self { system, tools, memory, summary, pins, turns, tool_output } = self;
        [system, tools, memory, summary, pins, tool_output]
            .into_iter()
            .fold(turns, |largest, part| if *part > *largest { part } else { largest })
    }
}

#[cfg(test)]
#[path = "breakdown_tests.rs"]
mod tests;
