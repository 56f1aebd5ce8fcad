//! What of a context stays and what goes, when it is made smaller. Pure: the same context, the same plan.
//!
//! A context is a row of exchanges, one a turn, and an exchange a row of steps. What stays is the end of that row, from a
//! place on where an exchange begins; only of an open turn that is too large alone it may be a place where a step begins. No
//! such place lies between a call and its result: where the records are so odd that one would, it is not taken.

use std::sync::Arc;

use longhaul_protocol::{CallId, Item, Place, Role};

use crate::text::{grouped, head, one_line};
use crate::tokens::estimate_item;
use crate::{TokenCalibration, is_task_notification};

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
pub struct ContextOutline<'a> {
    /// What is in it.
    pub items: &'a [Arc<Item>],
    /// Where each came into it: as many.
    pub places: &'a [Place],
    /// So many of them, from the first, are the preface of the epoch: a summary, what is pinned. They are made anew.
    pub preface: usize,
    /// The turn that is open, if one is; where it tries again what an earlier one was to do, that one. Everything since belongs to it.
    pub open_turn: Option<u64>,
    /// So many tokens of what was asked in the open turn stay, whatever else goes.
    pub requests: u64,
    /// How the model counts.
    pub calibration: &'a TokenCalibration,
}

/// What of a context stays as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptWindow {
    /// From this item on everything stays.
    pub from: usize,
    /// What a person said in the open turn before that, which stays too: texts and pictures.
    pub requests: Vec<usize>,
}

/// Old tool output that could be replaced by a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StubPlan {
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
    /// How many tokens would stay, before anything is learnt.
    estimated: u64,
    /// Whether an exchange begins here; else it is a step of one.
    is_exchange: bool,
}

impl ContextOutline<'_> {
    /// The newest whole exchanges that have room in so many tokens; of an open turn that has none alone, its newest whole steps, and
    /// what was asked in it. Nothing of the preface.
    pub fn keep(&self, tokens: u64) -> KeptWindow {
        let boundaries = self.boundaries(tokens);
        let newest = exchanges(&boundaries).last().map(|one| one.at);
        self.from(newest.or_else(|| self.oldest_step(&boundaries)))
    }

    /// C7: the newest whole exchanges that have room in so many tokens; at least two, if they have room in `at_least_within`.
    pub fn keep_by_rule(&self, tokens: u64, at_least_within: u64) -> KeptWindow {
        let boundaries = self.boundaries(tokens.max(at_least_within));
        let fits = |boundary: &&Boundary, tokens| self.calibration.correct(boundary.estimated) <= tokens;
        let all = exchanges(&boundaries).take_while(|one| fits(one, tokens)).last();
        let newest = exchanges(&boundaries).take(NEWEST).last();
        let from = all.into_iter().chain(newest).map(|one| one.at).min();
        self.from(from.or_else(|| self.oldest_step(&boundaries)))
    }

    /// C9: the outputs that are not of the last two turns, not stubs already, and large enough to be worth it.
    pub fn stubs(&self) -> StubPlan {
        let (recent, earliest) = (self.last_two_turns_begin(), self.earliest_partners());
        let results = |index: &usize| matches!(&*self.items[*index], Item::ToolResult { .. });
        let all: Vec<usize> = (self.start()..self.items.len()).filter(results).collect();
        let (new, old): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|index| self.place(*index).turn >= recent);
        // A call has one stub; and where one of its results is new, none.
        let mut is_settled = vec![false; self.items.len()];
        new.iter().for_each(|index| is_settled[earliest[*index]] = true);
        let mut stubs = StubPlan { calls: vec![], gains: 0 };
        for index in old {
            let call = earliest[index];
            if std::mem::replace(&mut is_settled[call], true) {
                continue;
            }
            let gains = self.gained_by_a_stub(call, index);
            if gains >= WORTH_A_STUB {
                stubs.calls.extend(call_of(&self.items[call]));
                stubs.gains += gains;
            }
        }
        StubPlan { gains: self.calibration.correct(stubs.gains), ..stubs }
    }

    /// How many tokens go, before anything is learnt, if the result of a call becomes a line.
    fn gained_by_a_stub(&self, call: usize, result: usize) -> u64 {
        let estimated = estimate_item(&self.items[result]);
        match (&*self.items[call], &*self.items[result]) {
            (Item::ToolCall { call, name, .. }, Item::ToolResult { content, .. })
                if estimated >= WORTH_A_STUB && !is_stub(content) =>
            {
                let stub = stub_text(name, content.len(), self.place(result));
                estimated.saturating_sub(estimate_item(&stub_item(*call, stub)))
            }
            _ => 0,
        }
    }

    /// Where the preface ends.
    fn start(&self) -> usize {
        self.preface.min(self.items.len())
    }

    /// Where an item came into the context. If that is not known, it came with the one before.
    fn place(&self, index: usize) -> Place {
        let known = self.places.get(index).or_else(|| self.places.last());
        known.copied().unwrap_or(Place { seq: 0, turn: 0, step: 0, said: None })
    }

    /// The first of the last two turns, of which the open one is one even if nothing was said in it yet.
    fn last_two_turns_begin(&self) -> u64 {
        let turns = || (self.start()..self.items.len()).map(|index| self.place(index).turn);
        let last = turns().chain(self.open_turn).max().unwrap_or(0);
        turns().filter(|turn| *turn < last).max().unwrap_or(last)
    }

    /// The places from which on the context has room in so many tokens, the newest first.
    fn boundaries(&self, tokens: u64) -> Vec<Boundary> {
        let earliest = self.earliest_partners();
        let most = self.calibration.largest_within(tokens);
        let mut boundaries = Vec::new();
        // The first item that must stay if everything from here on does, and how much stays.
        let (mut needed, mut estimated) = (usize::MAX, 0_u64);
        for at in (self.start()..self.items.len()).rev() {
            estimated = estimated.saturating_add(estimate_item(&self.items[at]));
            if estimated > most {
                break;
            }
            needed = needed.min(earliest[at]);
            let here = self.place(at);
            let before = (at > self.start()).then(|| self.place(at - 1));
            let is_exchange = before.is_none_or(|before| before.turn != here.turn);
            let is_step = is_exchange || before.is_some_and(|before| before.step != here.step);
            if is_step && needed >= at {
                boundaries.push(Boundary { at, estimated, is_exchange });
            }
        }
        boundaries
    }

    /// For each item the first after the preface that belongs to the same call: mostly the call itself. An item that belongs to
    /// no call is its own.
    fn earliest_partners(&self) -> Vec<usize> {
        let belongs = |index: usize| call_of(&self.items[index]).map(|call| (call, index));
        // Ids grow with time, so this is sorted already, or nearly.
        let mut by_call: Vec<(CallId, usize)> =
            (self.start()..self.items.len()).filter_map(belongs).collect();
        by_call.sort();
        let mut earliest: Vec<usize> = (0..self.items.len()).collect();
        for same in by_call.chunk_by(|one, other| one.0 == other.0) {
            same.iter().for_each(|(_, index)| earliest[*index] = same[0].1);
        }
        earliest
    }

    /// The oldest of these places that is within the newest exchange, if that is the open turn.
    fn oldest_step(&self, boundaries: &[Boundary]) -> Option<usize> {
        let is_open = |boundary: &&Boundary| self.is_open(boundary.at);
        boundaries.iter().take_while(is_open).last().map(|one| one.at)
    }

    fn from(&self, from: Option<usize>) -> KeptWindow {
        let from = from.unwrap_or(self.items.len());
        KeptWindow {
            from,
            requests: self.asked(self.requests).into_iter().filter(|index| *index < from).collect(),
        }
    }

    fn is_open(&self, index: usize) -> bool {
        self.open_turn.is_some_and(|open| self.place(index).turn >= open)
    }

    /// What the open turn is to answer: what a person said in it, or, where nobody did, the ends of tasks that began it. Of much that was said,
    /// the first and what the model has not answered yet, and as much of the newest as has room in `most`.
    pub fn asked(&self, most: u64) -> Vec<usize> {
        let open: Vec<usize> =
            (self.start()..self.items.len()).filter(|index| self.is_open(*index)).collect();
        let matching = |which: fn(&Item) -> bool| -> Vec<usize> {
            open.iter().copied().filter(|index| which(&self.items[*index])).collect()
        };
        let by_person = matching(is_of_a_person);
        let asked = if by_person.is_empty() { matching(is_told_of_task) } else { by_person };
        let answered = open.iter().rposition(|index| is_by_model(&self.items[*index])).map(|at| open[at]);
        // With its pictures.
        let first = asked.first().map(|index| (self.place(*index).turn, self.place(*index).step));
        let mut estimated = 0_u64;
        let most = self.calibration.largest_within(most);
        let mut kept: Vec<usize> = asked
            .iter()
            .rev()
            .copied()
            .filter(|index| {
                estimated = estimated.saturating_add(estimate_item(&self.items[*index]));
                let is_first = first == Some((self.place(*index).turn, self.place(*index).step));
                let is_vital = is_first || answered.is_none_or(|at| *index > at);
                is_vital || estimated <= most
            })
            .collect();
        kept.reverse();
        kept
    }
}

/// The places where exchanges begin, the newest first.
fn exchanges(boundaries: &[Boundary]) -> impl Iterator<Item = &Boundary> {
    boundaries.iter().filter(|boundary| boundary.is_exchange)
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
        Item::Text { role: Role::User, text } => !is_task_notification(text),
        Item::Image(_) => true,
        _ => false,
    }
}

fn is_by_model(item: &Item) -> bool {
    matches!(item, Item::Text { role: Role::Assistant, .. } | Item::Reasoning { .. } | Item::ToolCall { .. })
}

fn is_told_of_task(item: &Item) -> bool {
    matches!(item, Item::Text { role: Role::User, text } if is_task_notification(text))
}

fn stub_item(call: CallId, content: String) -> Item {
    Item::ToolResult { call, content, images: vec![], is_error: false }
}

/// The line that stands for an output. It says what it was, how much, and how to read it.
pub fn stub_text(tool: &str, bytes: usize, place: Place) -> String {
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
