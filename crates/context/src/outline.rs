//! What of a context stays and what goes, when it is made smaller. Pure: the same context, the same plan.

use std::sync::Arc;

use longhaul_protocol::{CallId, Item, Place};

use crate::Calibration;

/// A context, as the planning of a compaction sees it.
#[derive(Debug, Clone, Copy)]
pub struct Outline<'a> {
    /// What is in it.
    pub items: &'a [Arc<Item>],
    /// Where each came into it: as many.
    pub places: &'a [Place],
    /// So many of them, from the first, are the preface of the epoch: a summary, what is pinned. They are made anew.
    pub preface: usize,
    /// The turn that is open, if one is.
    pub open_turn: Option<u64>,
    /// How the model counts.
    pub calibration: &'a Calibration,
}

/// What of a context stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// From this item on everything stays.
    pub from: usize,
    /// What a person said in the open turn before that, which stays too: texts and pictures.
    pub requests: Vec<usize>,
}

/// Old tool output that could be replaced by a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stubs {
    /// Whose results.
    pub calls: Vec<CallId>,
    /// How many tokens that gains.
    pub gains: u64,
}

impl Outline<'_> {
    /// The newest whole exchanges that have room in so many tokens; of an open turn that has none alone, its newest whole steps, and
    /// what was asked in it. Nothing of the preface.
    pub fn keep(&self, _tokens: u64) -> Keep {
        todo!()
    }

    /// C7: the newest whole exchanges that have room in so many tokens; at least two, if they have room in `at_least_within`.
    pub fn keep_by_rule(&self, _tokens: u64, _at_least_within: u64) -> Keep {
        todo!()
    }

    /// C9: the outputs that are not of the last two turns, not stubs already, and large enough to be worth it.
    pub fn stubs(&self) -> Stubs {
        todo!()
    }
}

/// The line that stands for an output. It says what it was, how much, and how to read it.
pub fn stub(_call: CallId, _tool: &str, _bytes: usize, _place: Place) -> String {
    todo!()
}

/// Whether a text is such a line.
pub fn is_stub(_content: &str) -> bool {
    todo!()
}
