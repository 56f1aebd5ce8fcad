//! Compaction: making the context of a session smaller.
//!
//! `plan` decides whether and how. `summarise` lets a model write the summary. `draft` composes the new epoch, from
//! that summary or by rule. This module carries out the compaction and records it.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | `compact_start`, while the summary is written | that it began | `compact_failed`, interrupted; the context is as it was, and it is tried again if it is still needed |
//! | `epoch_started`, the two `system_message`s and `compact_done`: one append | the new epoch, with everything that outlives the old one | the turn continues in it, or the session rests |
//! | `compact_failed` | that it failed, and how large the context was | the turn continues as it would have |
//! | `epoch_started` and `stubbed`: one append | the same context with stubs | the same |
//!
//! Never: half an epoch; an input or a result that is in neither the old nor the new context; a pair of events that
//! stays open; work that begins because the context was made smaller.

mod draft;
pub(crate) mod plan;
mod summarise;

use std::sync::Arc;

use draft::{CompactionGoal, EpochDraft, EpochDrafter, PrefaceTexts};
use longhaul_context::WrittenSummary;
use longhaul_protocol::{CallId, CompactFailed, CompactStart, EpochReason, Seq, SessionRecord, Stubbed};
use summarise::{SummaryOutcome, summarise};

use crate::Error;
use crate::compaction::plan::{CompactionChoice, CompactionTrigger, ContextLimits, SizeCheck};
use crate::memory::memory_for_context;
use crate::runtime::RuntimeShared;
use crate::runtime::slot::SessionSlot;
use crate::session::apply::has_news_to_compact;
use crate::session::decide::Policy;
use crate::session::state::State;
use crate::skills::{active_skill_texts, skill_preface};
use crate::turn::epoch::epoch_records;
use crate::turn::fallback::max_answer_tokens;
use crate::turn::request::known_window;
use crate::worker::toolset::Toolset;
use crate::worker::{Worker, WorkerResult, WorkerStop, is_record_refused};

/// The reason that is recorded for a compaction which a crash left open.
const INTERRUPTED: &str = "interrupted";
const CANCELLED: &str = "cancelled";
const SUSPENDED: &str = "suspended";
const OUT_OF_TIME: &str = "the turn ran out of time";
const NOT_SAVED: &str = "the result could not be saved";
/// The reason that is recorded when an input ends the compaction of an idle session.
const INPUT_FIRST: &str = "a new message arrived";

/// Compacts the context. The result is recorded when this returns.
pub(crate) async fn compact(worker: &mut Worker, trigger: CompactionTrigger) -> WorkerResult<()> {
    worker.reload_state().await;
    worker.reload_toolset_between_turns().await?;
    let covered = worker.state().head;
    let focus = worker.state().compaction.requested.as_ref().and_then(|asked| asked.focus.clone());
    let start = CompactStart { reason: trigger.word().to_owned(), focus: focus.clone() };
    worker.commit(vec![SessionRecord::CompactStart(start)], vec![]).await?;

    let (mut after, mut usages) = (Vec::new(), Vec::new());
    let has_summaries = worker.policy().context.has_summaries;
    let summary = if has_summaries {
        summarise(worker, trigger, focus.as_deref(), &mut usages, &mut after).await?
    } else {
        SummaryOutcome::NotWanted
    };
    after.extend(usages.into_iter().map(SessionRecord::Usage));
    let was_needed = is_needed(worker.state(), &worker.policy().context, trigger);
    let memory = memory_for_context(worker).await;
    let skills = skill_preface(worker).await;
    let active_skills = active_skill_texts(worker).await;
    let preface = PrefaceTexts {
        memory: memory.as_deref(),
        skill_list: skills.list.as_deref(),
        active_skills: &active_skills,
    };
    let drafter = epoch_drafter(worker, trigger, covered, preface);
    let draft = match summary {
        SummaryOutcome::Written(written) => drafter.draft_with_summary(*written),
        SummaryOutcome::Failed(reason) => Err(reason),
        SummaryOutcome::NotWanted => Err(String::new()),
        SummaryOutcome::Stopped => {
            let reason = stop_reason(worker, trigger);
            return record_compact_failed(worker, stopped(reason), after).await;
        }
        SummaryOutcome::Suspended => {
            record_compact_failed(worker, stopped(SUSPENDED), after).await?;
            return Err(WorkerStop::Suspended);
        }
    };
    // If the context must shrink, it is cut by rule. Otherwise it stays unchanged.
    let draft = match draft {
        Err(reason) if was_needed || !has_summaries => drafter
            .draft_by_rule()
            .map_err(|error| if reason.is_empty() { error } else { format!("{reason}; {error}") }),
        draft => draft,
    };
    let reason = match draft {
        Ok(draft) => match switch_epoch(worker, draft, after.clone()).await {
            Err(WorkerStop::Failed(error)) if is_record_refused(&error) => error.to_string(),
            switched => return switched,
        },
        Err(reason) => reason,
    };
    let state = worker.state();
    let tokens = Some(plan::next_prompt_tokens(state, &worker.policy().context));
    record_compact_failed(worker, CompactFailed { reason, tokens, was_needed }, after).await
}

/// Why a compaction stopped before its end.
fn stop_reason(worker: &Worker, trigger: CompactionTrigger) -> &'static str {
    match trigger {
        CompactionTrigger::Idle => INPUT_FIRST,
        _ if worker.policy().is_out_of_time => OUT_OF_TIME,
        _ if worker.policy().forced_end.is_some() => NOT_SAVED,
        _ => CANCELLED,
    }
}

fn epoch_drafter<'a>(
    worker: &'a Worker,
    trigger: CompactionTrigger,
    covered: Seq,
    preface: PrefaceTexts<'a>,
) -> EpochDrafter<'a> {
    let (state, space) = (worker.state(), &worker.policy().context);
    let (system, tools, environment) = match &state.epoch {
        // A turn continues with the system prompt and tools that it began with.
        Some(epoch) if state.turn.is_some() => {
            (epoch.system.clone(), epoch.tools.clone(), state.environment.clone())
        }
        _ => {
            let (system, tools) = worker.toolset().references();
            (system, tools, Some(Box::new(worker.toolset().environment().clone())))
        }
    };
    let keep = worker.runtime().config.settings.context.keep_tokens;
    let goal = CompactionGoal::new(trigger, is_needed(state, space, trigger));
    EpochDrafter { state, space, system, tools, environment, covered, keep, goal, preface }
}

/// Records the new epoch, in one append.
async fn switch_epoch(worker: &mut Worker, draft: EpochDraft, after: Vec<SessionRecord>) -> WorkerResult<()> {
    let blobs = worker.toolset().blobs([&draft.epoch.system, &draft.epoch.tools]);
    let mut records = draft.into_records();
    records.extend(after);
    worker.commit(records, blobs).await?;
    worker.slot().report_idle_work(&Ok(true));
    Ok(())
}

async fn record_compact_failed(
    worker: &mut Worker,
    failed: CompactFailed,
    after: Vec<SessionRecord>,
) -> WorkerResult<()> {
    let result = match failed.tokens {
        Some(_) => Err(Error::NotCompacted { reason: failed.reason.clone() }.into()),
        None => Ok(false),
    };
    let mut records = vec![SessionRecord::CompactFailed(failed)];
    records.extend(after);
    worker.commit(records, vec![]).await?;
    worker.slot().report_idle_work(&result);
    Ok(())
}

/// Closes a compaction that a crash left open.
pub(crate) async fn close_compaction(worker: &mut Worker) -> WorkerResult<()> {
    record_compact_failed(worker, stopped(INTERRUPTED), vec![]).await
}

/// Replaces the output of old calls by stubs.
pub(crate) async fn stub_tool_output(worker: &mut Worker, calls: Vec<CallId>) -> WorkerResult<()> {
    shorten_context(worker, EpochReason::Stubbed, Some(SessionRecord::Stubbed(Stubbed { calls }))).await
}

/// Drops the heartbeats that found nothing to do: every epoch that goes on with the context does.
pub(crate) async fn drop_quiet_turns(worker: &mut Worker) -> WorkerResult<()> {
    shorten_context(worker, EpochReason::QuietDropped, None).await
}

/// Begins an epoch with a shorter context. This needs no model call.
async fn shorten_context(
    worker: &mut Worker,
    reason: EpochReason,
    after: Option<SessionRecord>,
) -> WorkerResult<()> {
    worker.reload_toolset_between_turns().await?;
    let (mut records, mut blobs) = epoch_records(worker, reason);
    let state = worker.state();
    if state.turn.is_some()
        && let (Some(SessionRecord::EpochStarted(started)), Some(epoch)) = (records.last_mut(), &state.epoch)
    {
        // A turn continues with the system prompt and tools that it began with.
        (started.system, started.tools) = (epoch.system.clone(), epoch.tools.clone());
        started.environment.clone_from(&state.environment);
        blobs = vec![];
    }
    records.extend(after);
    worker.commit(records, blobs).await?;
    worker.slot().report_idle_work(&Ok(true));
    Ok(())
}

/// The records that the worker would append for a compaction: with a written summary, or by rule. The error says why
/// there are none.
///
/// Pure, for tests and for programs that carry out decisions themselves.
pub fn plan_compaction(
    state: &State,
    space: &ContextLimits,
    trigger: CompactionTrigger,
    written: Option<WrittenSummary>,
    keep: u64,
) -> Result<Vec<SessionRecord>, String> {
    let epoch = state.epoch.as_ref().ok_or("the session has no context")?;
    // The compaction does not cover the record `compact_start`.
    let covered = state.head - u64::from(state.compaction.open_reason.is_some());
    let goal = CompactionGoal::new(trigger, is_needed(state, space, trigger));
    let (system, tools, environment) = (epoch.system.clone(), epoch.tools.clone(), state.environment.clone());
    let drafter = EpochDrafter {
        state,
        space,
        system,
        tools,
        environment,
        covered,
        keep,
        goal,
        preface: PrefaceTexts::default(),
    };
    let draft = match written {
        Some(written) => drafter.draft_with_summary(written),
        None => drafter.draft_by_rule(),
    };
    draft.map(EpochDraft::into_records)
}

/// Whether the context has something new, but is so short that no summary could make it smaller: what every compacted context begins
/// with is longer.
pub fn is_too_short_to_compact(state: &State) -> bool {
    let Some(epoch) = &state.epoch else { return false };
    let (system, tools, environment) = (epoch.system.clone(), epoch.tools.clone(), state.environment.clone());
    let (space, covered, goal) = (&ContextLimits::default(), state.head, CompactionGoal::Fits);
    let drafter = EpochDrafter {
        state,
        space,
        system,
        tools,
        environment,
        covered,
        keep: 0,
        goal,
        preface: PrefaceTexts::default(),
    };
    has_news_to_compact(state) && !drafter.can_shrink()
}

/// Whether the next request would not fit, or was refused as too long.
fn is_needed(state: &State, space: &ContextLimits, trigger: CompactionTrigger) -> bool {
    let is_too_large = space.room.is_some_and(|room| plan::next_prompt_tokens(state, space) > room.usable());
    match trigger {
        CompactionTrigger::Overflow => true,
        CompactionTrigger::BeforeTurn | CompactionTrigger::WithinTurn => is_too_large,
        CompactionTrigger::Requested => is_too_large && state.turn.is_some(),
        CompactionTrigger::Idle => false,
    }
}

/// A job of the scheduler: compacts the context of an idle session if that is due, so that the next turn does not
/// have to wait for it. Returns whether it did.
pub(crate) async fn compact_if_idle(
    runtime: &Arc<RuntimeShared>,
    slot: &Arc<SessionSlot>,
    state: &State,
) -> WorkerResult<bool> {
    // The session's worker takes its lease for this, and its inbox. Only a hosting runtime may do that to a session that no client
    // has opened here.
    let was_opened_here = slot.id.get().is_some_and(|id| runtime.activity.was_used_here(*id));
    if !was_opened_here && !runtime.is_hosting() {
        return Ok(false);
    }
    let model = runtime.model_chain_of(&slot.key).primary();
    // The size of the context is known only for the last model that was called.
    if state.model.as_deref() != Some(model.name()) || state.turn.is_some() {
        return Ok(false);
    }
    let (capabilities, settings) = (model.capabilities().await, &runtime.config.settings);
    let window = known_window(&capabilities, &settings.model);
    let answer = max_answer_tokens(settings.model.max_output_tokens, &capabilities, window);
    let toolset = Toolset::new(runtime, state, model.name(), None);
    let fixed = toolset.fixed_tokens(&capabilities);
    let space = ContextLimits::new(state, model.name(), window, answer, fixed, &settings.context);
    let policy = Policy { context: ContextLimits { is_idle: true, ..space }, ..toolset.policy(runtime) };
    match plan::choose_compaction(state, &policy, SizeCheck::AtRest) {
        CompactionChoice::Nothing | CompactionChoice::Impossible(_) => Ok(false),
        CompactionChoice::DropQuietTurns | CompactionChoice::Stub(_) | CompactionChoice::Compact(_) => {
            slot.run_idle_work(runtime).await
        }
    }
}

/// A compaction that was stopped. It does not count as a failure.
fn stopped(reason: &str) -> CompactFailed {
    CompactFailed { reason: reason.to_owned(), tokens: None, was_needed: false }
}
