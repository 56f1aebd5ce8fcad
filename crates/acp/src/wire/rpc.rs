//! JSON-RPC 2.0, one message a line, in both directions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::error::Category;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::error::{Error, Result};

/// Messages that wait to be written. A session whose editor does not read waits, and the runtime merges what it would show.
const MAX_QUEUED_MESSAGES: usize = 256;

/// The error object of JSON-RPC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RpcError {
    pub(crate) code: i32,
    pub(crate) message: String,
}

/// A message of the editor.
#[derive(Debug)]
pub(crate) enum Incoming {
    Request { id: Value, method: String, params: Params },
    Notification { method: String, params: Params },
    Reply { id: Value, result: std::result::Result<Value, RpcError> },
}

/// The parameters of a method, not parsed yet.
#[derive(Debug)]
pub(crate) struct Params(Option<Box<RawValue>>);

impl Params {
    /// Parses the parameters. The error names the method.
    pub(crate) fn parse<T: for<'de> Deserialize<'de>>(&self, method: &str) -> Result<T> {
        let text = self.0.as_ref().map_or("{}", |params| params.get());
        serde_json::from_str(text).map_err(|error| Error::params(method, error))
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

/// A member that is there, even if it is null.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// A line that is no message: the id to answer to, which is null where there is none, and the answer.
#[derive(Debug)]
pub(crate) struct BadMessage {
    pub(crate) id: Value,
    pub(crate) error: Error,
}

/// Reads a message.
pub(crate) fn parse_message(line: &[u8]) -> std::result::Result<Incoming, Box<BadMessage>> {
    let envelope: Envelope = serde_json::from_slice(line).map_err(|error| {
        let error = match error.classify() {
            Category::Data => Error::Envelope { reason: error.to_string() },
            Category::Syntax | Category::Eof | Category::Io => Error::Syntax { reason: error.to_string() },
        };
        Box::new(BadMessage { id: Value::Null, error })
    })?;
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    let wrong = |id: Option<Value>, reason: &str| {
        let id = id.filter(is_id).unwrap_or_default();
        Err(Box::new(BadMessage { id, error: Error::Envelope { reason: reason.to_owned() } }))
    };
    if jsonrpc.is_none_or(|version| version != "2.0") {
        return wrong(id, "`jsonrpc` must be \"2.0\"");
    }
    match (id, method) {
        (Some(id), Some(method)) if is_id(&id) => {
            Ok(Incoming::Request { id, method, params: Params(params) })
        }
        (Some(_), Some(_)) => wrong(None, "`id` must be a string, an integer or null"),
        (None, Some(method)) => Ok(Incoming::Notification { method, params: Params(params) }),
        (Some(id), None) => match (result, error) {
            (Some(result), None) => Ok(Incoming::Reply { id, result: Ok(result) }),
            (None, Some(error)) => {
                let unreadable = |_| RpcError { code: 0, message: "an error without a message".to_owned() };
                Ok(Incoming::Reply {
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

type ReplySender = oneshot::Sender<std::result::Result<Value, RpcError>>;

/// Sends messages to the editor, in the order of the calls.
#[derive(Clone)]
pub(crate) struct Outbox {
    lines: mpsc::Sender<String>,
    requests: Arc<OpenRequests>,
}

/// Requests to the editor that it has not answered.
#[derive(Default)]
struct OpenRequests {
    last_id: AtomicU64,
    waiting: Mutex<HashMap<u64, ReplySender>>,
}

/// A request to the editor.
pub(crate) struct SentRequest {
    pub(crate) id: u64,
    /// Closed without a value if the connection ends.
    pub(crate) reply: oneshot::Receiver<std::result::Result<Value, RpcError>>,
}

impl Outbox {
    /// The lines have to be written.
    pub(crate) fn new() -> (Self, mpsc::Receiver<String>) {
        let (lines, receiver) = mpsc::channel(MAX_QUEUED_MESSAGES);
        (Self { lines, requests: Arc::default() }, receiver)
    }

    /// Returns when the editor can't be reached any more.
    pub(crate) async fn closed(&self) {
        self.lines.closed().await;
    }

    pub(crate) async fn notify(&self, method: &str, params: impl Serialize) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    pub(crate) async fn reply<T: Serialize>(&self, id: &Value, result: Result<T>) {
        let message = match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": RpcError::from(&error)}),
        };
        self.send(&message).await;
    }

    pub(crate) async fn request(&self, method: &str, params: impl Serialize) -> SentRequest {
        let id = self.requests.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, reply) = oneshot::channel();
        self.waiting().insert(id, sender);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        SentRequest { id, reply }
    }

    /// Takes a request back: its answer no longer matters.
    pub(crate) async fn withdraw(&self, id: u64) {
        if self.waiting().remove(&id).is_some() {
            self.notify("$/cancel_request", json!({"requestId": id})).await;
        }
    }

    /// Hands over the editor's answer to a request. Answers that were not asked for are dropped.
    pub(crate) fn settle(&self, id: &Value, result: &std::result::Result<Value, RpcError>) {
        let waiting = id.as_u64().and_then(|id| self.waiting().remove(&id));
        // The session that asked may have been closed.
        waiting.into_iter().for_each(|sender| drop(sender.send(result.clone())));
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, ReplySender>> {
        self.requests.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, message: &Value) {
        // If the editor is gone, the connection ends, and what is shown no longer matters.
        let _ = self.lines.send(message.to_string()).await;
    }
}

#[cfg(test)]
#[path = "rpc_tests.rs"]
mod tests;
