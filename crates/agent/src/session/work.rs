//! The work that a session has. Waking, idle work, retention, `resume` and every list use this, so that they can't
//! disagree.

use longhaul_protocol::{QuestionKind, Seq};

use crate::config::Wake;
use crate::session::state::State;

/// The work that a session has, according to its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// A turn is open.
    pub turn: bool,
    /// An accepted input has not had its turn, an accepted order was not taken, or a turn was requested without an
    /// input.
    pub input: bool,
    /// A compaction was requested, or a crash left one open.
    pub compaction: bool,
    /// A task has ended, the model does not know it, and the policy says that this begins a turn.
    pub task_end: bool,
    /// A task has ended and the model does not know it, whatever the policy says.
    pub unannounced: bool,
    /// A command runs, according to the records.
    pub running_task: bool,
    /// A call waits for a person's answer. A plan that may be accepted is no work.
    pub question: bool,
}

impl Work {
    /// The work of the session, given the head of its inbox and the policy for ends of tasks.
    pub fn of(state: &State, inbox_head: Seq, wake: Wake) -> Self {
        Self {
            turn: state.turn.is_some(),
            input: state.inbox_through < inbox_head
                || !state.pending_inputs.is_empty()
                || state.turn_request.is_some(),
            compaction: state.compaction.open_reason.is_some() || state.compaction.requested.is_some(),
            // A subagent has given its result. Its tasks end with it.
            task_end: state.parent().is_none() && state.tasks.should_wake(wake),
            unannounced: state.tasks.unannounced_ends().next().is_some(),
            running_task: state.tasks.running().next().is_some(),
            question: state.questions.iter().any(|question| question.kind != QuestionKind::Plan),
        }
    }

    /// The same if everything in the inbox is taken.
    pub(crate) fn of_taken(state: &State, wake: Wake) -> Self {
        Self::of(state, state.inbox_through, wake)
    }

    /// Whether a runtime that is responsible for the session should take it now.
    pub fn is_due(self) -> bool {
        self.turn || self.input || self.compaction || self.task_end
    }

    /// Whether there is something for a person to continue: a turn, or an input that waits for one.
    pub fn is_unfinished(self) -> bool {
        self.turn || self.input
    }

    /// Whether nothing runs, and nothing is about to: no turn, no command, no input and no end of a task that begins a turn.
    pub(crate) fn is_settled(self) -> bool {
        !(self.is_unfinished() || self.task_end || self.running_task)
    }

    /// Whether something would be lost if the session were trashed.
    pub fn is_in_use(self) -> bool {
        self.is_due() || self.unannounced || self.running_task || self.question
    }
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
