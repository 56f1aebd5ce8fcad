//! `decide(state, policy)`: what to do next. No clock, no disk, no network.
//!
//! Whoever acts carries an action to its end before asking again. So an attempt or a call that is open *here* was left open by
//! a runtime that is gone.

use longhaul_model::FailureClass;
use longhaul_protocol::{CallId, Hash, Limit, Outcome, QuestionId};

use crate::Wake;
use crate::compaction::plan::{Moment, Relief, Space, Trigger};
use crate::session::state::{CallState, State, Turn};

/// What the decisions depend on besides the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// The system prompt that a new turn would have.
    pub system: Hash,
    /// The tools' schemas that a new turn would have.
    pub tools: Hash,
    /// The tools that only look, which may run side by side.
    pub reads: Vec<String>,
    /// What a turn may use.
    pub limits: Limits,
    /// What the model has room for.
    pub space: Space,
    /// Which ends of tasks begin a turn by themselves.
    pub wake: Wake,
    /// Whether more of them are waited for before they do.
    pub is_gathering: bool,
    /// Whether the time of this turn is over.
    pub is_out_of_time: bool,
    /// Why nothing more may be done in this turn: the journal refused to take what happened.
    pub must_end: Option<String>,
}

/// What a turn may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Steps.
    pub steps: u64,
    /// Tokens, sent and received.
    pub tokens: Option<u64>,
    /// Money, in billionths of a US dollar.
    pub cost_nano: Option<u64>,
    /// Money before the day's is used up, if there is a limit for the day.
    pub left_today_nano: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { steps: u64::MAX, tokens: None, cost_nano: None, left_today_nano: None }
    }
}

impl Policy {
    /// Whether nothing new may be begun in this turn.
    pub fn ends_the_turn(&self) -> bool {
        self.is_out_of_time || self.must_end.is_some()
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Nothing, until something comes.
    Rest,
    /// Begin an epoch, because there is none or what a context begins with has changed.
    StartEpoch,
    /// Close a compaction that a crash left open.
    CloseCompaction,
    /// Replace the output of these calls by stubs.
    Stub(Vec<CallId>),
    /// Make the context smaller.
    Compact(Trigger),
    /// Begin a turn that asks nobody: it is cancelled already, or has a limit to end with.
    BeginTurn(u64),
    /// Ask the model, after beginning what has to begin.
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
    /// Run these calls side by side, or find out what became of them.
    RunTools(Vec<CallId>),
    /// Wait for a person's answer, without which these calls can't run.
    AwaitAnswer(QuestionId),
    /// End the turn.
    EndTurn(Ending),
}

/// How a turn ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// The limit that was reached.
    pub limit: Option<Limit>,
    /// What went wrong, or which limit it was and how to go on.
    pub error: Option<String>,
    /// The same, for programs.
    pub code: Option<String>,
    /// The final answer, where it is not what the last answer on record says.
    pub text: Option<String>,
}

impl Ending {
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

/// What to do next.
pub fn decide(state: &State, policy: &Policy) -> Action {
    if state.compaction.open.is_some() {
        return Action::CloseCompaction;
    }
    match &state.turn {
        None if !state.wants_a_turn(policy) => match state.relief(policy, Moment::Rest) {
            Relief::Stub(calls) => Action::Stub(calls),
            Relief::Compact(trigger) => Action::Compact(trigger),
            Relief::Nothing | Relief::Hopeless(_) => Action::Rest,
        },
        None if begins_anew(state, policy) => Action::StartEpoch,
        None => begin(state, policy),
        Some(turn) => decide_in_turn(state, turn, policy),
    }
}

/// A turn is wanted, and none is open.
fn begin(state: &State, policy: &Policy) -> Action {
    let turn = state.turns.saturating_add(1);
    // A turn that begins only to end as cancelled, or with its limit, asks nobody.
    if state.waiting.iter().any(|input| input.cancelled) || policy.limits.left_today_nano == Some(0) {
        return Action::BeginTurn(turn);
    }
    match state.relief(policy, Moment::BeforeTurn) {
        Relief::Nothing => Action::CallModel { turn: Some(turn), step: Some(1) },
        Relief::Stub(calls) => Action::Stub(calls),
        Relief::Compact(trigger) => Action::Compact(trigger),
        // It begins, to end with that.
        Relief::Hopeless(_) => Action::BeginTurn(turn),
    }
}

impl State {
    /// Whether something is there that a turn should begin with.
    pub(crate) fn wants_a_turn(&self, policy: &Policy) -> bool {
        let work = self.own_work(policy.wake);
        work.input || (work.task_end && !policy.is_gathering)
    }
}

fn begins_anew(state: &State, policy: &Policy) -> bool {
    state
        .epoch
        .as_ref()
        .is_none_or(|epoch| epoch.system.hash != policy.system || epoch.tools.hash != policy.tools)
}

fn decide_in_turn(state: &State, turn: &Turn, policy: &Policy) -> Action {
    if let Some(attempt) = &turn.attempt {
        let kept = match (&turn.broken, turn.cancelled) {
            // Nobody can tell which of its calls have run.
            (Some(_), _) => 0,
            (None, true) => attempt.kept_when_cancelled(),
            (None, false) => attempt.kept_when_broken(),
        };
        return Action::CloseAttempt { kept };
    }
    // What started is brought to its end first: what it did must be known before anything else is done.
    let open: Vec<CallId> = turn.calls.iter().filter(|call| call.is_open()).map(|call| call.id).collect();
    if !open.is_empty() {
        return Action::RunTools(open);
    }
    if turn.cancelled {
        return Action::EndTurn(Ending::plain(Outcome::Cancelled));
    }
    if let Some(reason) = policy.must_end.as_ref().or(turn.broken.as_ref()) {
        return Action::EndTurn(Ending::failed(reason.clone()));
    }
    if let Some(reason) = turn.repeats.stuck() {
        let error = format!("{reason}; say what should be done differently to go on");
        return Action::EndTurn(Ending::limit(Limit::Loop, error));
    }
    let has_calls = turn.called || !turn.calls.is_empty();
    let is_done = turn.answered && !has_calls && !turn.goes_on && !state.joins();
    if policy.is_out_of_time && !is_done {
        let error = "the turn reached its limit of time (limits.seconds_per_turn); send anything to go on";
        return Action::EndTurn(Ending::limit(Limit::Time, error));
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
        return Action::EndTurn(Ending::plain(Outcome::Completed));
    }
    if let Some(ending) = is_used_up(turn, policy) {
        return Action::EndTurn(ending);
    }
    let step = (turn.steps == 0 || turn.answered).then(|| turn.steps.saturating_add(1));
    if step.is_some() && turn.steps >= policy.limits.steps {
        let error = format!(
            "the turn reached its limit of {} steps (limits.steps); send anything to go on",
            policy.limits.steps
        );
        return Action::EndTurn(Ending::limit(Limit::Steps, error));
    }
    match state.relief(policy, Moment::WithinTurn) {
        Relief::Nothing => Action::CallModel { turn: None, step },
        Relief::Stub(calls) => Action::Stub(calls),
        Relief::Compact(trigger) => Action::Compact(trigger),
        Relief::Hopeless(error) => {
            let code = Some(FailureClass::TooLong.code().to_owned());
            Action::EndTurn(Ending { code, ..Ending::failed(error) })
        }
    }
}

/// Before the model is asked once more: whether the turn may still spend.
fn is_used_up(turn: &Turn, policy: &Policy) -> Option<Ending> {
    if policy.limits.tokens.is_some_and(|most| turn.tokens >= most) {
        let error = format!(
            "the turn used {} tokens, and limits.tokens_per_turn is reached; send anything to go on",
            turn.tokens
        );
        return Some(Ending::limit(Limit::Tokens, error));
    }
    if policy.limits.cost_nano.is_some_and(|most| turn.cost_nano >= most) {
        #[allow(clippy::cast_precision_loss, reason = "for people")]
        let dollars = turn.cost_nano as f64 / 1e9;
        let error = format!(
            "the turn cost {dollars:.4} US dollars, and limits.cost_per_turn is reached; send anything to go on"
        );
        return Some(Ending::limit(Limit::Cost, error));
    }
    if policy.limits.left_today_nano.is_some_and(|left| turn.cost_nano >= left) {
        let error = "all sessions together have cost what limits.cost_per_day allows; \
                     raise it, or send anything tomorrow (UTC) to go on";
        return Some(Ending::limit(Limit::Cost, error));
    }
    None
}

/// Calls that only look run side by side, up to the first that does more; the rest run one by one, in order.
fn next_calls(calls: &[CallState], policy: &Policy) -> Vec<CallId> {
    let mut waiting = calls.iter().filter(|call| call.result.is_none());
    let reads = |call: &&CallState| policy.reads.contains(&call.name);
    let Some(first) = waiting.next() else { return vec![] };
    let mut next = vec![first.id];
    if reads(&first) {
        next.extend(waiting.take_while(reads).map(|call| call.id));
    }
    next
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
