//! Prompts that wait for the end of their turn. The answer to a prompt comes after everything that its turn showed.

use longhaul_protocol::{InputId, Limit, Outcome, QuestionId, Seq};
use longhaul_transcript::{TurnEnd, turn_failure_text};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::wire::reply::StopReason;

/// What a prompt waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwaitedEnd {
    /// The model gets this input. `seq` is the record that took it.
    Input { input: InputId, seq: Option<Seq> },
    /// The end of this turn.
    Turn(u64),
    /// The answer to this question about a plan.
    Plan(QuestionId),
    /// The input with which an accepted plan is carried out.
    PlanInput,
    /// The end of a slash command.
    Slash,
}

/// The prompts that are not answered yet.
#[derive(Debug, Default)]
pub(super) struct PendingPrompts(Vec<(Value, AwaitedEnd)>);

impl PendingPrompts {
    pub(super) fn push(&mut self, id: Value, awaited: AwaitedEnd) {
        self.0.push((id, awaited));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn contains(&self, id: &Value) -> bool {
        self.0.iter().any(|(prompt, _)| prompt == id)
    }

    /// Notes which record took an input. False if no prompt waits for it.
    pub(super) fn take_input(&mut self, taken: InputId, at: Seq) -> bool {
        let mut is_awaited = false;
        for (_, awaited) in &mut self.0 {
            let is_its = match awaited {
                AwaitedEnd::Input { input, .. } => *input == taken,
                AwaitedEnd::PlanInput => true,
                _ => false,
            };
            if is_its {
                *awaited = AwaitedEnd::Input { input: taken, seq: Some(at) };
                is_awaited = true;
            }
        }
        is_awaited
    }

    /// Notes in which turn the model gets an input. False if no prompt waits for it.
    pub(super) fn begin_turn(&mut self, taken_at: Seq, turn: Option<u64>) -> bool {
        let mut is_awaited = false;
        for (_, awaited) in &mut self.0 {
            if let AwaitedEnd::Input { seq: Some(seq), .. } = awaited
                && *seq == taken_at
            {
                // An input without a turn ends with the turn that follows.
                *awaited = AwaitedEnd::Turn(turn.unwrap_or_default());
                is_awaited = true;
            }
        }
        is_awaited
    }

    /// Removes the prompts whose input this record took.
    pub(super) fn take_of_input(&mut self, taken_at: Seq) -> Vec<Value> {
        self.take(|awaited| matches!(awaited, AwaitedEnd::Input { seq: Some(seq), .. } if seq == taken_at))
    }

    /// Removes the prompts of a turn.
    pub(super) fn take_of_turn(&mut self, turn: Option<u64>) -> Vec<Value> {
        let turn = turn.unwrap_or_default();
        self.take(|awaited| awaited == AwaitedEnd::Turn(turn))
    }

    /// Removes the prompts whose input was withdrawn.
    pub(super) fn withdraw(&mut self, withdrawn: InputId) -> Vec<Value> {
        self.take(|awaited| matches!(awaited, AwaitedEnd::Input { input, .. } if input == withdrawn))
    }

    /// Removes the prompts that wait for a plan or a slash command, not for a turn.
    pub(super) fn take_without_turn(&mut self) -> Vec<Value> {
        self.take(|awaited| matches!(awaited, AwaitedEnd::Plan(_) | AwaitedEnd::Slash))
    }

    /// Removes the prompts that wait for the answer to this question about a plan.
    pub(super) fn take_of_plan(&mut self, plan: QuestionId) -> Vec<Value> {
        self.take(|awaited| awaited == AwaitedEnd::Plan(plan))
    }

    /// Removes the prompt with this id that waits for a slash command. False if it was answered.
    pub(super) fn remove_command(&mut self, id: &Value) -> bool {
        let is_its = |(prompt, awaited): &(Value, AwaitedEnd)| prompt == id && *awaited == AwaitedEnd::Slash;
        // An editor may use an id twice, also that of a prompt that waits for its turn.
        let place = self.0.iter().position(is_its);
        place.map(|place| self.0.remove(place)).is_some()
    }

    /// Removes all prompts.
    pub(super) fn take_all(&mut self) -> Vec<Value> {
        self.take(|_| true)
    }

    fn take(&mut self, is_wanted: impl Fn(AwaitedEnd) -> bool) -> Vec<Value> {
        self.0.extract_if(.., |(_, awaited)| is_wanted(*awaited)).map(|(id, _)| id).collect()
    }
}

/// The answer to a prompt whose turn ended like this.
pub(super) fn answer_of(end: &TurnEnd) -> Result<Value> {
    stop_reason(end).map(StopReason::reply).ok_or_else(|| failure_of(end))
}

/// The error of a turn that failed.
pub(super) fn failure_of(end: &TurnEnd) -> Error {
    let text = turn_failure_text(end.outcome, end.error.as_deref()).unwrap_or_default();
    Error::TurnFailed(format!("{text}; to try again: /retry"))
}

/// Why a turn ended. `None` if it failed.
pub(super) fn stop_reason(end: &TurnEnd) -> Option<StopReason> {
    match (end.outcome, end.limit) {
        (Outcome::Completed, _) => Some(StopReason::EndTurn),
        (Outcome::Cancelled, _) => Some(StopReason::Cancelled),
        (Outcome::Limit, Some(Limit::Tokens)) => Some(StopReason::MaxTokens),
        (Outcome::Limit, _) => Some(StopReason::MaxTurnRequests),
        (Outcome::Failed, _) => None,
    }
}
