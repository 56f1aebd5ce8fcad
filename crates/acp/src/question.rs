//! Questions of a session, as an editor asks them.

use std::path::Path;

use longhaul_protocol::{Answer, Question, QuestionKind};
use longhaul_transcript::{Call, truncate};
use serde_json::{Value, json};

use crate::update::tool_call::{diff_content, started_call};
use crate::wire::params::{FormReply, PermissionOutcome, PermissionReply};
use crate::wire::update::{PermissionOption, ToolCall, ToolContent, ToolKind, ToolStatus};
use longhaul_jsonrpc::RpcError;

const MAX_TITLE_CHARS: usize = 200;
/// The field of a form.
const ANSWER_FIELD: &str = "answer";

/// How the editor asks a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `session/request_permission`, with an option for each answer.
    Options,
    /// `elicitation/create`, with a field for the answer.
    TextField,
    /// As text. The next prompt is the answer.
    Prompt,
}

impl Form {
    /// A question without choices needs words.
    pub(crate) fn of(question: &Question, has_forms: bool) -> Self {
        match (is_yes_or_no(question) || !question.choices.is_empty(), has_forms) {
            (true, _) => Self::Options,
            (false, true) => Self::TextField,
            (false, false) => Self::Prompt,
        }
    }
}

/// Whether the answers are yes and no, with their variants. Otherwise they are words of the question's own.
fn is_yes_or_no(question: &Question) -> bool {
    matches!(question.kind, QuestionKind::Approval | QuestionKind::Plan | QuestionKind::Budget)
}

/// The answer that a text stands for.
pub(crate) fn answer_of<'a>(question: &Question, text: &'a str) -> &'a str {
    if is_yes_or_no(question) { Answer::parse(text).word() } else { text }
}

/// What the editor's user decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Answer(String),
    /// The user cancelled the turn.
    Cancel,
    /// The editor can't ask.
    Unable(String),
}

/// The id under which the editor shows a question: that of its call, if it is about one.
pub(crate) fn tool_call_id(question: &Question) -> String {
    question.call.map_or_else(|| format!("question_{}", question.id), |call| call.to_string())
}

/// What the editor shows beside the answers. `call` is the call that the question is about.
pub(crate) fn asked_call(question: &Question, call: Option<&Call>, work_dir: &Path) -> ToolCall {
    let title = question.text.lines().next().unwrap_or_default();
    let kind = match question.kind {
        QuestionKind::Plan => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    };
    let (diffs, locations) =
        question.diff.as_deref().map(|diff| diff_content(diff, work_dir)).unwrap_or_default();
    let content = std::iter::once(ToolContent::text(question.text.clone())).chain(diffs).collect();
    let shown = match call {
        Some(call) => started_call(call, work_dir, ToolStatus::Pending),
        None => ToolCall {
            title: Some(truncate(title, MAX_TITLE_CHARS)),
            kind: Some(kind),
            status: Some(ToolStatus::Pending),
            ..ToolCall::default()
        },
    };
    let locations = if locations.is_empty() { shown.locations } else { locations };
    ToolCall { tool_call_id: tool_call_id(question), content, locations, ..shown }
}

/// The answers that the editor offers.
pub(crate) fn options(question: &Question) -> Vec<PermissionOption> {
    let words: Vec<&str> = question.choices.iter().map(String::as_str).collect();
    // Questions of earlier versions name no choices.
    let words = if words.is_empty() { vec!["yes", "no"] } else { words };
    let is_plan = question.kind == QuestionKind::Plan;
    let option = |word: &&str| {
        let answer = if is_yes_or_no(question) { Answer::parse(word) } else { Answer::Text(word) };
        let (name, kind) = match answer {
            Answer::Yes if is_plan => ("Yes, carry it out", "allow_once"),
            Answer::Yes => ("Yes", "allow_once"),
            Answer::Always => ("Always in this session", "allow_always"),
            Answer::Project => ("Always in this project", "allow_always"),
            Answer::No if is_plan => ("No, leave it", "reject_once"),
            Answer::No => ("No", "reject_once"),
            // A server's question that the user may decline.
            Answer::Text("no") if question.kind == QuestionKind::Elicitation => ("no", "reject_once"),
            Answer::Text(text) => (text, "allow_once"),
        };
        PermissionOption { option_id: answer.word().to_owned(), name: name.to_owned(), kind }
    };
    words.iter().map(option).collect()
}

/// The parameters of `elicitation/create`.
pub(crate) fn text_field(session: &str, question: &Question) -> Value {
    json!({
        "sessionId": session,
        "mode": "form",
        "message": question.text,
        "requestedSchema": {
            "type": "object",
            "properties": {ANSWER_FIELD: {"type": "string", "title": "Answer"}},
            "required": [ANSWER_FIELD],
        },
    })
}

/// What the editor's answer means.
pub(crate) fn decision(kind: QuestionKind, form: Form, reply: Result<Value, RpcError>) -> Decision {
    let reply = match reply {
        Ok(reply) => reply,
        Err(error) => return Decision::Unable(error.message),
    };
    match form {
        Form::Options | Form::Prompt => match serde_json::from_value(reply) {
            Ok(PermissionReply { outcome: PermissionOutcome::Selected { option_id } }) => {
                Decision::Answer(option_id)
            }
            Ok(PermissionReply { outcome: PermissionOutcome::Cancelled }) => Decision::Cancel,
            Err(error) => Decision::Unable(error.to_string()),
        },
        Form::TextField => match serde_json::from_value::<FormReply>(reply) {
            Ok(reply) if reply.action == "accept" => match reply.content[ANSWER_FIELD].as_str() {
                Some(answer) => Decision::Answer(answer.to_owned()),
                None => Decision::Unable("the form came back without an answer".to_owned()),
            },
            Ok(reply) if reply.action == "cancel" => Decision::Cancel,
            Ok(_) => Decision::Answer(kind.decline_answer().to_owned()),
            Err(error) => Decision::Unable(error.to_string()),
        },
    }
}

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
