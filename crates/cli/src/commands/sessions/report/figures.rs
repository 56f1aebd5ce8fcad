//! The totals of a session, its cost among them, and how full its context was at each step.

use std::collections::VecDeque;

use longhaul_protocol::{
    At, AttemptEnded, CompactDone, CompactedBy, Record, Seq, StepStarted, TurnStarted, Usage,
};
use longhaul_transcript::{SessionCost, format_count};

/// Points of a chart. In a longer session a point stands for several steps.
const MAX_CHART_POINTS: usize = 800;

/// The context after a step, or after several steps that share a point.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChartPoint {
    pub(super) turn: u64,
    pub(super) step: u64,
    /// Tokens in the context; of several steps, the most.
    pub(super) tokens: Option<u64>,
    pub(super) window: Option<u64>,
    /// Cost of the session up to here, in US dollars.
    pub(super) cost: Option<f64>,
}

/// A compaction. `point` is the first point after it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChartCompaction {
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
    pub(super) spend: SessionCost,
    /// Attempts to get an answer.
    attempts: u64,
    pub(super) points: Vec<ChartPoint>,
    /// Steps for which a point stands.
    pub(super) steps_per_point: u64,
    pub(super) compactions: Vec<ChartCompaction>,
    pub(super) span: Option<(At, At)>,
    turn: u64,
    step: u64,
    /// Steps for which the last point stands so far.
    in_point: u64,
    /// The first record after the last turn.
    section: Seq,
    /// Where the last turns begin, at most `max_starts` of them.
    starts: VecDeque<Seq>,
    max_starts: usize,
}

impl Figures {
    /// Figures that remember where the last `turns` turns begin.
    pub(super) fn new(turns: usize) -> Self {
        Self { steps_per_point: 1, section: 1, max_starts: turns, ..Self::default() }
    }

    /// The first record of the last turns.
    pub(super) fn shown_from(&self) -> Seq {
        match self.starts.front() {
            Some(start) if self.turns > self.starts.len() as u64 => *start,
            _ => 1,
        }
    }

    /// The number of turns before those.
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
        // Most records need no decoding.
        match record.kind.as_str() {
            "turn_started" => {
                self.turns += 1;
                self.turn = record.decode().map_or(self.turns, |started: TurnStarted| started.turn);
                self.starts.push_back(self.section);
                if self.starts.len() > self.max_starts {
                    self.starts.pop_front();
                }
            }
            "turn_ended" => self.section = record.seq + 1,
            "step_started" => {
                self.steps += 1;
                self.step = record.decode().map_or(0, |started: StepStarted| started.step);
            }
            "tool_started" => self.calls += 1,
            "attempt_started" => self.attempts += 1,
            "attempt_ended" => {
                self.broken +=
                    u64::from(record.decode().is_ok_and(|ended: AttemptEnded| ended.error.is_some()));
            }
            "usage" => {
                if let Ok(usage) = record.decode() {
                    self.count_usage(&usage);
                }
            }
            "compact_done" => {
                if let Ok(CompactDone { before, after, by, .. }) = record.decode() {
                    self.compactions.push(ChartCompaction { point: self.points.len(), before, after, by });
                }
            }
            _ => {}
        }
    }

    fn count_usage(&mut self, usage: &Usage) {
        self.spend.add(usage);
        let cost = self.spend.cost;
        if usage.purpose.is_some() {
            if let Some(point) = self.points.last_mut() {
                point.cost = cost;
            }
            return;
        }
        let tokens = usage.context_tokens().map(|sent| sent.saturating_add(usage.output.unwrap_or(0)));
        let (turn, step, window) = (self.turn, self.step, usage.window);
        match self.points.last_mut() {
            // Another attempt at the same step, or a step that shares the point.
            Some(point)
                if (point.turn, point.step) == (turn, step) || self.in_point < self.steps_per_point =>
            {
                self.in_point += u64::from((point.turn, point.step) != (turn, step));
                let tokens = point.tokens.max(tokens);
                *point = ChartPoint { turn, step, tokens, window: window.or(point.window), cost };
            }
            _ => {
                self.points.push(ChartPoint { turn, step, tokens, window, cost });
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
            ChartPoint { tokens: pair.iter().filter_map(|point| point.tokens).max(), ..last.clone() }
        });
        self.points = merged.collect();
        self.compactions.iter_mut().for_each(|compaction| compaction.point /= 2);
        self.steps_per_point *= 2;
        self.in_point = self.steps_per_point;
    }

    /// The totals, one line each.
    pub(super) fn totals(&self) -> Vec<String> {
        let mut totals = vec![format!(
            "{}, {}, {}, {}",
            format_count(self.turns, "turn"),
            format_count(self.steps, "step"),
            format_count(self.calls, "tool call"),
            format_count(self.compactions.len() as u64, "compaction"),
        )];
        if self.steps > 0 && self.attempts == 0 && self.spend == SessionCost::default() {
            totals.push("nothing spent".to_owned());
        } else if self.steps > 0 {
            let unknown = if self.spend.cost.is_none() { "; cost unknown" } else { "" };
            totals.push(format!("{}{unknown}", self.spend));
        }
        if self.broken > 0 {
            totals.push(format!("{} cut off", format_count(self.broken, "answer")));
        }
        if self.gone > 0 {
            totals.push(format!("{} erased", format_count(self.gone, "entry")));
        }
        if self.damaged > 0 {
            let many = format_count(self.damaged, "entry");
            totals.push(format!("{many} damaged; run `longhaul verify` for details"));
        }
        totals
    }
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
