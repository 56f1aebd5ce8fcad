//! Requests, notifications and replies.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::error::Category;
use serde_json::value::RawValue;

use crate::line::MAX_LINE_BYTES;

/// A message of the other side.
#[derive(Debug)]
pub enum Message {
    /// Wants an answer with its id.
    Request { id: Value, method: String, params: Params },
    /// Wants no answer, whatever is wrong with it.
    Notification { method: String, params: Params },
    /// Answers a request of this side.
    Reply { id: Value, result: Result<Value, RpcError> },
}

/// The error object of JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RpcError {
    pub code: i32,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }
}

/// The parameters of a method, not parsed yet.
#[derive(Debug, Clone)]
pub struct Params(Option<Box<RawValue>>);

impl Params {
    /// Parses the parameters. Parameters that are left out are an empty object.
    pub fn parse<T: for<'de> Deserialize<'de>>(&self) -> serde_json::Result<T> {
        serde_json::from_str(self.0.as_ref().map_or("{}", |params| params.get()))
    }
}

/// Why bytes are not a message.
#[derive(Debug, thiserror::Error)]
pub enum MessageError {
    #[error("this is not JSON: {reason}")]
    Syntax { reason: String },
    #[error("not a JSON-RPC 2.0 message: {reason}")]
    Envelope { reason: String },
    #[error("this line is too long: a message may have {} MiB", MAX_LINE_BYTES >> 20)]
    TooLong,
}

impl MessageError {
    /// The code of JSON-RPC.
    pub fn code(&self) -> i32 {
        match self {
            Self::Syntax { .. } => -32_700,
            Self::Envelope { .. } | Self::TooLong => -32_600,
        }
    }
}

/// Bytes that are not a message: the id to answer to, which is null if none can be read, and the answer.
#[derive(Debug)]
pub struct BadMessage {
    pub id: Value,
    pub error: MessageError,
}

impl BadMessage {
    /// The answer to a line that was skipped.
    pub fn too_long() -> Self {
        Self { id: Value::Null, error: MessageError::TooLong }
    }
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    jsonrpc: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

/// Keeps a member that is null apart from one that is absent.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// Reads a message.
pub fn parse_message(bytes: &[u8]) -> Result<Message, Box<BadMessage>> {
    let envelope: Envelope = serde_json::from_slice(bytes).map_err(|error| {
        let reason = error.to_string();
        let error = match error.classify() {
            Category::Data => MessageError::Envelope { reason },
            Category::Syntax | Category::Eof | Category::Io => MessageError::Syntax { reason },
        };
        Box::new(BadMessage { id: Value::Null, error })
    })?;
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    let wrong = |id: Option<Value>, reason: &str| {
        let id = id.filter(is_id).unwrap_or_default();
        Err(Box::new(BadMessage { id, error: MessageError::Envelope { reason: reason.to_owned() } }))
    };
    if jsonrpc.is_none_or(|version| version != "2.0") {
        return wrong(id, "`jsonrpc` must be \"2.0\"");
    }
    match (id, method) {
        (Some(id), Some(method)) if is_id(&id) => Ok(Message::Request { id, method, params: Params(params) }),
        (Some(_), Some(_)) => wrong(None, "`id` must be a string, an integer or null"),
        (None, Some(method)) => Ok(Message::Notification { method, params: Params(params) }),
        (Some(id), None) => match (result, error) {
            (Some(result), None) => Ok(Message::Reply { id, result: Ok(result) }),
            (None, Some(error)) => {
                let unreadable = |_| RpcError::new(0, "an error without a message");
                Ok(Message::Reply {
                    id,
                    result: Err(serde_json::from_value(error).unwrap_or_else(unreadable)),
                })
            }
            _ => wrong(Some(id), "it has neither `method` nor exactly one of `result` and `error`"),
        },
        (None, None) => wrong(None, "it has no `method`"),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_null() || id.is_string() || id.is_i64() || id.is_u64()
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
