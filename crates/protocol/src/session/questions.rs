use serde::{Deserialize, Serialize};

use crate::{ApprovalGrant, CallId, QuestionId, SessionId, ToolFinished};

/// A person is asked something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub id: QuestionId,
    #[serde(default, skip_serializing_if = "QuestionKind::is_approval")]
    pub kind: QuestionKind,
    pub text: String,
    /// Answers with a meaning of their own. Any other text is an answer, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// The call that waits for the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The reasons why the call needs approval. A yes covers these and no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// What the call would change, as a unified diff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// What `always` and `project` allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<ApprovalGrant>,
    /// The result of a command that the sandbox refused, if the question is whether to run it once outside. It is the result of the
    /// call unless the user says yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<ToolFinished>>,
    /// The subagent that asks. The answer goes to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
    /// A yes reaches beyond the session, such as a schedule or a file that other programs run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beyond_session: bool,
}

impl Question {
    /// A question without choices that no call waits for.
    pub fn new(id: QuestionId, kind: QuestionKind, text: impl Into<String>) -> Self {
        let (choices, call, reasons, diff, grant, refused) = (vec![], None, vec![], None, None, None);
        let (child, beyond_session, text) = (None, false, text.into());
        Self { id, kind, text, choices, call, reasons, diff, grant, refused, child, beyond_session }
    }

    /// Whether only the user may say yes, and no other agent: what it allows reaches beyond the session or its sandbox.
    pub fn is_for_user(&self) -> bool {
        self.beyond_session || self.refused.is_some()
    }
}

/// What a question is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// Whether a call may run.
    #[default]
    Approval,
    /// Whether a plan should be carried out.
    Plan,
    /// Whether the turn may pass a soft limit. `reasons` names the limits.
    Budget,
    /// What the agent wants to know (`ask_user`). Every answer is passed on as it is: `no` is a word like any other.
    Ask,
    /// What an MCP server asks while it works on a call.
    Elicitation,
}

impl QuestionKind {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_approval(&self) -> bool {
        *self == Self::Approval
    }

    /// Whether an answer is passed on as the text that it is, and not as a yes or a no.
    pub fn takes_text(self) -> bool {
        matches!(self, Self::Ask | Self::Elicitation)
    }

    /// The answer for a user who does not want to answer.
    pub fn decline_answer(self) -> &'static str {
        match self {
            Self::Ask => "The user declined to answer.",
            // The server is told that the user declined.
            Self::Elicitation => "decline",
            _ => Answer::No.word(),
        }
    }

    /// An answer that a person typed, as it is recorded: for a question that takes text the text itself, for all others the whole word
    /// that a letter stands for. The number of a choice, or the choice in other case, stands for the choice.
    pub fn read_answer<'a>(self, choices: &'a [String], typed: &'a str) -> &'a str {
        let typed = typed.trim();
        if !self.takes_text() {
            return Answer::parse(typed).word();
        }
        let named = choices.iter().find(|choice| choice.eq_ignore_ascii_case(typed));
        let number = || typed.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
        named.or_else(number).map_or(typed, String::as_str)
    }

    /// Whether what a person typed is the number of a choice that there is not. Where choices begin with digits, any number is an answer.
    pub fn is_unknown_choice(self, choices: &[String], typed: &str) -> bool {
        let is_numeric = |choice: &String| choice.starts_with(|first: char| first.is_ascii_digit());
        self.takes_text()
            && !choices.is_empty()
            && !choices.iter().any(is_numeric)
            && typed.trim().parse::<usize>().is_ok_and(|number| !(1..=choices.len()).contains(&number))
    }
}

/// A question was settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    pub id: QuestionId,
    pub answer: String,
    /// Who settled it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<AnsweredBy>,
}

/// Who settled a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AnsweredBy {
    /// A person, from any client.
    User,
    /// Another agent, which talks to the session as a client. Its order names it.
    Agent,
    /// The runtime withdrew it.
    Runtime,
}

/// The meaning of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'a> {
    Yes,
    /// Yes, and the same from now on in this session.
    Always,
    /// Yes, and the same from now on in this project.
    Project,
    No,
    /// A no with its reason; for a plan, what should be different.
    Text(&'a str),
}

impl<'a> Answer<'a> {
    /// Reads an answer. A word or its first letter stands for itself, in any case.
    pub fn parse(text: &'a str) -> Self {
        let text = text.trim();
        let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        match () {
            () if is(&["yes", "y"]) => Self::Yes,
            () if is(&["always", "a"]) => Self::Always,
            () if is(&["project", "p"]) => Self::Project,
            () if is(&["no", "n", ""]) => Self::No,
            () => Self::Text(text),
        }
    }

    /// The whole word; for a text, the text.
    pub fn word(self) -> &'a str {
        match self {
            Self::Yes => "yes",
            Self::Always => "always",
            Self::Project => "project",
            Self::No => "no",
            Self::Text(text) => text,
        }
    }
}
