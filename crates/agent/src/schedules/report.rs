//! A schedule as people and programs see it.

use longhaul_journal::Journal;
use longhaul_protocol::{At, LastRun, RunOutcome, ScheduleAuthor, ScheduleSpec};
use longhaul_schedule::{Slots, Timing};
use schemars::JsonSchema;
use serde::Serialize;

use super::catalog::{CatalogEntry, ScheduleSource};
use super::state::ScheduleState;
use super::work::{begins_at, has_begun};
use crate::Result;
use crate::client::questions::open_questions;
use crate::replay::load;

/// A schedule, with what it is doing.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ScheduleReport {
    /// The id, which is in the names of its stream and its inputs.
    pub id: String,
    /// The schedule as it was written.
    #[serde(flatten)]
    pub spec: ScheduleSpec,
    /// Who made it: `config`, `person` or `agent`.
    pub source: String,
    /// What it is doing.
    pub status: ScheduleStatus,
    /// Whether it waits to be resumed. A run that began before the pause goes on.
    pub paused: bool,
    /// When it runs next, in RFC 3339. In the past if no process runs schedules, or while an earlier run goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Seconds since the next run was due, if it is more than a minute late and no run or pause explains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_s: Option<u64>,
    /// The key of the session in which a run goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// The question of that run, if it waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The last run that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<LastRunReport>,
    /// Failed runs since the last one that succeeded.
    pub failures: u32,
    /// Why it is paused or can't run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a schedule is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ScheduleStatus {
    /// It waits for its next slot.
    Waiting,
    /// A run goes on.
    Running,
    /// A run waits for the answer to a question. Unless `overlap` is `interrupt`, nothing else fires until then.
    Asking,
    /// It was paused, by a person or after failures.
    Paused,
    /// It is turned off in the config.
    Disabled,
    /// Its only time has passed.
    Done,
    /// Its settings are wrong, so it can't run.
    Invalid,
}

impl ScheduleStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Asking => "asking",
            Self::Paused => "paused",
            Self::Disabled => "disabled",
            Self::Done => "done",
            Self::Invalid => "invalid",
        }
    }
}

/// A run that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LastRunReport {
    /// The slot, in RFC 3339.
    pub slot: String,
    /// The key of its session, or its id if the session was deleted.
    pub session: String,
    /// How the turn ended.
    pub outcome: RunOutcome,
    /// US dollars; absent if a price is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Why it did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How late a slot is before the scheduler counts as late.
const LATE_AFTER_MS: i64 = 60_000;

/// Describes a schedule at this moment.
pub(super) async fn describe(
    journal: &dyn Journal,
    entry: CatalogEntry,
    state: &ScheduleState,
    now: At,
) -> Result<ScheduleReport> {
    let from = match &state.began {
        Some(began) if has_begun(&entry, state) => began.from,
        // No runtime has begun it with its present terms.
        _ => begins_at(&entry, state).unwrap_or(now),
    };
    let through = if has_begun(&entry, state) { state.through } else { from };
    let timing = Timing::parse(&entry.id, &entry.spec, from);
    let due = timing.as_ref().ok().and_then(|timing| timing.next_due(through));
    let reason = entry
        .problem
        .clone()
        .or_else(|| timing.as_ref().err().map(ToString::to_string))
        .or_else(|| entry.pause.as_ref().and_then(|pause| pause.reason.clone()))
        .or_else(|| past_time(&timing, state, due));
    let question = open_question(journal, state).await?;
    let status = match () {
        () if entry.problem.is_some() || timing.is_err() => ScheduleStatus::Invalid,
        () if question.is_some() => ScheduleStatus::Asking,
        () if state.is_running() => ScheduleStatus::Running,
        () if entry.pause.is_some() => ScheduleStatus::Paused,
        () if !entry.spec.enabled => ScheduleStatus::Disabled,
        () if due.is_none() => ScheduleStatus::Done,
        () => ScheduleStatus::Waiting,
    };
    let is_active =
        matches!(status, ScheduleStatus::Waiting | ScheduleStatus::Running | ScheduleStatus::Asking);
    let next = due.filter(|_| is_active);
    let late = next.map(|next| now.0 - next.0).filter(|late| *late > LATE_AFTER_MS);
    let running = match state.runs.last() {
        Some(run) => Some(session_name(journal, run.session).await?),
        None => None,
    };
    let last = match &state.last {
        Some(last) => Some(describe_last(journal, last).await?),
        None => None,
    };
    Ok(ScheduleReport {
        paused: entry.pause.is_some(),
        id: entry.id,
        source: source_name(&entry.source).to_owned(),
        spec: entry.spec,
        status,
        next: next.map(|next| next.to_string()),
        late_s: late.filter(|_| status == ScheduleStatus::Waiting).map(|late| late.unsigned_abs() / 1_000),
        running,
        question,
        last,
        failures: state.failures,
        reason,
    })
}

/// The question of an open run. A subagent's question is open in its parent's session, too.
async fn open_question(journal: &dyn Journal, state: &ScheduleState) -> Result<Option<String>> {
    for run in state.runs.iter().filter(|run| run.fired.is_some()) {
        let Some(entry) = journal.session_with_id(run.session).await?.filter(|entry| !entry.trashed) else {
            continue;
        };
        let session = load(journal, &entry.key, entry.id).await?;
        if let Some(question) = open_questions(journal, entry.id, &session).await?.into_iter().next() {
            return Ok(Some(question.text));
        }
    }
    Ok(None)
}

/// Why a schedule with one time never fired.
fn past_time(
    timing: &std::result::Result<Timing, longhaul_schedule::Error>,
    state: &ScheduleState,
    due: Option<At>,
) -> Option<String> {
    let Ok(Timing { slots: Slots::Once { at }, .. }) = timing else { return None };
    let has_never_run = due.is_none() && state.last.is_none() && state.last_decision.is_none();
    has_never_run.then(|| format!("{at} was in the past when the schedule was first seen; it never fired"))
}

fn source_name(source: &ScheduleSource) -> &'static str {
    match source {
        ScheduleSource::Config => "config",
        ScheduleSource::Added(ScheduleAuthor::Person) => "person",
        ScheduleSource::Added(ScheduleAuthor::Agent { .. }) => "agent",
    }
}

async fn describe_last(journal: &dyn Journal, last: &LastRun) -> Result<LastRunReport> {
    Ok(LastRunReport {
        slot: last.slot.to_string(),
        session: session_name(journal, last.session).await?,
        outcome: last.outcome,
        cost: last.cost,
        error: last.error.clone(),
    })
}

async fn session_name(journal: &dyn Journal, id: longhaul_protocol::SessionId) -> Result<String> {
    let entry = journal.session_with_id(id).await?;
    Ok(entry.map_or_else(|| id.to_string(), |entry| entry.key))
}
