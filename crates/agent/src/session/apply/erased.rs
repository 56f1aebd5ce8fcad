//! Records whose body is gone: erased on purpose, or lost to damage.

use std::sync::Arc;

use longhaul_protocol::{AttemptEnded, Effect, Item, Record, Role, ToolFinished, ToolStarted};

use crate::session::state::State;

impl State {
    /// A body that was erased, or a record that was lost to damage. What it said is unknown; what it did must not be done
    /// again.
    pub(super) fn fold_gone(&mut self, record: &Record, reason: &str) {
        let erased = format!("[erased: {reason}]");
        let attempt = self.turn.as_ref().and_then(|turn| turn.attempt.as_ref()).map(|attempt| attempt.id);
        match (record.kind.as_str(), attempt) {
            ("turn_ended", _) => self.fold_turn_end(None, None),
            ("turn_started", _) => self.fold_turn(self.turns.saturating_add(1), None),
            ("block", Some(attempt)) => {
                let text = Arc::new(Item::Text { role: Role::Assistant, text: erased });
                self.attempt(attempt).into_iter().for_each(|open| open.blocks.push(text.clone()));
            }
            // Everything that was complete counts: calls of it may have run.
            ("attempt_ended", Some(attempt)) => {
                let (kept, stop, error) = (u32::MAX, None, Some(erased));
                self.fold_answer(&AttemptEnded {
                    attempt,
                    kept,
                    stop,
                    error,
                    goes_on: false,
                    too_long: None,
                });
            }
            ("imported", _) => self.fold_gone_import(),
            ("compact_start", _) => self.fold_compact_start(erased),
            ("tool_started", _) => self.fold_gone_start(),
            ("task_started", _) => {
                if let Some(turn) = &mut self.turn {
                    turn.erased_task = true;
                }
            }
            ("task_ended", _) => self.tasks.one_has_ended(&erased),
            ("answered", _) => {
                // Which one is unknown too. Calls whose question is gone ask again.
                self.questions.clear();
                self.await_person(record.at);
            }
            ("notification", _) => {
                self.tasks.notified_of_one();
                self.push_told(Item::Text { role: Role::User, text: erased });
            }
            // Which call it was is unknown too; but only one that had started can have finished.
            ("tool_finished", _) => {
                let calls = self.turn.iter().flat_map(|turn| &turn.calls).filter(|call| call.is_open());
                let results = calls.map(|call| ToolFinished::new(call.id, &call.name, erased.clone()));
                for result in results.collect::<Vec<_>>() {
                    self.fold_result(result);
                }
            }
            ("step_started" | "attempt_started" | "lost", _) => {
                if let Some(turn) = &mut self.turn {
                    turn.broken =
                        Some(format!("a record of this turn is gone ({reason}); say what should be done"));
                }
            }
            _ => {}
        }
    }

    /// The next call that had not started may have: nobody can tell what it did.
    fn fold_gone_start(&mut self) {
        let Some(turn) = &mut self.turn else { return };
        let next = turn.calls.iter_mut().find(|call| call.started.is_none() && call.result.is_none());
        if let Some(call) = next {
            let (name, arguments) = (call.name.clone(), call.arguments.clone());
            let effect = Effect::Unknown;
            call.started =
                Some(ToolStarted { call: call.id, name, arguments, effect, write: None, kept_in: None });
        }
    }
}
