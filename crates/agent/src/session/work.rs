//! What a session has to do. Waking, idle work, retention, `resume` and every list ask here, so that they can't disagree.

use longhaul_protocol::Seq;

use crate::config::Wake;
use crate::session::state::State;

/// What a session has to do, by its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// A turn is open.
    pub turn: bool,
    /// An input was accepted and has not had its turn, an order was accepted and not taken, or a turn was asked for without an input.
    pub input: bool,
    /// A compaction was asked for, or was left open by a crash.
    pub compaction: bool,
    /// A task has ended, the model has not been told, and by policy that begins a turn.
    pub task_end: bool,
    /// A task has ended and the model has not been told, whatever the policy.
    pub unannounced: bool,
    /// A command runs, as far as is on record.
    pub running_task: bool,
    /// A person is asked something.
    pub question: bool,
}

impl Work {
    /// What the session has to do, given the head of its inbox and the policy for ends of tasks.
    pub fn of(state: &State, inbox_head: Seq, wake: Wake) -> Self {
        Self {
            turn: state.turn.is_some(),
            input: state.inbox_through < inbox_head
                || !state.pending_inputs.is_empty()
                || state.turn_request.is_some(),
            compaction: state.compaction.open_reason.is_some() || state.compaction.requested.is_some(),
            task_end: state.tasks.should_wake(wake),
            unannounced: state.tasks.unannounced_ends().next().is_some(),
            running_task: state.tasks.running().next().is_some(),
            question: !state.questions.is_empty(),
        }
    }

    /// The same, where everything in the inbox is taken.
    pub(crate) fn of_taken(state: &State, wake: Wake) -> Self {
        Self::of(state, state.inbox_through, wake)
    }

    /// Whether a runtime that looks after the session should take it now.
    pub fn is_due(self) -> bool {
        self.turn || self.input || self.compaction || self.task_end
    }

    /// Whether a person has something to go on with: a turn, or what waits for one.
    pub fn is_unfinished(self) -> bool {
        self.turn || self.input
    }

    /// Whether something would be lost if the session were put away.
    pub fn is_in_use(self) -> bool {
        self.is_due() || self.unannounced || self.running_task || self.question
    }
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
