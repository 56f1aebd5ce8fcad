//! `decide(state, policy)`: the next action. No clock, no disk, no network.
//!
//! The worker finishes each action before it calls `decide` again. So an attempt or a call that is open here was left
//! open by a process that is gone. To resume after a kill, the worker replays the records and calls `decide`. The
//! pure core needs nothing else for crash recovery.

use longhaul_model::FailureClass;
use longhaul_protocol::{
    CallId, Hash, Limit, Outcome, Question, QuestionId, QuestionKind, current_tool_name,
};

use crate::compaction::plan::{
    CompactionChoice, CompactionTrigger, ContextLimits, SizeCheck, choose_compaction,
};
use crate::config::Wake;
use crate::session::state::{CallState, State, Turn};
use crate::session::work::Work;
use crate::spend::{LimitReached, SoftLimits};

/// The code of a turn that was refused because its work folder was replaced by a link.
const WORK_FOLDER_MOVED: &str = "work_folder_moved";

/// What decisions depend on in addition to the state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The hash of the current system prompt.
    pub system: Hash,
    /// The hash of the schemas of the current tools.
    pub tools: Hash,
    /// Tools whose calls may run in parallel: those without side effects, and the one that starts subagents.
    pub parallel_tools: Vec<String>,
    /// Limits of a turn.
    pub limits: TurnLimits,
    /// Limits of the context.
    pub context: ContextLimits,
    /// Which ends of tasks start a turn.
    pub wake: Wake,
    /// Whether to wait for more ends of tasks before a turn starts, in order to batch them.
    pub is_batching_task_ends: bool,
    /// Whether the turn has passed its deadline.
    pub is_out_of_time: bool,
    /// Why the turn must end: the journal refused a record.
    pub forced_end: Option<String>,
    /// Why no turn may run: the work folder was replaced by a link.
    pub refusal: Option<String>,
}

/// Limits of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnLimits {
    /// The most steps.
    pub steps: u64,
    /// Whether the next model call fits the limits on spending.
    pub budget: BudgetCheck,
}

/// Whether the next model call fits the limits on spending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BudgetCheck {
    /// It fits, as far as this process knows.
    #[default]
    Fits,
    /// It would pass a limit.
    Reached(LimitReached),
    /// It would pass soft limits, and the user has to agree first.
    Ask(SoftLimits),
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self { steps: u64::MAX, budget: BudgetCheck::Fits }
    }
}

impl Policy {
    /// Whether the turn may not start any new work.
    pub fn must_end_turn(&self) -> bool {
        self.is_out_of_time || self.forced_end.is_some()
    }
}

/// What the worker does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Wait until something happens.
    Rest,
    /// Start an epoch: there is none, or the system prompt or the tools have changed.
    StartEpoch,
    /// Close a compaction that a crash left open.
    CloseCompaction,
    /// Drop the heartbeats that found nothing to do from the context.
    DropQuietTurns,
    /// Replace the output of these calls by stubs.
    Stub(Vec<CallId>),
    /// Compact the context.
    Compact(CompactionTrigger),
    /// Begin a turn that calls no model, because it is already cancelled or ends with a limit.
    BeginTurn(u64),
    /// Call the model, after starting the turn and the step.
    CallModel {
        /// The turn to begin.
        turn: Option<u64>,
        /// The step to begin.
        step: Option<u64>,
    },
    /// Close a model call that a crash left open.
    CloseAttempt {
        /// How many of its blocks count.
        kept: usize,
    },
    /// Run these calls in parallel, or find out after a crash what happened to them.
    RunTools(Vec<CallId>),
    /// Ask the user whether the turn may pass soft limits.
    AskBudget(SoftLimits),
    /// Wait for the user's answer to this question.
    AwaitAnswer(QuestionId),
    /// End the turn.
    EndTurn(TurnEnding),
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnding {
    /// The outcome.
    pub outcome: Outcome,
    /// The limit that was reached.
    pub limit: Option<Limit>,
    /// The error, or the limit and how to continue.
    pub error: Option<String>,
    /// A code for programs.
    pub code: Option<String>,
    /// The final answer, if it differs from the last recorded one.
    pub text: Option<String>,
}

impl TurnEnding {
    pub(crate) fn failed(error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::plain(Outcome::Failed) }
    }

    pub(crate) fn limit(limit: Limit, error: impl Into<String>) -> Self {
        Self { limit: Some(limit), error: Some(error.into()), ..Self::plain(Outcome::Limit) }
    }

    fn plain(outcome: Outcome) -> Self {
        Self { outcome, limit: None, error: None, code: None, text: None }
    }
}

/// Decides what the worker does next.
pub fn decide(state: &State, policy: &Policy) -> Action {
    if state.compaction.open_reason.is_some() {
        return Action::CloseCompaction;
    }
    match &state.turn {
        None if !should_start_turn(state, policy) => {
            match choose_compaction(state, policy, SizeCheck::AtRest) {
                CompactionChoice::DropQuietTurns => Action::DropQuietTurns,
                CompactionChoice::Stub(calls) => Action::Stub(calls),
                CompactionChoice::Compact(trigger) => Action::Compact(trigger),
                CompactionChoice::Nothing | CompactionChoice::Impossible(_) => Action::Rest,
            }
        }
        // The turn begins, only to end with that error. The prompt was made without the folder and is not used.
        None if policy.refusal.is_some() && state.epoch.is_some() => {
            Action::BeginTurn(state.turn_count.saturating_add(1))
        }
        None if needs_new_epoch(state, policy) => Action::StartEpoch,
        None => start_turn(state, policy),
        Some(turn) => decide_in_turn(state, turn, policy),
    }
}

fn start_turn(state: &State, policy: &Policy) -> Action {
    let turn = state.turn_count.saturating_add(1);
    // A turn that is cancelled, ends with a limit or asks first calls no model.
    if state.pending_inputs.iter().any(|input| input.cancelled) || policy.limits.budget != BudgetCheck::Fits {
        return Action::BeginTurn(turn);
    }
    match choose_compaction(state, policy, SizeCheck::BeforeTurn) {
        CompactionChoice::Nothing => Action::CallModel { turn: Some(turn), step: Some(1) },
        CompactionChoice::DropQuietTurns => Action::DropQuietTurns,
        CompactionChoice::Stub(calls) => Action::Stub(calls),
        CompactionChoice::Compact(trigger) => Action::Compact(trigger),
        // The turn begins, only to end with that error.
        CompactionChoice::Impossible(_) => Action::BeginTurn(turn),
    }
}

/// Whether a turn should start if none is open.
pub(crate) fn should_start_turn(state: &State, policy: &Policy) -> bool {
    let work = Work::of_taken(state, policy.wake);
    work.input || (work.task_end && !policy.is_batching_task_ends)
}

fn needs_new_epoch(state: &State, policy: &Policy) -> bool {
    state
        .epoch
        .as_ref()
        .is_none_or(|epoch| epoch.system.hash != policy.system || epoch.tools.hash != policy.tools)
}

fn decide_in_turn(state: &State, turn: &Turn, policy: &Policy) -> Action {
    if let Some(attempt) = &turn.attempt {
        let kept = match (&turn.lost_record, turn.cancelled) {
            // It is unknown which of its calls have run.
            (Some(_), _) => 0,
            (None, true) => attempt.blocks_kept_on_cancel(),
            (None, false) => attempt.blocks_kept_on_failure(),
        };
        return Action::CloseAttempt { kept };
    }
    // Started calls are finished first, because their effect must be known before anything else runs.
    let open: Vec<CallId> = turn.calls.iter().filter(|call| call.is_open()).map(|call| call.id).collect();
    if !open.is_empty() {
        // A command that the sandbox refused waits for the user's answer, unless the turn ends.
        let must_end = turn.cancelled || policy.must_end_turn() || turn.lost_record.is_some();
        let question = open.iter().find_map(|call| state.question_about(*call)).filter(|_| !must_end);
        if let Some(question) = question {
            return Action::AwaitAnswer(question.id);
        }
        return Action::RunTools(open);
    }
    if turn.cancelled {
        return Action::EndTurn(TurnEnding::plain(Outcome::Cancelled));
    }
    if let Some(reason) = policy.forced_end.as_ref().or(turn.lost_record.as_ref()) {
        return Action::EndTurn(TurnEnding::failed(reason.clone()));
    }
    if let Some(reason) = &policy.refusal {
        let code = Some(WORK_FOLDER_MOVED.to_owned());
        return Action::EndTurn(TurnEnding { code, ..TurnEnding::failed(reason.clone()) });
    }
    if let Some(reason) = turn.repeats.stuck_reason() {
        let error = format!("{reason}; tell the agent what to do differently");
        return Action::EndTurn(TurnEnding::limit(Limit::Loop, error));
    }
    let has_calls = turn.had_calls || !turn.calls.is_empty();
    let is_done = turn.answered && !has_calls && !turn.continues_next_step && !state.has_joining_inputs();
    if policy.is_out_of_time && !is_done {
        let error = "the turn reached its time limit (limits.seconds_per_turn); send a message to go on";
        return Action::EndTurn(TurnEnding::limit(Limit::Time, error));
    }
    let next = next_calls(&turn.calls, policy);
    if let Some(question) = next.iter().find_map(|call| state.question_about(*call)) {
        return Action::AwaitAnswer(question.id);
    }
    if !next.is_empty() {
        return Action::RunTools(next);
    }
    if state.epoch.is_none() {
        return Action::StartEpoch;
    }
    if is_done {
        return Action::EndTurn(TurnEnding::plain(Outcome::Completed));
    }
    if let Some(action) = check_turn_budget(state, turn, policy) {
        return action;
    }
    let step = (turn.steps == 0 || turn.answered).then(|| turn.steps.saturating_add(1));
    if step.is_some() && turn.steps >= policy.limits.steps {
        let error = format!(
            "the turn reached its limit of {} steps (limits.steps); send a message to go on",
            policy.limits.steps
        );
        return Action::EndTurn(TurnEnding::limit(Limit::Steps, error));
    }
    match choose_compaction(state, policy, SizeCheck::WithinTurn) {
        CompactionChoice::Nothing => Action::CallModel { turn: None, step },
        CompactionChoice::DropQuietTurns => Action::DropQuietTurns,
        CompactionChoice::Stub(calls) => Action::Stub(calls),
        CompactionChoice::Compact(trigger) => Action::Compact(trigger),
        CompactionChoice::Impossible(error) => {
            let code = Some(FailureClass::TooLong.code().to_owned());
            Action::EndTurn(TurnEnding { code, ..TurnEnding::failed(error) })
        }
    }
}

/// What happens instead of the next model call, if the limits on spending don't allow it.
fn check_turn_budget(state: &State, turn: &Turn, policy: &Policy) -> Option<Action> {
    let ending = |LimitReached { limit, text }: LimitReached| Action::EndTurn(TurnEnding::limit(limit, text));
    if !turn.budget_refused.is_empty() {
        return Some(ending(LimitReached::refused(&turn.budget_refused)));
    }
    let is_own_budget =
        |question: &&Question| question.kind == QuestionKind::Budget && question.child.is_none();
    if let Some(question) = state.questions.iter().find(is_own_budget) {
        return Some(Action::AwaitAnswer(question.id));
    }
    match &policy.limits.budget {
        BudgetCheck::Fits => None,
        BudgetCheck::Reached(reached) => Some(ending(reached.clone())),
        BudgetCheck::Ask(soft) => Some(Action::AskBudget(soft.clone())),
    }
}

/// The next calls to run: calls that may run in parallel, up to the first one that may not. The others run one by one, in
/// order.
fn next_calls(calls: &[CallState], policy: &Policy) -> Vec<CallId> {
    let mut waiting = calls.iter().filter(|call| call.result.is_none());
    let is_parallel =
        |call: &&CallState| policy.parallel_tools.iter().any(|name| name == current_tool_name(&call.name));
    let Some(first) = waiting.next() else { return vec![] };
    let mut next = vec![first.id];
    if is_parallel(&first) {
        next.extend(waiting.take_while(is_parallel).map(|call| call.id));
    }
    next
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
