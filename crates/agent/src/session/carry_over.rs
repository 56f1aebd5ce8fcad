//! What a new epoch takes over from the previous state, and the state that it begins with.
//!
//! A compaction is one append. A process that loads the session afterwards reads nothing from before it, and the
//! process that compacted applies the same record. Both begin with [`new_epoch_state`], so they can't differ.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use longhaul_context::TokenCalibration;
use longhaul_protocol::{
    Carried, CarriedCounting, CarriedOutput, EpochStarted, FileSeen, Item, OpenTurn, Seq, SessionPermission,
};

use crate::compaction::plan::Compaction;
use crate::session::repeats::RepeatDetector;
use crate::session::state::{Epoch, State, TokenCounting, TruncatedPrompt, Turn, TurnRequest};
use crate::session::tasks::SessionTasks;

/// The most known files that an epoch takes over.
const MAX_KNOWN_FILES: usize = 2_000;
/// The words for [`TurnRequest`].
const RETRY: &str = "retry";
const CONTINUE: &str = "continue";

/// The state that a new epoch takes over, in addition to the fields of its record. `kept` are the items that stay in
/// the context.
pub(crate) fn carry_over<'a>(
    state: &State,
    kept: impl IntoIterator<Item = &'a Item>,
    covered_through: Seq,
) -> Carried {
    let shown: HashSet<_> = kept
        .into_iter()
        .filter_map(|item| match item {
            Item::ToolResult { call, .. } => Some(*call),
            _ => None,
        })
        .collect();
    let mut outputs: Vec<CarriedOutput> = state
        .full_outputs
        .iter()
        .filter(|(call, _)| shown.contains(call))
        .map(|(call, whole)| CarriedOutput { call: *call, whole: whole.clone() })
        .collect();
    outputs.sort_by_key(|output| output.call);
    Carried {
        turn: state.turn.as_ref().map(carry_turn),
        waiting: state.pending_inputs.clone(),
        added: state.added_context.clone(),
        again: state.turn_request.map(|again| match again {
            TurnRequest::Retry => RETRY.to_owned(),
            TurnRequest::Continue => CONTINUE.to_owned(),
        }),
        last_outcome: state.last_outcome,
        interrupted: state.interrupted_answer.clone(),
        seen: carry_known_files(state),
        changed: state.changed_files.clone(),
        outputs,
        skills: state.active_skills.clone(),
        tasks: state.tasks.carry_knowledge(),
        model: state.model.clone(),
        chosen_model: state.chosen_model.clone(),
        counting: state
            .token_counts
            .iter()
            .map(|(model, known)| (model.clone(), carry_counting(known)))
            .collect(),
        rate_limits: state.rate_limits.clone(),
        warned: state.given_warnings.clone(),
        answers: state.answer_count,
        compactions: state.compaction.count.saturating_add(1),
        since_answer: state.compaction.count_since_answer.saturating_add(1),
        covered_through,
        asked_in: state.request_turn,
        permission: carry_permission(state),
    }
}

/// The permission. The note on plan mode may go with the old context, so the model is told again if the mode is still on.
fn carry_permission(state: &State) -> SessionPermission {
    let permission = state.permission.clone();
    let is_current = permission.announced.is_some() && permission.announced == permission.mode;
    SessionPermission { announced: permission.announced.filter(|_| !is_current), ..permission }
}

/// The file contents that the model knows, by path. If there are too many, the changed files stay, the newest first.
fn carry_known_files(state: &State) -> Vec<FileSeen> {
    let mut seen: Vec<FileSeen> =
        state.known_files.iter().map(|(path, hash)| FileSeen { path: path.clone(), hash: *hash }).collect();
    if seen.len() > MAX_KNOWN_FILES {
        let ages: HashMap<&str, usize> =
            state.changed_files.iter().rev().map(String::as_str).zip(0..).collect();
        let age = |seen: &FileSeen| ages.get(seen.path.as_str()).copied().unwrap_or(usize::MAX);
        seen.sort_by(|one, other| age(one).cmp(&age(other)).then_with(|| one.path.cmp(&other.path)));
        seen.truncate(MAX_KNOWN_FILES);
    }
    seen.sort_by(|one, other| one.path.cmp(&other.path));
    seen
}

/// The state that an epoch begins with if it does not continue the previous context. The `system_message` records
/// after it add the preface before the kept items.
pub(crate) fn new_epoch_state(state: &State, began: Seq, epoch: EpochStarted) -> State {
    let carried = *epoch.carried.unwrap_or_default();
    State {
        head: state.head,
        created: state.created.clone(),
        foreign_through: state.foreign_through,
        environment: epoch.environment.clone(),
        told_environment: epoch.environment,
        epoch: Some(Epoch {
            number: epoch.epoch,
            began,
            folds_from: began,
            system: epoch.system,
            tools: epoch.tools,
        }),
        inbox_through: state.inbox_through.max(epoch.inbox_through),
        turn_count: epoch.turns,
        places: epoch.kept.iter().map(|kept| kept.place).collect(),
        items: epoch.kept.into_iter().map(|kept| Arc::new(kept.item)).collect(),
        preface_len: 0,
        // They are dropped before a compaction begins.
        quiet_turns: vec![],
        summary: epoch.summary.map(|summary| *summary),
        compaction: Compaction {
            count: carried.compactions,
            count_since_answer: carried.since_answer,
            covered_through: carried.covered_through,
            ..Compaction::default()
        },
        answer_count: carried.answers,
        request_turn: carried.asked_in,
        pending_inputs: carried.waiting,
        added_context: carried.added,
        turn: carried.turn.map(restore_turn),
        todo: epoch.todo,
        known_files: Arc::new(carried.seen.into_iter().map(|seen| (seen.path, seen.hash)).collect()),
        changed_files: carried.changed,
        active_skills: carried.skills,
        full_outputs: carried.outputs.into_iter().map(|output| (output.call, output.whole)).collect(),
        pins: epoch.pins,
        tasks: SessionTasks::restore(epoch.tasks, epoch.ended, carried.tasks),
        questions: epoch.questions,
        permission: carried.permission,
        last_outcome: carried.last_outcome,
        interrupted_answer: carried.interrupted,
        turn_request: carried.again.and_then(|again| match again.as_str() {
            RETRY => Some(TurnRequest::Retry),
            CONTINUE => Some(TurnRequest::Continue),
            _ => None,
        }),
        model: carried.model,
        chosen_model: carried.chosen_model,
        token_counts: carried
            .counting
            .into_iter()
            .map(|(model, known)| (model, restore_counting(known)))
            .collect(),
        provider_count: None,
        rate_limits: carried.rate_limits,
        given_warnings: carried.warned,
        client_instructions: None,
    }
}

fn carry_turn(turn: &Turn) -> OpenTurn {
    OpenTurn {
        number: turn.number,
        answers: turn.request_turn,
        steps: turn.steps,
        started_at: turn.started_at,
        awaited_ms: turn.question_wait_ms,
        tokens: turn.tokens,
        cost_nano: turn.cost_nano,
        cause: turn.cause,
        max_cost_nano: turn.max_cost_nano,
        consents: turn.budget_consents.clone(),
        hurried: turn.retry_now_count,
        goes_on: turn.continues_next_step,
        carried: turn.text_before_cut.clone(),
        cuts: turn.length_cuts,
        interrupted: turn.interrupted_answer.clone(),
        answered: turn.answered,
        called: turn.had_calls || !turn.calls.is_empty(),
        text: turn.text.clone(),
        too_long: turn.overflow_count,
        // The refused prompt is gone with the old context.
        refusal: None,
        repeats: turn.repeats.carry_over(),
        max_output: turn.max_output,
    }
}

/// Restores the open turn. Between two steps nothing else is open: no attempt, no call, no question, no cancel.
fn restore_turn(open: OpenTurn) -> Turn {
    Turn {
        number: open.number,
        request_turn: open.answers,
        steps: open.steps,
        started_at: open.started_at,
        question_wait_ms: open.awaited_ms,
        tokens: open.tokens,
        cost_nano: open.cost_nano,
        cause: open.cause,
        max_cost_nano: open.max_cost_nano,
        budget_consents: open.consents,
        retry_now_count: open.hurried,
        continues_next_step: open.goes_on,
        text_before_cut: open.carried,
        length_cuts: open.cuts,
        interrupted_answer: open.interrupted,
        answered: open.answered,
        had_calls: open.called,
        text: open.text,
        overflow_count: open.too_long,
        refusal: open.refusal,
        repeats: RepeatDetector::restore(open.repeats),
        max_output: open.max_output,
        // A step without an answer has no results in the context yet.
        results_in_context: open.answered,
        ..Turn::default()
    }
}

fn carry_counting(counting: &TokenCounting) -> CarriedCounting {
    CarriedCounting {
        samples: counting.calibration.samples().to_vec(),
        cut_at: counting.truncated_prompt.map(|cut| cut.tokens_read),
        cut_window: counting.truncated_prompt.and_then(|cut| cut.window),
        refused_at: counting.refused_at,
    }
}

fn restore_counting(known: CarriedCounting) -> TokenCounting {
    TokenCounting {
        calibration: TokenCalibration::from_samples(known.samples),
        truncated_prompt: known
            .cut_at
            .map(|at| TruncatedPrompt { tokens_read: at, window: known.cut_window }),
        refused_at: known.refused_at,
    }
}

#[cfg(test)]
#[path = "carry_over_tests.rs"]
mod tests;
