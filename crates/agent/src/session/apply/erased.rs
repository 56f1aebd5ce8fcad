//! Records whose body is gone: erased on purpose, or lost to damage.

use std::sync::Arc;

use longhaul_protocol::{
    AttemptEnded, Effect, Item, PermissionMode, Record, Role, ToolFinished, ToolStarted, TurnStarted,
};

use super::epoch::fold_compact_start;
use super::import::fold_gone_import;
use super::{
    fold_answer, fold_result, fold_turn, fold_turn_end, open_attempt, push_announcement, update_question_wait,
};
use crate::session::state::State;

/// Applies a record whose body was erased or that was lost to damage. Its content is unknown, but what it did must
/// not be done again.
pub(super) fn fold_gone(state: &mut State, record: &Record, reason: &str) {
    let erased = format!("[erased: {reason}]");
    let attempt = state.turn.as_ref().and_then(|turn| turn.attempt.as_ref()).map(|attempt| attempt.id);
    match (record.kind.as_str(), attempt) {
        ("turn_ended", _) => fold_turn_end(state, None, None),
        ("turn_started", _) => {
            let next = TurnStarted::new(state.turn_count.saturating_add(1));
            fold_turn(state, &next, None);
        }
        ("block", Some(attempt)) => {
            let text = Arc::new(Item::Text { role: Role::Assistant, text: erased });
            open_attempt(state, attempt).into_iter().for_each(|open| open.blocks.push(text.clone()));
        }
        // All complete blocks count, because their calls may have run.
        ("attempt_ended", Some(attempt)) => {
            let (kept, stop, error) = (u32::MAX, None, Some(erased));
            fold_answer(state, &AttemptEnded { attempt, kept, stop, error, goes_on: false, too_long: None });
        }
        ("imported", _) => fold_gone_import(state),
        ("compact_start", _) => fold_compact_start(state, erased),
        ("tool_started", _) => fold_gone_start(state),
        ("task_started", _) => {
            if let Some(turn) = &mut state.turn {
                turn.erased_task = true;
            }
        }
        ("task_ended", _) => state.tasks.record_erased_end(&erased),
        ("answered", _) => {
            // It is unknown which question it was. Calls whose question is gone ask again.
            state.questions.clear();
            update_question_wait(state, record.at);
        }
        // It is unknown which mode the user chose. The next change says it again.
        ("mode_changed", _) => state.permission.mode = Some(PermissionMode::Ask),
        ("notification", _) => {
            state.tasks.record_erased_notification();
            push_announcement(state, Item::Text { role: Role::User, text: erased });
        }
        // It is unknown which call it was. But only a started call can have finished.
        ("tool_finished", _) => {
            let calls = state.turn.iter().flat_map(|turn| &turn.calls).filter(|call| call.is_open());
            let results = calls.map(|call| ToolFinished::new(call.id, &call.name, erased.clone()));
            for result in results.collect::<Vec<_>>() {
                fold_result(state, result);
            }
        }
        ("step_started" | "attempt_started" | "lost", _) => {
            if let Some(turn) = &mut state.turn {
                turn.lost_record =
                    Some(format!("part of this turn was erased ({reason}); send a message to go on"));
            }
        }
        _ => {}
    }
}

/// The erased record may be the start of the next call. What that call did is unknown.
fn fold_gone_start(state: &mut State) {
    let Some(turn) = &mut state.turn else { return };
    let next = turn.calls.iter_mut().find(|call| call.started.is_none() && call.result.is_none());
    if let Some(call) = next {
        let (name, arguments) = (call.name.clone(), call.arguments.clone());
        let effect = Effect::Unknown;
        call.started = Some(ToolStarted {
            call: call.id,
            name,
            arguments,
            effect,
            write: None,
            writes: vec![],
            kept_in: None,
            remote_task: None,
            child: None,
            changes_nothing: false,
        });
    }
}
