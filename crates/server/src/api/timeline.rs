//! Where the time of a turn went: what ran when, from its records.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::now;
use longhaul_protocol::{
    AnsweredBy, At, AttemptId, CallId, Outcome, QuestionId, Record, Seq, SessionRecord, StreamName,
    TurnEnded, TurnStarted,
};
use longhaul_transcript::truncate;
use schemars::JsonSchema;
use serde::Serialize;

use super::path::PathParameters;
use crate::access::{Access, Scope};
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

/// Spans that are listed. The totals count all.
const MAX_SPANS: usize = 2_000;
/// A shorter time without a record is no wait.
const MIN_WAIT_MS: i64 = 100;
const MAX_NAME_CHARS: usize = 200;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(
            Method::GET,
            "/api/sessions/{key}/turns/{number}/timeline",
            read,
            "Where the time of a turn went",
            show_timeline,
        )
        .answers::<TurnTimeline>(StatusCode::OK, "What ran when."),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct TurnTimeline {
    turn: u64,
    /// The record that started it.
    seq: u64,
    /// RFC 3339.
    started_at: String,
    /// RFC 3339; null while the turn goes on.
    ended_at: Option<String>,
    /// Null while the turn goes on, and if its end was erased.
    outcome: Option<Outcome>,
    took_ms: u64,
    /// In the order in which they started. Some overlap, since tools run beside each other.
    spans: Vec<TimelineSpan>,
    /// How many spans at the end are not listed.
    left_out: usize,
    /// The time of each kind. Time that two spans of a kind share counts once.
    totals: Vec<KindTotal>,
}

/// What a span of time was used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SpanKind {
    /// A model call.
    Model,
    Tool,
    /// The wait before another model call, after one failed.
    Retry,
    /// A question to a person.
    Question,
    Compaction,
    /// Nothing of the above ran.
    Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SpanOutcome {
    Ok,
    Failed,
    /// The turn ended first, or the process did.
    Interrupted,
    /// A question that the runtime took back.
    Withdrawn,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct TimelineSpan {
    kind: SpanKind,
    /// The model, the tool, the kind of question, the reason of a compaction, the error before a retry; empty for a wait.
    name: String,
    /// The record that started it.
    seq: u64,
    /// RFC 3339.
    started_at: String,
    /// RFC 3339; null while it goes on.
    ended_at: Option<String>,
    /// Null while it goes on.
    outcome: Option<SpanOutcome>,
}

#[derive(Debug, PartialEq, Serialize, JsonSchema)]
struct KindTotal {
    kind: SpanKind,
    spans: usize,
    ms: u64,
}

async fn show_timeline(
    State(state): State<ServerState>,
    PathParameters((key, number)): PathParameters<(String, u64)>,
) -> ApiResult<Json<TurnTimeline>> {
    let entry = state.session_entry(&key).await?;
    let (journal, stream) = (state.journal(), StreamName::session(entry.id));
    let turns = journal.records_of_kind(&stream, "turn_started").await?;
    let is_wanted =
        |record: &&Record| record.decode::<TurnStarted>().is_ok_and(|started| started.turn == number);
    let started = turns.iter().find(is_wanted).ok_or_else(|| {
        let detail = format!("session {:?} has no turn {number}; its turns count from 1", entry.key);
        Problem::not_found("no_such_turn", detail)
    })?;
    let mut timeline = TimelineFold::new(number, started);
    let mut cursor = longhaul_journal::records(&*journal, &stream, started.seq + 1).through(entry.head.seq);
    while let Some(record) = cursor.next_undamaged().await? {
        if timeline.apply(&record) {
            break;
        }
    }
    Ok(Json(timeline.finish(now())))
}

/// What ends an open span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SpanId {
    Attempt(AttemptId),
    Call(CallId),
    Question(QuestionId),
    Compaction,
    Retry,
    None,
}

#[derive(Debug)]
struct RecordedSpan {
    id: SpanId,
    kind: SpanKind,
    name: String,
    seq: Seq,
    started_at: At,
    end: Option<(At, SpanOutcome)>,
}

/// Folds the records of one turn into spans.
struct TimelineFold {
    turn: u64,
    seq: Seq,
    started_at: At,
    /// The outcome is not known if the record of the end was erased.
    end: Option<(At, Option<Outcome>)>,
    spans: Vec<RecordedSpan>,
}

impl TimelineFold {
    fn new(turn: u64, started: &Record) -> Self {
        Self { turn, seq: started.seq, started_at: started.at, end: None, spans: Vec::new() }
    }

    /// Applies the next record. True if it ends the turn.
    fn apply(&mut self, record: &Record) -> bool {
        let (seq, at) = (record.seq, record.at);
        if matches!(record.kind.as_str(), "turn_ended" | "turn_started" | "imported") {
            let ended: Option<TurnEnded> = record.decode().ok().filter(|_| record.kind == "turn_ended");
            return self.end_turn(at, ended.map(|ended| ended.outcome));
        }
        let Ok(fact) = SessionRecord::decode(record) else { return false };
        match fact {
            SessionRecord::AttemptStarted(started) => {
                self.end(SpanId::Retry, at, SpanOutcome::Ok);
                self.interrupt(SpanKind::Model, at);
                self.start(SpanId::Attempt(started.attempt), SpanKind::Model, &started.model, (seq, at));
            }
            SessionRecord::AttemptEnded(ended) => {
                let outcome = if ended.error.is_some() { SpanOutcome::Failed } else { SpanOutcome::Ok };
                self.end(SpanId::Attempt(ended.attempt), at, outcome);
                if let Some(error) = &ended.error {
                    self.start(SpanId::Retry, SpanKind::Retry, error, (seq, at));
                }
            }
            SessionRecord::ToolStarted(started) => {
                self.start(SpanId::Call(started.call), SpanKind::Tool, &started.name, (seq, at));
            }
            SessionRecord::ToolFinished(finished) => {
                let outcome = if finished.is_error { SpanOutcome::Failed } else { SpanOutcome::Ok };
                self.end(SpanId::Call(finished.call), at, outcome);
            }
            SessionRecord::Question(question) => {
                let kind = serde_json::to_value(question.kind).unwrap_or_default();
                let name = kind.as_str().unwrap_or_default();
                self.start(SpanId::Question(question.id), SpanKind::Question, name, (seq, at));
            }
            SessionRecord::Answered(answered) => {
                let outcome = match answered.by {
                    Some(AnsweredBy::Runtime) => SpanOutcome::Withdrawn,
                    Some(AnsweredBy::User | AnsweredBy::Agent) | None => SpanOutcome::Ok,
                };
                self.end(SpanId::Question(answered.id), at, outcome);
            }
            SessionRecord::CompactStart(start) => {
                self.start(SpanId::Compaction, SpanKind::Compaction, &start.reason, (seq, at));
            }
            SessionRecord::CompactDone(_) => self.end(SpanId::Compaction, at, SpanOutcome::Ok),
            SessionRecord::CompactFailed(_) => self.end(SpanId::Compaction, at, SpanOutcome::Failed),
            _ => {}
        }
        false
    }

    fn start(&mut self, id: SpanId, kind: SpanKind, name: &str, (seq, started_at): (Seq, At)) {
        let name = truncate(name, MAX_NAME_CHARS);
        self.spans.push(RecordedSpan { id, kind, name, seq, started_at, end: None });
    }

    fn end(&mut self, id: SpanId, at: At, outcome: SpanOutcome) {
        if let Some(span) = self.spans.iter_mut().rev().find(|span| span.id == id && span.end.is_none()) {
            span.end = Some((at, outcome));
        }
    }

    fn interrupt(&mut self, kind: SpanKind, at: At) {
        let open = self.spans.iter_mut().filter(|span| span.kind == kind && span.end.is_none());
        open.for_each(|span| span.end = Some((at, SpanOutcome::Interrupted)));
    }

    fn end_turn(&mut self, at: At, outcome: Option<Outcome>) -> bool {
        // What failed last was not tried again.
        self.spans.retain(|span| span.id != SpanId::Retry || span.end.is_some());
        for span in self.spans.iter_mut().filter(|span| span.end.is_none()) {
            span.end = Some((at, SpanOutcome::Interrupted));
        }
        self.end = Some((at, outcome));
        true
    }

    fn finish(mut self, now: At) -> TurnTimeline {
        // A clock that was set back makes no time negative.
        let until = At(self.end.map_or(now, |(at, _)| at).0.max(self.started_at.0));
        let waits = self.waits(until);
        self.spans.extend(waits);
        self.spans.sort_by_key(|span| (span.started_at, span.seq));
        let totals = self.totals(until);
        let left_out = self.spans.len().saturating_sub(MAX_SPANS);
        self.spans.truncate(MAX_SPANS);
        TurnTimeline {
            turn: self.turn,
            seq: self.seq,
            started_at: self.started_at.to_string(),
            ended_at: self.end.map(|(at, _)| at.to_string()),
            outcome: self.end.and_then(|(_, outcome)| outcome),
            took_ms: milliseconds(self.started_at, until),
            spans: self.spans.into_iter().map(shown_span).collect(),
            left_out,
            totals,
        }
    }

    /// The gaps between spans.
    fn waits(&self, until: At) -> Vec<RecordedSpan> {
        let mut busy: Vec<(At, At, Seq)> = self
            .spans
            .iter()
            .map(|span| (span.started_at, span.end.map_or(until, |(at, _)| at), span.seq))
            .collect();
        busy.sort_unstable();
        let mut waits = Vec::new();
        let (mut covered, mut seq) = (self.started_at, self.seq);
        for (from, to, next) in busy.into_iter().chain([(until, until, self.seq)]) {
            if from.0.saturating_sub(covered.0) >= MIN_WAIT_MS {
                let is_open = from == until && self.end.is_none();
                let end = (!is_open).then_some((from, SpanOutcome::Ok));
                let (id, kind, name) = (SpanId::None, SpanKind::Wait, String::new());
                waits.push(RecordedSpan { id, kind, name, seq, started_at: covered, end });
            }
            if to > covered {
                (covered, seq) = (to, next);
            }
        }
        waits
    }

    fn totals(&self, until: At) -> Vec<KindTotal> {
        let kinds = [
            SpanKind::Model,
            SpanKind::Tool,
            SpanKind::Wait,
            SpanKind::Retry,
            SpanKind::Question,
            SpanKind::Compaction,
        ];
        let total = |kind| {
            // They are in the order of their starts.
            let (mut spans, mut ms, mut covered) = (0, 0, At(i64::MIN));
            for span in self.spans.iter().filter(|span| span.kind == kind) {
                let end = span.end.map_or(until, |(at, _)| at);
                ms += milliseconds(span.started_at.max(covered), end);
                covered = covered.max(end);
                spans += 1;
            }
            KindTotal { kind, spans, ms }
        };
        kinds.map(total).into_iter().collect()
    }
}

fn shown_span(span: RecordedSpan) -> TimelineSpan {
    TimelineSpan {
        kind: span.kind,
        name: span.name,
        seq: span.seq,
        started_at: span.started_at.to_string(),
        ended_at: span.end.map(|(at, _)| at.to_string()),
        outcome: span.end.map(|(_, outcome)| outcome),
    }
}

fn milliseconds(from: At, to: At) -> u64 {
    u64::try_from(to.0.saturating_sub(from.0)).unwrap_or(0)
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
