//! What questions and their answers change.

use longhaul_protocol::{Answer, Answered, AnsweredBy, Question, QuestionKind};

use super::call_mut;
use crate::session::permission::fold_grant;
use crate::session::state::{ApprovalAnswer, RefusedRun, State};

/// The question has the result of the run in the sandbox, which is the call's own unless the user says yes.
pub(super) fn fold_refusal(state: &mut State, question: &Question) {
    let (Some(call), Some(result)) = (question.call, &question.refused) else { return };
    if let Some(call) = call_mut(state, call).filter(|call| call.is_open()) {
        call.refused = Some(RefusedRun { result: (**result).clone(), answer: None });
    }
}

/// Settles a question.
pub(super) fn fold_answered(state: &mut State, answered: Answered) {
    let settled = state.questions.extract_if(.., |question| question.id == answered.id).next();
    // The answer to a subagent's question changes that session.
    let Some(question) = settled.filter(|question| question.child.is_none()) else { return };
    fold_grant(state, &question, &answered);
    if question.kind == QuestionKind::Budget {
        fold_budget_answer(state, question.reasons, &answered);
        return;
    }
    let Some(call) = question.call.and_then(|call| call_mut(state, call)) else { return };
    if question.kind == QuestionKind::Elicitation {
        let is_withdrawn = answered.by == Some(AnsweredBy::Runtime);
        call.elicited = (!is_withdrawn).then_some((question.id, answered.answer));
    } else if question.refused.is_none() {
        let (reasons, grant) = (question.reasons, question.grant);
        call.approval = Some(ApprovalAnswer { text: answered.answer, reasons, grant });
    } else if let Some(refused) = &mut call.refused {
        refused.answer = Some(answered.answer);
    }
}

/// Folds the answer to whether the turn may pass soft limits.
fn fold_budget_answer(state: &mut State, names: Vec<String>, answered: &Answered) {
    let Some(turn) = state.turn.as_mut().filter(|_| answered.by != Some(AnsweredBy::Runtime)) else { return };
    match Answer::parse(&answered.answer) {
        Answer::Yes | Answer::Always | Answer::Project => turn.budget_consents.extend(names),
        Answer::No | Answer::Text(_) => turn.budget_refused = names,
    }
}
