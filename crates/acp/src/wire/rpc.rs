//! JSON-RPC with the editor: one message a line, in both directions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longhaul_jsonrpc::{Params, RpcError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::error::{Error, Result};

/// The most messages that wait to be written. If the editor does not read, its sessions wait, and the runtime merges their events.
const MAX_QUEUED_MESSAGES: usize = 256;

/// Parses the parameters of a method. The error names the method.
pub(crate) fn parse_params<T: for<'de> Deserialize<'de>>(params: &Params, method: &str) -> Result<T> {
    params.parse().map_err(|error| Error::params(method, error))
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
