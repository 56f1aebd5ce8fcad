//! `ask_user`: the agent asks the user something. The question is a record like one about approval; the runtime asks it, and the answer is the
//! result of the call.

use std::sync::Arc;

use longhaul_protocol::Effect;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{PreparedCall, Tool, ToolDefinition, ToolInvocation, ToolOutcome, function_tool, schema_of};

pub(crate) const ASK_USER: &str = "ask_user";
const MAX_QUESTION_CHARS: usize = 4_000;
const MAX_CHOICES: usize = 9;
const MAX_CHOICE_CHARS: usize = 200;

/// A question of the agent to the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserQuestion {
    pub text: String,
    /// Answers to choose from. The user may write another one.
    pub choices: Vec<String>,
}

/// What ask_user takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    question: String,
    #[serde(default)]
    choices: Option<Vec<String>>,
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: ASK_USER.into(),
        description: "Ask the user what only they can decide.".into(),
        effect: Effect::Idempotent,
        schema: schema_of::<Arguments>(),
        limits: &[
            "A question of 1 to 4,000 characters; at most 9 choices of 1 to 200 characters, each on one line.",
            "The turn waits until someone answers, from any client, also after a restart.",
        ],
        example: r#"{"question": "Which database shall I use?", "choices": ["SQLite", "Postgres"]}"#,
    }
}

/// The tool. Its call is the question; the runtime asks it and makes the answer the result.
pub fn ask_user_tool() -> Arc<dyn Tool> {
    function_tool(definition(), (), prepare)
}

fn prepare((): &(), arguments: Arguments, _: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
    let wrong = |reason: String| Err(ToolOutcome::error(reason));
    let text = arguments.question.trim().to_owned();
    if text.is_empty() || text.chars().count() > MAX_QUESTION_CHARS {
        return wrong(format!("`question` must have 1 to {MAX_QUESTION_CHARS} characters"));
    }
    let choices: Vec<String> =
        arguments.choices.unwrap_or_default().iter().map(|choice| choice.trim().to_owned()).collect();
    if choices.len() > MAX_CHOICES {
        return wrong(format!("`choices` has {} entries; at most {MAX_CHOICES} can be shown", choices.len()));
    }
    let is_wrong = |choice: &String| {
        choice.is_empty() || choice.chars().count() > MAX_CHOICE_CHARS || choice.contains(char::is_control)
    };
    if let Some(index) = choices.iter().position(is_wrong) {
        return wrong(format!("`choices[{index}]` must be one line of 1 to {MAX_CHOICE_CHARS} characters"));
    }
    if let Some(index) = (1..choices.len()).find(|index| choices[..*index].contains(&choices[*index])) {
        return wrong(format!("`choices[{index}]` is there twice"));
    }
    let unanswered = || async { ToolOutcome::error("the question was not asked") };
    Ok(PreparedCall::new(move |_| unanswered()).asking(UserQuestion { text, choices }))
}
