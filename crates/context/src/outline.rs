//! What of a context stays and what goes, when it is made smaller. Pure: the same context, the same plan.
//!
//! A context is a row of exchanges, one a turn, and an exchange a row of steps. What stays is the end of that row, from a
//! place on where an exchange begins; only of an open turn that is too large alone it may be a place where a step begins. No
//! such place lies between a call and its result: where the records are so odd that one would, it is not taken.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_protocol::{CallId, Item, Place, Role};

use crate::text::{grouped, head, one_line};
use crate::tokens::estimate_item;
use crate::{Calibration, is_notification};

/// A result is replaced by a line if that gains at least so many tokens, before anything is learnt.
const WORTH_A_STUB: u64 = 100;
/// So many of the newest exchanges stay, if they can, when others are dropped by rule.
const NEWEST: usize = 2;

/// What a stub begins with, and how long one may be.
const STUB: &str = "[stub: the output of ";
const LONGEST_STUB: usize = 320;
/// The name of a tool in a stub is at most so long.
const LONGEST_NAME: usize = 64;

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

/// A place from which on a context could stay.
#[derive(Debug, Clone, Copy)]
struct Boundary {
    /// The item that would be the first.
    at: usize,
    /// How many tokens would stay.
    tokens: u64,
    /// Whether an exchange begins here; else it is a step of one.
    is_exchange: bool,
}

impl Outline<'_> {
    /// The newest whole exchanges that have room in so many tokens; of an open turn that has none alone, its newest whole steps, and
    /// what was asked in it. Nothing of the preface.
    pub fn keep(&self, tokens: u64) -> Keep {
        let boundaries = self.boundaries();
        let from = exchange_within(&boundaries, tokens).or_else(|| self.step_within(&boundaries, tokens));
        self.from(from)
    }

    /// C7: the newest whole exchanges that have room in so many tokens; at least two, if they have room in `at_least_within`.
    pub fn keep_by_rule(&self, tokens: u64, at_least_within: u64) -> Keep {
        let boundaries = self.boundaries();
        let newest = || exchanges(&boundaries).take(NEWEST).filter(|one| one.tokens <= at_least_within);
        let from = exchange_within(&boundaries, tokens).into_iter().chain(newest().map(|one| one.at)).min();
        self.from(from.or_else(|| self.step_within(&boundaries, at_least_within.max(tokens))))
    }

    /// C9: the outputs that are not of the last two turns, not stubs already, and large enough to be worth it.
    pub fn stubs(&self) -> Stubs {
        let recent = self.last_two_turns_begin();
        let mut names: HashMap<CallId, &str> = HashMap::new();
        let mut found: Vec<(CallId, u64)> = Vec::new();
        let mut seen_recently = HashSet::new();
        for index in self.start()..self.items.len() {
            let is_recent = self.place(index).turn >= recent;
            match &*self.items[index] {
                Item::ToolCall { call, name, .. } if !is_recent => _ = names.insert(*call, name),
                Item::ToolResult { call, .. } if is_recent => _ = seen_recently.insert(*call),
                // Only the first result of a call is ever sent.
                Item::ToolResult { call, content, .. } => {
                    let Some(name) = names.remove(call) else { continue };
                    let estimated = estimate_item(&self.items[index]);
                    if estimated >= WORTH_A_STUB && !is_stub(content) {
                        let stub = stub(*call, name, content.len(), self.place(index));
                        found.push((*call, estimated.saturating_sub(estimate_item(&stub_item(*call, stub)))));
                    }
                }
                _ => {}
            }
        }
        found.retain(|(call, gains)| *gains >= WORTH_A_STUB && !seen_recently.contains(call));
        let gains = found.iter().map(|(_, gains)| gains).sum();
        Stubs {
            calls: found.into_iter().map(|(call, _)| call).collect(),
            gains: self.calibration.correct(gains),
        }
    }

    /// Where the preface ends.
    fn start(&self) -> usize {
        self.preface.min(self.items.len())
    }

    /// Where an item came into the context. If that is not known, it came with the one before.
    fn place(&self, index: usize) -> Place {
        let known = self.places.get(index).or_else(|| self.places.last());
        known.copied().unwrap_or(Place { seq: 0, turn: 0, step: 0 })
    }

    /// The first of the last two turns, of which the open one is one even if nothing was said in it yet.
    fn last_two_turns_begin(&self) -> u64 {
        let turns = || (self.start()..self.items.len()).map(|index| self.place(index).turn);
        let last = turns().chain(self.open_turn).max().unwrap_or(0);
        turns().filter(|turn| *turn < last).max().unwrap_or(last)
    }

    /// All places from which on the context could stay, the newest first.
    fn boundaries(&self) -> Vec<Boundary> {
        let earliest = self.earliest_partners();
        let mut boundaries = Vec::new();
        // The first item from which on everything must stay if anything here does, and how much stays.
        let (mut needed, mut estimated) = (usize::MAX, 0_u64);
        for at in (self.start()..self.items.len()).rev() {
            let item = &self.items[at];
            estimated = estimated.saturating_add(estimate_item(item));
            if let Some(call) = call_of(item) {
                needed = needed.min(earliest.get(&call).copied().unwrap_or(at));
            }
            let here = self.place(at);
            let before = (at > self.start()).then(|| self.place(at - 1));
            let is_exchange = before.is_none_or(|before| before.turn != here.turn);
            let is_step = is_exchange || before.is_some_and(|before| before.step != here.step);
            if is_step && needed >= at {
                boundaries.push(Boundary { at, tokens: self.calibration.correct(estimated), is_exchange });
            }
        }
        boundaries
    }

    /// Where each call, or a result of it, first stands after the preface.
    fn earliest_partners(&self) -> HashMap<CallId, usize> {
        let mut earliest = HashMap::new();
        for index in self.start()..self.items.len() {
            if let Some(call) = call_of(&self.items[index]) {
                earliest.entry(call).or_insert(index);
            }
        }
        earliest
    }

    /// From where on the newest whole steps have room, if the newest exchange is the open turn.
    fn step_within(&self, boundaries: &[Boundary], tokens: u64) -> Option<usize> {
        let is_open = |boundary: &&Boundary| Some(self.place(boundary.at).turn) == self.open_turn;
        let steps = boundaries.iter().take_while(|one| !one.is_exchange).take_while(is_open);
        steps.take_while(|one| one.tokens <= tokens).last().map(|one| one.at)
    }

    fn from(&self, from: Option<usize>) -> Keep {
        let from = from.unwrap_or(self.items.len());
        let is_request = |index: &usize| {
            Some(self.place(*index).turn) == self.open_turn && is_of_a_person(&self.items[*index])
        };
        Keep { from, requests: (self.start()..from).filter(is_request).collect() }
    }
}

/// The places where exchanges begin, the newest first.
fn exchanges(boundaries: &[Boundary]) -> impl Iterator<Item = &Boundary> {
    boundaries.iter().filter(|boundary| boundary.is_exchange)
}

/// From where on the newest whole exchanges have room.
fn exchange_within(boundaries: &[Boundary], tokens: u64) -> Option<usize> {
    exchanges(boundaries).take_while(|one| one.tokens <= tokens).last().map(|one| one.at)
}

fn call_of(item: &Item) -> Option<CallId> {
    match item {
        Item::ToolCall { call, .. } | Item::ToolResult { call, .. } => Some(*call),
        _ => None,
    }
}

/// Whether a person, or a program that talks to the agent, said this.
fn is_of_a_person(item: &Item) -> bool {
    match item {
        Item::Text { role: Role::User, text } => !is_notification(text),
        Item::Image(_) => true,
        _ => false,
    }
}

fn stub_item(call: CallId, content: String) -> Item {
    Item::ToolResult { call, content, images: vec![], is_error: false }
}

/// The line that stands for an output. It says what it was, how much, and how to read it.
pub fn stub(_call: CallId, tool: &str, bytes: usize, place: Place) -> String {
    let (tool, bytes, seq) = (one_line(tool), grouped(bytes), place.seq);
    let tool = head(&tool, LONGEST_NAME);
    format!(
        "{STUB}{tool}, {bytes} bytes, was taken out of the context; \
         history_read with from {seq} and to {seq} shows it]"
    )
}

/// Whether a text is such a line.
pub fn is_stub(content: &str) -> bool {
    content.len() <= LONGEST_STUB
        && content.starts_with(STUB)
        && content.ends_with(" shows it]")
        && !content.contains('\n')
}

#[cfg(test)]
#[path = "outline_tests.rs"]
mod tests;
