//! What a context is made of, for people.

use std::sync::Arc;

use longhaul_protocol::Item;
use serde::Serialize;

/// How many tokens each part of a context has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the words say it")]
pub struct Breakdown {
    pub system: u64,
    pub tools: u64,
    pub memory: u64,
    pub summary: u64,
    pub pins: u64,
    pub turns: u64,
    pub tool_output: u64,
}

impl Breakdown {
    /// The parts of these items, of which so many are the preface: its first is the summary, the others are pins. Before anything is learnt.
    pub fn of_items(_items: &[Arc<Item>], _preface: usize) -> Self {
        todo!()
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        todo!()
    }

    /// The same parts, such that together they are so many: what a provider counted, spread over what was estimated.
    #[must_use]
    pub fn scaled_to(self, _total: u64) -> Self {
        todo!()
    }
}
