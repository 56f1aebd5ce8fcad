use serde::{Deserialize, Serialize};

use crate::{CallId, QuestionId};

/// A person is asked something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The question.
    pub id: QuestionId,
    /// Its words.
    pub text: String,
    /// The call that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// Why a person is asked whether the call may run. A yes covers these reasons and no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// A question was settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The question.
    pub id: QuestionId,
    /// The answer.
    pub answer: String,
}
