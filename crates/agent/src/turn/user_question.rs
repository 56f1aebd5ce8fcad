//! E8: a question of the agent to the user (`ask_user`). The call is the question, and the answer is its result.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the answer of the model | the call | the question is asked |
//! | `question` | the question, with its call | it waits, under the same id, for an answer |
//! | the answer, in the inbox | the answer | it is taken, once, and becomes the result |
//! | `answered` | the answer | it becomes the result |
//! | `tool_started` | the same | the same |
//! | `tool_finished` | the result | nothing |
//!
//! Never: a question that is asked twice; an answer that is lost, or that counts as the approval of a call.

use longhaul_protocol::{Effect, Question, QuestionId, QuestionKind};
use longhaul_tools::{ApprovalAction, JudgedCall, ToolOutcome, UserQuestion};

use crate::session::state::CallState;
use crate::turn::approval_question::on_one_line;
use crate::turn::tool_calls::CheckedCall;
use crate::worker::Worker;

/// Asks the user, or makes the answer the result of the call.
pub(super) fn ask_user(worker: &Worker, call: &CallState, question: &UserQuestion) -> CheckedCall {
    if let Some(answer) = &call.approval {
        return CheckedCall::Finished(ToolOutcome::ok(answer.text.clone()));
    }
    let verdict = worker.runtime().approvals.judge_in_mode(&JudgedCall {
        mode: worker.permission_mode(),
        effect: Effect::Idempotent,
        tool: &call.name,
        arguments: &call.arguments,
        is_sandboxed: true,
    });
    // A rule that asks needs no question of its own: this is one.
    if verdict.action == ApprovalAction::Deny {
        let refusal = format!("not asked: {}; go on without an answer", verdict.reason);
        return CheckedCall::Finished(ToolOutcome::error(refusal));
    }
    // Each character can be seen, as in a question about approval: the model chose them.
    let lines: Vec<String> = question.text.lines().map(on_one_line).collect();
    let choices = question.choices.iter().map(|choice| on_one_line(choice)).collect();
    let asked = Question::new(QuestionId::generate(), QuestionKind::Ask, lines.join("\n"));
    CheckedCall::Ask(Question { choices, call: Some(call.id), ..asked })
}
