//! The kept window: which end of a context a compaction keeps verbatim, and which tool outputs become stubs. Pure.
//!
//! A context is a list of exchanges, one for each turn, and an exchange is a list of steps. The kept window begins at
//! the start of an exchange. Only if the open turn is too large by itself, the window may begin at a step of that
//! turn. It never separates a call from its result.

use std::sync::Arc;

use longhaul_protocol::{CallId, Item, Place, Role};

use crate::token_estimate::estimate_item;
use crate::truncate::{one_line, truncate_end, with_commas};
use crate::{TokenCalibration, is_task_notification};

/// A stub must save at least this many tokens, uncorrected.
const MIN_STUB_GAIN: u64 = 100;
/// When exchanges are dropped by rule, this many of the newest stay if they fit.
const MIN_KEPT_EXCHANGES: usize = 2;

const STUB_PREFIX: &str = "[stub: the output of ";
const MAX_STUB_BYTES: usize = 320;
const MAX_NAME_BYTES: usize = 64;

/// A context, with what the planning of a compaction needs.
#[derive(Debug, Clone, Copy)]
pub struct ContextOutline<'a> {
    pub items: &'a [Arc<Item>],
    /// Where and when each item entered the context, one for each item.
    pub places: &'a [Place],
    /// The number of leading items that are the preface of the epoch (summary, pins). A compaction does not keep them
    /// but writes new ones.
    pub preface: usize,
    /// The open turn, or the earlier turn that it retries. Everything since then belongs to it.
    pub open_turn: Option<u64>,
    /// Tokens of the open turn's requests, which always stay.
    pub requests: u64,
    pub calibration: &'a TokenCalibration,
}

/// What a compaction keeps verbatim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptWindow {
    /// The index of the first kept item. Everything after it is kept too.
    pub from: usize,
    /// Earlier items of the open turn that the user sent: texts and pictures. They are kept too.
    pub requests: Vec<usize>,
}

/// Old tool outputs that stubs can replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StubPlan {
    pub calls: Vec<CallId>,
    /// Tokens that the stubs save, corrected.
    pub gains: u64,
}

/// A possible beginning of the kept window.
#[derive(Debug, Clone, Copy)]
struct WindowBoundary {
    at: usize,
    /// Tokens from there to the end, uncorrected.
    estimated: u64,
    /// Whether an exchange begins here. Otherwise only a step does.
    is_exchange: bool,
}

impl ContextOutline<'_> {
    /// The newest whole exchanges that fit into this many tokens. If the open turn alone does not fit: its newest
    /// whole steps and its requests. Never includes the preface.
    pub fn kept_window(&self, tokens: u64) -> KeptWindow {
        let boundaries = self.boundaries_within(tokens);
        let newest = exchange_boundaries(&boundaries).last().map(|one| one.at);
        self.window_from(newest.or_else(|| self.oldest_open_step(&boundaries)))
    }

    /// C7: the newest whole exchanges that fit into this many tokens. At least two, if those fit into
    /// `at_least_within`.
    pub fn kept_window_by_rule(&self, tokens: u64, at_least_within: u64) -> KeptWindow {
        let boundaries = self.boundaries_within(tokens.max(at_least_within));
        let fits =
            |boundary: &&WindowBoundary, tokens| self.calibration.correct(boundary.estimated) <= tokens;
        let all = exchange_boundaries(&boundaries).take_while(|one| fits(one, tokens)).last();
        let newest = exchange_boundaries(&boundaries).take(MIN_KEPT_EXCHANGES).last();
        let from = all.into_iter().chain(newest).map(|one| one.at).min();
        self.window_from(from.or_else(|| self.oldest_open_step(&boundaries)))
    }

    /// C9: the outputs to replace by stubs. These are older than the last two turns, not stubs yet, large enough, and not of
    /// the calls in `pinned`.
    pub fn plan_stubs(&self, pinned: &[CallId]) -> StubPlan {
        let (recent, earliest) = (self.second_to_last_turn(), self.first_items_of_calls());
        let results = |index: &usize| matches!(&*self.items[*index], Item::ToolResult { .. });
        let all: Vec<usize> = (self.preface_end()..self.items.len()).filter(results).collect();
        let (new, old): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|index| self.place_of(*index).turn >= recent);
        // A call gets at most one stub, and none if one of its results is recent.
        let mut is_settled = vec![false; self.items.len()];
        new.iter().for_each(|index| is_settled[earliest[*index]] = true);
        let mut plan = StubPlan { calls: vec![], gains: 0 };
        for index in old {
            let call = earliest[index];
            let is_pinned = call_of(&self.items[call]).is_some_and(|call| pinned.contains(&call));
            if std::mem::replace(&mut is_settled[call], true) || is_pinned {
                continue;
            }
            let gains = self.tokens_gained_by_stub(call, index);
            if gains >= MIN_STUB_GAIN {
                plan.calls.extend(call_of(&self.items[call]));
                plan.gains += gains;
            }
        }
        StubPlan { gains: self.calibration.correct(plan.gains), ..plan }
    }

    /// Uncorrected tokens that a stub for this result saves.
    fn tokens_gained_by_stub(&self, call: usize, result: usize) -> u64 {
        let estimated = estimate_item(&self.items[result]);
        match (&*self.items[call], &*self.items[result]) {
            (Item::ToolCall { call, name, .. }, Item::ToolResult { content, .. })
                if estimated >= MIN_STUB_GAIN && !is_stub(content) =>
            {
                let stub = stub_text(name, content.len(), self.place_of(result));
                estimated.saturating_sub(estimate_item(&stub_item(*call, stub)))
            }
            _ => 0,
        }
    }

    fn preface_end(&self) -> usize {
        self.preface.min(self.items.len())
    }

    /// Where and when an item entered the context. If that is unknown, the place of the last item.
    fn place_of(&self, index: usize) -> Place {
        let known = self.places.get(index).or_else(|| self.places.last());
        known.copied().unwrap_or(Place::new(0, 0, 0))
    }

    /// The number of the second to last turn. The open turn counts even if it is still empty.
    fn second_to_last_turn(&self) -> u64 {
        let turns = || (self.preface_end()..self.items.len()).map(|index| self.place_of(index).turn);
        let last = turns().chain(self.open_turn).max().unwrap_or(0);
        turns().filter(|turn| *turn < last).max().unwrap_or(last)
    }

    /// The boundaries from which the context fits into this many tokens, the newest first.
    fn boundaries_within(&self, tokens: u64) -> Vec<WindowBoundary> {
        let earliest = self.first_items_of_calls();
        let most = self.calibration.largest_within(tokens);
        let mut boundaries = Vec::new();
        // The first item that a kept call or result needs, and the tokens so far.
        let (mut needed, mut estimated) = (usize::MAX, 0_u64);
        for at in (self.preface_end()..self.items.len()).rev() {
            estimated = estimated.saturating_add(estimate_item(&self.items[at]));
            if estimated > most {
                break;
            }
            needed = needed.min(earliest[at]);
            let here = self.place_of(at);
            let before = (at > self.preface_end()).then(|| self.place_of(at - 1));
            let is_exchange = before.is_none_or(|before| before.turn != here.turn);
            let is_step = is_exchange || before.is_some_and(|before| before.step != here.step);
            if is_step && needed >= at {
                boundaries.push(WindowBoundary { at, estimated, is_exchange });
            }
        }
        boundaries
    }

    /// For each item the first item after the preface that has the same call id, usually the call itself. Items
    /// without a call id map to themselves.
    fn first_items_of_calls(&self) -> Vec<usize> {
        let belongs = |index: usize| call_of(&self.items[index]).map(|call| (call, index));
        // Ids grow with time, so this is already nearly sorted.
        let mut by_call: Vec<(CallId, usize)> =
            (self.preface_end()..self.items.len()).filter_map(belongs).collect();
        by_call.sort();
        let mut earliest: Vec<usize> = (0..self.items.len()).collect();
        for same in by_call.chunk_by(|one, other| one.0 == other.0) {
            same.iter().for_each(|(_, index)| earliest[*index] = same[0].1);
        }
        earliest
    }

    /// The oldest boundary within the open turn, if that is the newest exchange.
    fn oldest_open_step(&self, boundaries: &[WindowBoundary]) -> Option<usize> {
        let is_open = |boundary: &&WindowBoundary| self.is_open(boundary.at);
        boundaries.iter().take_while(is_open).last().map(|one| one.at)
    }

    fn window_from(&self, from: Option<usize>) -> KeptWindow {
        let from = from.unwrap_or(self.items.len());
        KeptWindow {
            from,
            requests: self.open_requests(self.requests).into_iter().filter(|index| *index < from).collect(),
        }
    }

    fn is_open(&self, index: usize) -> bool {
        self.open_turn.is_some_and(|open| self.place_of(index).turn >= open)
    }

    /// The requests of the open turn: the user's inputs, or the notifications that began it if there are none. If
    /// they exceed `most` tokens: the first, those that the model has not answered, and the newest that fit.
    pub fn open_requests(&self, most: u64) -> Vec<usize> {
        let open: Vec<usize> =
            (self.preface_end()..self.items.len()).filter(|index| self.is_open(*index)).collect();
        let matching = |which: fn(&Item) -> bool| -> Vec<usize> {
            open.iter().copied().filter(|index| which(&self.items[*index])).collect()
        };
        let by_person = matching(is_user_input);
        let open_requests = if by_person.is_empty() { matching(is_notification_item) } else { by_person };
        let answered = open.iter().rposition(|index| is_by_model(&self.items[*index])).map(|at| open[at]);
        // The first request includes its pictures.
        let first =
            open_requests.first().map(|index| (self.place_of(*index).turn, self.place_of(*index).step));
        let mut estimated = 0_u64;
        let most = self.calibration.largest_within(most);
        let mut kept: Vec<usize> = open_requests
            .iter()
            .rev()
            .copied()
            .filter(|index| {
                estimated = estimated.saturating_add(estimate_item(&self.items[*index]));
                let is_first = first == Some((self.place_of(*index).turn, self.place_of(*index).step));
                let is_vital = is_first || answered.is_none_or(|at| *index > at);
                is_vital || estimated <= most
            })
            .collect();
        kept.reverse();
        kept
    }
}

fn exchange_boundaries(boundaries: &[WindowBoundary]) -> impl Iterator<Item = &WindowBoundary> {
    boundaries.iter().filter(|boundary| boundary.is_exchange)
}

fn call_of(item: &Item) -> Option<CallId> {
    match item {
        Item::ToolCall { call, .. } | Item::ToolResult { call, .. } => Some(*call),
        _ => None,
    }
}

fn is_user_input(item: &Item) -> bool {
    match item {
        Item::Text { role: Role::User, text } => !is_task_notification(text),
        Item::Image(_) => true,
        _ => false,
    }
}

fn is_by_model(item: &Item) -> bool {
    matches!(item, Item::Text { role: Role::Assistant, .. } | Item::Reasoning { .. } | Item::ToolCall { .. })
}

fn is_notification_item(item: &Item) -> bool {
    matches!(item, Item::Text { role: Role::User, text } if is_task_notification(text))
}

fn stub_item(call: CallId, content: String) -> Item {
    Item::ToolResult { call, content, images: vec![], is_error: false }
}

/// The line that replaces an output. It names the tool and the size and says how to read the output.
pub fn stub_text(tool: &str, bytes: usize, place_of: Place) -> String {
    let (tool, bytes, seq) = (one_line(tool), with_commas(bytes), place_of.seq);
    let tool = truncate_end(&tool, MAX_NAME_BYTES);
    format!(
        "{STUB_PREFIX}{tool}, {bytes} bytes, was taken out of the context; \
         recall_read with ref \"#{seq}\" shows it]"
    )
}

pub fn is_stub(content: &str) -> bool {
    content.len() <= MAX_STUB_BYTES
        && content.starts_with(STUB_PREFIX)
        && content.ends_with(" shows it]")
        && !content.contains('\n')
}

#[cfg(test)]
#[path = "kept_window_tests.rs"]
mod tests;
