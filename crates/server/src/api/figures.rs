//! The figures of a session for charts: how full its context was at each model call, and what its turns and causes have spent.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::StatementItem;
use longhaul_agent::session::ContextBreakdown;
use longhaul_protocol::{
    Cause, CompactDone, CompactedBy, PromptParts, Record, Seq, StreamName, TurnEnded, TurnStarted, Usage,
};
use longhaul_transcript::SessionCost;
use schemars::JsonSchema;
use serde::Serialize;

use super::named_session::NamedSession;
use crate::access::{Access, Scope};
use crate::problem::ApiResult;
use crate::route::Route;
use crate::state::ServerState;

/// Points of a chart. Of a longer session some are left out.
const MAX_POINTS: usize = 500;
/// Of a part of a long session these points are kept: the first, the last, the highest and the lowest.
const POINTS_PER_PART: usize = 4;
/// Compactions whose neighbours among the points are kept in any case: the newest.
const MAX_MARKED_COMPACTIONS: usize = 100;
const MAX_COMPACTIONS: usize = 500;
const MAX_TURNS: usize = 50;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(
            Method::GET,
            "/api/sessions/{key}/figures",
            read,
            "The figures of a session",
            show_figures,
        )
        .answers::<SessionFigures>(StatusCode::OK, "Context over time, and what was spent on what."),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct SessionFigures {
    /// The last record that they cover.
    through: u64,
    /// How many model calls the session's turns have made. If `context` has fewer points, some calls between the highest and the
    /// lowest are left out.
    calls: u64,
    /// The context at model calls of the session's turns, in order; at most 500.
    context: Vec<ContextPoint>,
    /// The compactions, in order; of more than 500 the newest.
    compactions: Vec<CompactionPoint>,
    /// What was spent on what, as the statement counts it, with memory; the most tokens first.
    by_cause: Vec<CauseSpend>,
    /// What the last 50 turns have spent, in order.
    by_turn: Vec<TurnSpend>,
}

/// The context of one model call.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ContextPoint {
    seq: u64,
    /// RFC 3339.
    at: String,
    turn: Option<u64>,
    /// Tokens sent, including cached ones.
    input: u64,
    /// Whether `input` is the runtime's estimate, because the provider did not say.
    estimated: bool,
    /// The model's window in tokens, if it is known.
    window: Option<u64>,
    /// What `input` consists of, by the runtime's estimate; null in calls of older versions.
    parts: Option<PromptParts>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct CompactionPoint {
    seq: u64,
    /// RFC 3339.
    at: String,
    /// Null between two turns.
    turn: Option<u64>,
    by: CompactedBy,
    /// Tokens.
    before: u64,
    after: u64,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct CauseSpend {
    cause: Cause,
    calls: u64,
    /// Tokens sent, including cached ones.
    input: u64,
    output: u64,
    cached: u64,
    /// US dollars, as far as prices are known.
    cost: Option<f64>,
    /// Calls whose price is not known.
    unpriced: u64,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct TurnSpend {
    turn: u64,
    /// The record that started it.
    seq: u64,
    /// RFC 3339.
    started_at: String,
    calls: u64,
    #[serde(flatten)]
    spend: SessionCost,
}

/// The records that figures are made from, each kind in order.
struct FigureRecords {
    turns_started: Vec<Record>,
    turns_ended: Vec<Record>,
    usages: Vec<Record>,
    compactions: Vec<Record>,
}

async fn show_figures(
    State(state): State<ServerState>,
    NamedSession(entry): NamedSession,
) -> ApiResult<Json<SessionFigures>> {
    let (journal, stream, through) = (state.journal(), StreamName::session(entry.id), entry.head.seq);
    let read = async |kind: &'static str| -> ApiResult<Vec<Record>> {
        let mut records = journal.records_of_kind(&stream, kind).await?;
        records.retain(|record| record.seq <= through);
        Ok(records)
    };
    let records = FigureRecords {
        turns_started: read("turn_started").await?,
        turns_ended: read("turn_ended").await?,
        usages: read("usage").await?,
        compactions: read("compact_done").await?,
    };
    let causes = state.runtime().session_causes(entry.id).await?;
    let by_cause = causes.into_iter().map(|(cause, spent)| CauseSpend::new(cause, &spent)).collect();
    Ok(Json(SessionFigures { by_cause, ..records.figures(through) }))
}

impl CauseSpend {
    fn new(cause: Cause, spent: &StatementItem) -> Self {
        let &StatementItem { calls, input, output, cached, cost, unpriced, .. } = spent;
        // What nothing was paid for has no price.
        let cost = cost.filter(|_| unpriced < calls);
        Self { cause, calls, input, output, cached, cost, unpriced }
    }
}

impl FigureRecords {
    fn figures(&self, through: Seq) -> SessionFigures {
        let turns = Turns::new(&self.turns_started, &self.turns_ended);
        let mut context = Vec::new();
        let mut by_turn: BTreeMap<u64, (u64, SessionCost)> = BTreeMap::new();
        for record in &self.usages {
            let Ok(usage) = record.decode::<Usage>() else { continue };
            let turn = turns.at(record.seq);
            if let Some((calls, spend)) = turn.map(|turn| by_turn.entry(turn).or_default()) {
                *calls += 1;
                spend.add(&usage);
            }
            context.extend(context_point(record, &usage, turn));
        }
        let mut compactions: Vec<CompactionPoint> =
            self.compactions.iter().filter_map(|record| compaction_point(record, &turns)).collect();
        compactions.drain(..compactions.len().saturating_sub(MAX_COMPACTIONS));
        SessionFigures {
            through,
            calls: context.len() as u64,
            context: thin_points(context, &compactions),
            compactions,
            by_cause: vec![],
            by_turn: turns.last(MAX_TURNS, by_turn),
        }
    }
}

/// Where turns begin and end.
struct Turns<'a> {
    /// Numbers with the record that started each, in order.
    started: Vec<(u64, &'a Record)>,
    /// Positions of ends, in order.
    ended: Vec<Seq>,
}

impl<'a> Turns<'a> {
    fn new(started: &'a [Record], ended: &[Record]) -> Self {
        let number = |record: &'a Record| Some((record.decode::<TurnStarted>().ok()?.turn, record));
        // An end whose content was erased is still an end.
        let is_end = |record: &&Record| record.text().is_none() || record.decode::<TurnEnded>().is_ok();
        let ended = ended.iter().filter(is_end).map(|record| record.seq).collect();
        Self { started: started.iter().filter_map(number).collect(), ended }
    }

    /// The turn that ran at this record.
    fn at(&self, seq: Seq) -> Option<u64> {
        let before = self.started.partition_point(|(_, started)| started.seq < seq);
        let (number, started) = self.started.get(before.checked_sub(1)?)?;
        let end = self.ended.get(self.ended.partition_point(|ended| *ended < started.seq));
        end.is_none_or(|end| *end > seq).then_some(*number)
    }

    /// The last turns, with what they have spent.
    fn last(&self, most: usize, mut spent: BTreeMap<u64, (u64, SessionCost)>) -> Vec<TurnSpend> {
        let last = &self.started[self.started.len().saturating_sub(most)..];
        let turn = |(turn, record): &(u64, &Record)| {
            let (calls, spend) = spent.remove(turn).unwrap_or_default();
            TurnSpend { turn: *turn, seq: record.seq, started_at: record.at.to_string(), calls, spend }
        };
        last.iter().map(turn).collect()
    }
}

fn context_point(record: &Record, usage: &Usage, turn: Option<u64>) -> Option<ContextPoint> {
    let input = usage.context_tokens()?;
    let (seq, at, window) = (record.seq, record.at.to_string(), usage.window);
    let parts = usage.parts.map(|parts| scale_parts(parts, input));
    Some(ContextPoint { seq, at, turn, input, estimated: usage.input.is_none(), window, parts })
}

/// Parts that add up to this many tokens.
fn scale_parts(parts: PromptParts, total: u64) -> PromptParts {
    let PromptParts { system, tools, memory, summary, pins, turns, tool_output } = parts;
    let breakdown = ContextBreakdown { system, tools, memory, summary, pins, turns, tool_output };
    let ContextBreakdown { system, tools, memory, summary, pins, turns, tool_output } =
        breakdown.scaled_to(total);
    PromptParts { system, tools, memory, summary, pins, turns, tool_output }
}

fn compaction_point(record: &Record, turns: &Turns<'_>) -> Option<CompactionPoint> {
    let CompactDone { by, before, after, .. } = record.decode().ok()?;
    let (seq, at, turn) = (record.seq, record.at.to_string(), turns.at(record.seq));
    Some(CompactionPoint { seq, at, turn, by, before, after })
}

/// At most [`MAX_POINTS`] points: those beside the newest compactions, and of each part of the rest the first, the last, the highest
/// and the lowest.
fn thin_points(points: Vec<ContextPoint>, compactions: &[CompactionPoint]) -> Vec<ContextPoint> {
    if points.len() <= MAX_POINTS {
        return points;
    }
    let mut kept = BTreeSet::new();
    for compaction in compactions.iter().rev().take(MAX_MARKED_COMPACTIONS) {
        let after = points.partition_point(|point| point.seq < compaction.seq);
        kept.extend(after.checked_sub(1));
        kept.extend(Some(after).filter(|after| *after < points.len()));
    }
    let parts = (MAX_POINTS - kept.len()) / POINTS_PER_PART;
    let size = points.len().div_ceil(parts);
    for first in (0..points.len()).step_by(size) {
        let last = (first + size).min(points.len()) - 1;
        let highest = (first..=last).max_by_key(|index| points[*index].input);
        let lowest = (first..=last).min_by_key(|index| points[*index].input);
        kept.extend([Some(first), Some(last), highest, lowest].into_iter().flatten());
    }
    let is_kept = |(index, point): (usize, ContextPoint)| kept.contains(&index).then_some(point);
    points.into_iter().enumerate().filter_map(is_kept).collect()
}

#[cfg(test)]
#[path = "figures_tests.rs"]
mod tests;
