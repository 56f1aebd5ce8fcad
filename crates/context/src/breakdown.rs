//! What a context is made of, for people.

use std::sync::Arc;

use longhaul_protocol::Item;
use serde::Serialize;

use crate::preface::MEMORY_MARK;
use crate::tokens::estimate_item;

/// How many tokens each part of a context has.
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
    /// The parts of these items, of which so many are the preface: its first is the summary, what is remembered says so, the others are pins. Before anything is learnt.
    pub fn of_items(items: &[Arc<Item>], preface: usize) -> Self {
        let mut parts = Self::default();
        for (index, item) in items.iter().enumerate() {
            let part = match &**item {
                Item::Text { text, .. } if index < preface && text.starts_with(MEMORY_MARK) => {
                    &mut parts.memory
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

    /// All of them together.
    pub fn total(&self) -> u64 {
        let Self { system, tools, memory, summary, pins, turns, tool_output } = *self;
        [system, tools, memory, summary, pins, turns, tool_output].into_iter().fold(0, u64::saturating_add)
    }

    /// The same parts, such that together they are so many: what a provider counted, spread over what was estimated. What
    /// can't be spread, because nothing was estimated or because of rounding, goes to the largest part.
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
        *parts.largest() += rest;
        parts
    }

    fn largest(&mut self) -> &mut u64 {
        let Self { system, tools, memory, summary, pins, turns, tool_output } = self;
        [system, tools, memory, summary, pins, tool_output]
            .into_iter()
            .fold(turns, |largest, part| if *part > *largest { part } else { largest })
    }
}

#[cfg(test)]
#[path = "breakdown_tests.rs"]
mod tests;
