//! Questions of a session as elicitations, which a client shows to its user, and the answers.

use longhaul_protocol::{Answer, Question, QuestionKind};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::access::{Caller, Scope};
use crate::api::orders::check_answer;
use crate::problem::ApiResult;

/// Refuses another agent's yes to what only a person may allow (P8, B3): what needs an admin token, and passing a budget.
pub(super) fn check_agent_answer(caller: &Caller, question: &Question, answer: &str) -> ApiResult<()> {
    let is_yes = matches!(Answer::parse(answer), Answer::Yes | Answer::Always | Answer::Project);
    if is_yes && question.kind == QuestionKind::Budget {
        caller.require(Scope::Admin, "let a turn pass a limit of the budget")?;
    }
    check_answer(caller, question, answer)
}

/// A question as data.
pub(super) fn question_json(question: &Question) -> Value {
    let mut shown = json!({
        "id": question.id.to_string(),
        "kind": question.kind,
        "text": question.text,
        "choices": question.choices,
    });
    if let Some(diff) = &question.diff {
        shown["diff"] = json!(diff);
    }
    shown
}

/// A question as text for a model, with what to call to answer it.
pub(super) fn question_text(question: &Question) -> String {
    let choices = match question.choices.is_empty() {
        true => String::new(),
        false => format!(" [{}]", question.choices.join(", ")),
    };
    let diff = question.diff.as_ref().map(|diff| format!("\n{diff}")).unwrap_or_default();
    format!("Question {}: {}{choices}{diff}\nAnswer it with session_answer.", question.id, question.text)
}

/// Questions as requests to the user of the client, by their ids.
pub(super) fn elicitations(questions: &[Question], caller: &Caller) -> Value {
    questions.iter().map(|open| (open.id.to_string(), elicitation(open, caller))).collect()
}

/// A question as a request to the user of the client. Answers that the caller may not give are not offered.
fn elicitation(question: &Question, caller: &Caller) -> Value {
    let may_give = |choice: &&String| {
        question.kind.takes_text()
            || caller.scope >= Scope::Admin
            || Answer::parse(choice.as_str()) != Answer::Project
    };
    let choices: Vec<&String> = question.choices.iter().filter(may_give).collect();
    let mut answer = json!({"type": "string", "title": "Answer"});
    if !choices.is_empty() {
        answer["enum"] = json!(choices);
    }
    let diff = question.diff.as_ref().map(|diff| format!("\n\n{diff}")).unwrap_or_default();
    let schema = json!({"type": "object", "properties": {"answer": answer}, "required": ["answer"]});
    let params =
        json!({"mode": "form", "message": format!("{}{diff}", question.text), "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

/// What the user of a client did with an elicitation.
#[derive(Debug, Deserialize)]
pub(super) struct ElicitationResponse {
    action: ElicitationAction,
    #[serde(default)]
    content: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ElicitationAction {
    Accept,
    Decline,
    Cancel,
}

impl ElicitationResponse {
    /// The answer to the question. `None` if the form lacks it.
    pub(super) fn answer(&self, question: &Question) -> Option<&str> {
        match self.action {
            ElicitationAction::Accept => self.content.get("answer").and_then(Value::as_str),
            ElicitationAction::Decline | ElicitationAction::Cancel => Some(question.kind.decline_answer()),
        }
    }
}
