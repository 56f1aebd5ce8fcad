//! The totals of a session, and the points of its charts.

use std::collections::VecDeque;

use longhaul_protocol::{
    At, AttemptEnded, CompactDone, CompactedBy, Record, Seq, StepStarted, TurnStarted, Usage,
};

use crate::output::{count, grouped};

/// In a longer session one point stands for several steps.
const MAX_CHART_POINTS: usize = 800;

/// The largest sum of costs, in US dollars: the scale of a chart must be finite.
const MAX_COST: f64 = 1e15;

/// Tokens and cost. Unknown amounts are not counted, and the text says so.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Spent {
    input: u64,
    output: u64,
    cached: u64,
    pub(super) cost: Option<f64>,
    /// Some requests have no known price.
    beyond: bool,
    /// Some request has reported its tokens.
    is_told: bool,
}

impl Spent {
    pub(super) fn add(&mut self, usage: &Usage) {
        self.input = self.input.saturating_add(usage.input.unwrap_or(0));
        self.output = self.output.saturating_add(usage.output.unwrap_or(0));
        self.cached = self.cached.saturating_add(usage.cached.unwrap_or(0));
        self.is_told |= usage.input.is_some() || usage.output.is_some();
        match usage.cost {
            Some(cost) => self.cost = Some((self.cost.unwrap_or(0.0) + cost).clamp(0.0, MAX_COST)),
            None => self.beyond = true,
        }
    }

    /// `1,234 tokens in (1,000 of them cached), 56 out, $0.0123`.
    pub(super) fn in_words(&self) -> String {
        if !self.is_told {
            return "tokens not told".to_owned();
        }
        let cached = match self.cached {
            0 => String::new(),
            cached => format!(" ({} of them cached)", grouped(cached)),
        };
        let cost = match (self.cost, self.beyond) {
            (Some(cost), false) => format!(", {}", money(cost)),
            (Some(cost), true) => format!(", at least {}", money(cost)),
            (None, _) => String::new(),
        };
        format!("{} in{cached}, {} out{cost}", count(self.input, "token"), grouped(self.output))
    }
}

/// `$0.0123` below one dollar, else `$12.34`.
pub(super) fn money(dollars: f64) -> String {
    if dollars < 1.0 { format!("${dollars:.4}") } else { format!("${dollars:.2}") }
}

/// A point of the charts: a step, or several steps.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    pub(super) turn: u64,
    pub(super) step: u64,
    /// Tokens in the context; of several steps, the maximum.
    pub(super) tokens: Option<u64>,
    pub(super) window: Option<u64>,
    /// The cost of the session so far.
    pub(super) cost: Option<f64>,
}

/// A compaction, between `point` and the one before it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Compaction {
    pub(super) point: usize,
    pub(super) before: u64,
    pub(super) after: u64,
    pub(super) by: CompactedBy,
}

#[derive(Default)]
pub(super) struct Figures {
    pub(super) records: u64,
    pub(super) turns: u64,
    pub(super) steps: u64,
    pub(super) calls: u64,
    pub(super) broken: u64,
    pub(super) gone: u64,
    pub(super) damaged: u64,
    pub(super) spent: Spent,
    pub(super) points: Vec<Point>,
    /// Steps in a point.
    pub(super) steps_a_point: u64,
    pub(super) compactions: Vec<Compaction>,
    pub(super) span: Option<(At, At)>,
    turn: u64,
    step: u64,
    /// Steps in the last point so far.
    in_point: u64,
    /// The first record after the last turn.
    section: Seq,
    /// The first records of the last turns, at most `most_starts`.
    starts: VecDeque<Seq>,
    most_starts: usize,
}

impl Figures {
    /// Keeps the starts of the last `turns` turns.
    pub(super) fn new(turns: usize) -> Self {
        Self { steps_a_point: 1, section: 1, most_starts: turns, ..Self::default() }
    }

    /// The first record of the last turns.
    pub(super) fn shown_from(&self) -> Seq {
        match self.starts.front() {
            Some(start) if self.turns > self.starts.len() as u64 => *start,
            _ => 1,
        }
    }

    /// The number of turns before these.
    pub(super) fn left_out(&self) -> u64 {
        self.turns - self.starts.len() as u64
    }

    pub(super) fn count(&mut self, record: &Record) {
        self.records += 1;
        let (first, _) = self.span.unwrap_or((record.at, record.at));
        self.span = Some((first, record.at));
        if record.text().is_none() {
            self.gone += 1;
        }
        // Most records are passed over without being decoded.
        match record.kind.as_str() {
            "turn_started" => {
                self.turns += 1;
                self.turn = record.decode().map_or(self.turns, |started: TurnStarted| started.turn);
                self.starts.push_back(self.section);
                if self.starts.len() > self.most_starts {
                    self.starts.pop_front();
                }
            }
            "turn_ended" => self.section = record.seq + 1,
            "step_started" => {
                self.steps += 1;
                self.step = record.decode().map_or(0, |started: StepStarted| started.step);
            }
            "tool_started" => self.calls += 1,
            "attempt_ended" => {
                self.broken +=
                    u64::from(record.decode().is_ok_and(|ended: AttemptEnded| ended.error.is_some()));
            }
            "usage" => {
                if let Ok(usage) = record.decode() {
                    self.used(&usage);
                }
            }
            "compact_done" => {
                if let Ok(CompactDone { before, after, by, .. }) = record.decode() {
                    self.compactions.push(Compaction { point: self.points.len(), before, after, by });
                }
            }
            _ => {}
        }
    }

    fn used(&mut self, usage: &Usage) {
        self.spent.add(usage);
        let cost = self.spent.cost;
        if usage.purpose.is_some() {
            if let Some(point) = self.points.last_mut() {
                point.cost = cost;
            }
            return;
        }
        let tokens =
            usage.input.or(usage.estimated).map(|input| input.saturating_add(usage.output.unwrap_or(0)));
        let (turn, step, window) = (self.turn, self.step, usage.window);
        match self.points.last_mut() {
            // Another attempt at the same step, or a step that the point stands for, too.
            Some(point) if (point.turn, point.step) == (turn, step) || self.in_point < self.steps_a_point => {
                self.in_point += u64::from((point.turn, point.step) != (turn, step));
                let tokens = point.tokens.max(tokens);
                *point = Point { turn, step, tokens, window: window.or(point.window), cost };
            }
            _ => {
                self.points.push(Point { turn, step, tokens, window, cost });
                self.in_point = 1;
            }
        }
        if self.points.len() > MAX_CHART_POINTS {
            self.halve();
        }
    }

    /// Merges every two points into one.
    fn halve(&mut self) {
        let merged = self.points.chunks(2).map(|pair| {
            let last = &pair[pair.len() - 1];
            Point { tokens: pair.iter().filter_map(|point| point.tokens).max(), ..last.clone() }
        });
        self.points = merged.collect();
        self.compactions.iter_mut().for_each(|compaction| compaction.point /= 2);
        self.steps_a_point *= 2;
        self.in_point = self.steps_a_point;
    }

    /// The totals, a line each.
    pub(super) fn totals(&self) -> Vec<String> {
        let mut totals = vec![format!(
            "{}, {}, {}, {}",
            count(self.turns, "turn"),
            count(self.steps, "step"),
            count(self.calls, "tool call"),
            count(self.compactions.len() as u64, "compaction"),
        )];
        if self.steps > 0 {
            let unknown = if self.spent.cost.is_none() { "; what it cost is not known" } else { "" };
            totals.push(format!("{}{unknown}", self.spent.in_words()));
        }
        if self.broken > 0 {
            totals.push(format!("{} that did not come to the end", count(self.broken, "answer")));
        }
        if self.gone > 0 {
            totals.push(format!("{} whose words are gone", count(self.gone, "record")));
        }
        if self.damaged > 0 {
            let many = count(self.damaged, "record");
            totals.push(format!(
                "{many} damaged: longhaul verify says more, and with --salvage FILE gets out the rest"
            ));
        }
        totals
    }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
