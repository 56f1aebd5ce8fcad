//! The permission mode of a session, and what the user always allows in it.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the order to change the mode | the order in the inbox | it is taken, with `mode_changed` in the same append, before anything else |
//! | `order_taken` and `mode_changed` | the new mode | nothing: the fold has it, and a new epoch carries it over |
//! | `mode_changed`, before the model was told | the new mode, and what the model was last told | the note comes with the next step |
//! | the answer to a question, in the inbox | the answer | it is taken, with `answered`; with a plan also the change of mode and the input that carries it out, in the same append |
//! | `answered` with `project`, before the rule is in the file | the rule, in its question | the rule is saved before the call runs |
//!
//! Never: a call that runs in a mode that refuses it; a plan that is carried out twice; a grant that is wider than its question.

use longhaul_protocol::{
    Answer, Answered, AnsweredBy, ModeChanged, Note, PermissionMode, Question, QuestionKind,
};

use crate::session::state::State;

/// What the model is told when plan mode begins, and when it ends.
const PLAN_BEGINS: &str = "Plan mode is on: you can read, but edits and commands are refused until the user accepts a plan. Find out what \
    you need to know, then end with the plan as your answer: what you would change, where, and how you would check it. Ask if something \
    is open. Do not try to make the changes.";
const PLAN_ENDS: &str = "Plan mode is over: edits and commands are possible again.";

/// Folds a change of the mode.
pub(crate) fn fold_mode(state: &mut State, changed: ModeChanged) {
    let permission = &mut state.permission;
    permission.mode = Some(changed.to);
    match (changed.from, changed.to) {
        (PermissionMode::Plan, PermissionMode::Plan) => {}
        (from, PermissionMode::Plan) => permission.before_plan = Some(from),
        _ => permission.before_plan = None,
    }
}

/// Folds an answer: what the user always allows from now on.
pub(crate) fn fold_grant(state: &mut State, question: &Question, answered: &Answered) {
    // P8: another agent can say yes to one call, not to those that come.
    let is_lasting = matches!(Answer::parse(&answered.answer), Answer::Always | Answer::Project)
        && answered.by != Some(AnsweredBy::Agent);
    let Some(grant) = question.grant.as_ref().filter(|_| is_lasting) else { return };
    if !state.permission.grants.contains(grant) {
        state.permission.grants.push(grant.clone());
    }
}

/// The note to the model if plan mode has begun or ended since it was last told. The other modes need none: the model sees what is asked
/// and refused.
pub(crate) fn mode_note(state: &State, mode: PermissionMode) -> Option<Note> {
    let is_told = state.permission.announced == Some(PermissionMode::Plan);
    let text = match (is_told, mode == PermissionMode::Plan) {
        (false, true) => PLAN_BEGINS,
        (true, false) => PLAN_ENDS,
        (true, true) | (false, false) => return None,
    };
    Some(Note { mode: Some(mode), ..Note::new(text) })
}

/// The mode to which an accepted plan returns.
pub(crate) fn mode_after_plan(state: &State) -> PermissionMode {
    state.permission.before_plan.unwrap_or(PermissionMode::Auto)
}

/// The open questions about plans.
pub(crate) fn plan_questions(state: &State) -> impl Iterator<Item = &Question> {
    state.questions.iter().filter(|question| question.kind == QuestionKind::Plan)
}

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;
