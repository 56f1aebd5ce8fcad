//! A task that a server made of a call: polled until it ends, over failed polls and new connections.

use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::SessionId;
use longhaul_tools::StopSignal;
use rmcp::model::{CallToolResult, TaskPayload};
use serde_json::Value;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::server::Server;
use crate::{Error, Result};

/// How often a task is polled if the server names no interval, and the range of what it may name.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How long polls may fail, one after the other, before the task is given up.
const RETRY_TIME: Duration = Duration::from_secs(5 * 60);
/// The backoff after a failed poll. It doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// A task of a server. Its call may have been made by a process that is gone.
pub(crate) struct RemoteTask {
    pub(crate) server: Arc<Server>,
    pub(crate) session: SessionId,
    pub(crate) id: String,
}

/// Polls that failed, one after the other.
struct FailedPolls {
    since: Option<Instant>,
    backoff: Duration,
}

impl RemoteTask {
    /// Polls the task until it ends. A poll that fails with its connection is repeated over the next one.
    pub(crate) async fn wait(&self, mut stop: StopSignal) -> Result<CallToolResult> {
        let mut failed = FailedPolls { since: None, backoff: FIRST_BACKOFF };
        loop {
            let connected = tokio::select! {
                connected = self.server.ready() => connected,
                () = stop.asked() => return self.cancel().await,
            };
            let polled = match connected {
                Ok(connection) => {
                    let polled = self.poll(&connection, &mut stop, &mut failed).await;
                    polled.inspect_err(|error| self.server.fail_connection(&connection, error))
                }
                Err(error) => Err(error),
            };
            let error = match polled {
                Err(Error::Cancelled) => return self.cancel().await,
                Err(error) => error,
                Ok(result) => return Ok(result),
            };
            let is_transient =
                matches!(error, Error::Ended(_) | Error::Timeout { .. } | Error::NotStarted(_));
            let Some(backoff) = failed.next_backoff().filter(|_| is_transient) else { return Err(error) };
            tokio::select! {
                () = tokio::time::sleep(backoff) => {}
                () = stop.asked() => return self.cancel().await,
            }
        }
    }

    /// Polls the task over one connection.
    async fn poll(
        &self,
        connection: &Connection,
        stop: &mut StopSignal,
        failed: &mut FailedPolls,
    ) -> Result<CallToolResult> {
        let _open = connection.calls().begin(self.session, stop.line().clone());
        loop {
            let task = tokio::select! {
                task = connection.get_task(&self.id) => task?,
                () = stop.asked() => return Err(Error::Cancelled),
            };
            failed.clear();
            match task.payload {
                TaskPayload::Completed { result } => {
                    let result: std::result::Result<CallToolResult, _> =
                        serde_json::from_value(Value::Object(result));
                    return result.map_err(|error| {
                        Error::Unreadable(format!("the result of its task can't be read: {error}"))
                    });
                }
                TaskPayload::Failed { error } => {
                    let message =
                        error.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
                    return Err(Error::TaskFailed(format!("its task failed: {message}")));
                }
                TaskPayload::Cancelled => {
                    return Err(Error::TaskFailed("its task was cancelled there".to_owned()));
                }
                TaskPayload::InputRequired { input_requests } => {
                    connection.answer_task(&self.id, input_requests, stop).await?;
                }
                _ => {}
            }
            let interval = task.task.poll_interval_ms.map_or(POLL_INTERVAL, Duration::from_millis);
            tokio::select! {
                () = tokio::time::sleep(interval.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)) => {}
                () = stop.asked() => return Err(Error::Cancelled),
            }
        }
    }

    async fn cancel(&self) -> Result<CallToolResult> {
        if let Some(connection) = self.server.live_connection() {
            connection.cancel_task(&self.id).await;
        }
        Err(Error::Cancelled)
    }
}

impl FailedPolls {
    fn clear(&mut self) {
        (self.since, self.backoff) = (None, FIRST_BACKOFF);
    }

    /// How long to wait before the next poll. `None` if polls have failed for too long.
    fn next_backoff(&mut self) -> Option<Duration> {
        let since = *self.since.get_or_insert_with(Instant::now);
        let backoff = self.backoff;
        self.backoff = (backoff * 2).min(MAX_BACKOFF);
        (since.elapsed() < RETRY_TIME).then_some(backoff)
    }
}
