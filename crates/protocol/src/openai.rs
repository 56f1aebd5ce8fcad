use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{Hash, InputId, QuestionId, SessionId};

record_kinds! {
    /// The records of the stream `openai`. Each has a key by which it is found.
    OpenaiRecord {
        "conversation_bound" => ConversationBound(ConversationBound),
        "response_deleted" => ResponseDeleted(ResponseDeleted),
    }
}

/// A conversation, as a client sent it, goes on in this session. Appended before the input, so the session may not
/// have the input. The key is made of the token, the hash of the conversation, and a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationBound {
    pub session: SessionId,
    /// The input that ends the conversation.
    pub input: InputId,
    /// The hash of the request's body. A retry has the same.
    pub body: Hash,
    /// The question that the request answered instead of sending an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<AnsweredQuestion>,
}

/// A question that a request answered, and the turn that asked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredQuestion {
    pub question: QuestionId,
    pub turn: u64,
    /// The answer accepts a plan, which the next turn carries out. Otherwise the turn that asked goes on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepts_plan: bool,
}

/// A response can't be retrieved any more. Its turn stays in the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseDeleted {
    pub session: SessionId,
    pub turn: u64,
}
