//! What a session has to do. Waking, idle work, retention, `resume` and every list ask here, so that they can't disagree.

use longhaul_protocol::Seq;

use crate::Wake;
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

impl State {
    /// What there is to do, where the inbox ends here and ends of tasks wake so.
    pub fn work(&self, inbox_head: Seq, wake: Wake) -> Work {
        Work {
            turn: self.turn.is_some(),
            input: self.inbox_through < inbox_head || !self.waiting.is_empty() || self.again.is_some(),
            compaction: self.compaction.open.is_some() || self.compaction.asked.is_some(),
            task_end: self.tasks.wakes(wake),
            unannounced: self.tasks.untold().next().is_some(),
            running_task: self.tasks.running().next().is_some(),
            question: !self.questions.is_empty(),
        }
    }

    /// The same, with everything taken that is in the inbox.
    pub(crate) fn own_work(&self, wake: Wake) -> Work {
        self.work(self.inbox_through, wake)
    }
}

#[cfg(test)]
#[path = "work_tests.rs"]
mod tests;
