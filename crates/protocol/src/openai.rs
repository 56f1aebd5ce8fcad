use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{InputId, SessionId};

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
}

/// A response can't be retrieved any more. Its turn stays in the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseDeleted {
    pub session: SessionId,
    pub turn: u64,
}
