//! The events of a turn, written to a response body in OpenAI's forms.

use axum::body::Bytes;
use axum::response::Response;
use longhaul_agent::TurnStep;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::error::{OpenaiError, OpenaiResult};
use super::follower::TurnSteps;
use crate::events::body::{BodyWriter, COMMENT_INTERVAL, RECONNECT_DELAY_MS, WriterStop, event_stream};
use crate::state::ServerState;

/// The client is gone, or has not read for too long, or the server stops.
pub(crate) struct StreamClosed;

/// The writing end. Dropping it ends the stream.
pub(crate) struct EventWriter {
    body: BodyWriter,
    /// Counts this follower as long as its stream is open.
    _follower: OwnedSemaphorePermit,
}

/// Counts a stream, if the client wants one. Before anything is put into a session: a stream too many is refused.
pub(crate) fn count_stream(
    state: &ServerState,
    stream: Option<bool>,
) -> OpenaiResult<Option<OwnedSemaphorePermit>> {
    Ok(if stream == Some(true) { Some(state.count_follower()?) } else { None })
}

/// A stream of events and the end that writes it.
pub(crate) fn turn_stream(state: &ServerState, follower: OwnedSemaphorePermit) -> (EventWriter, Response) {
    let (body, stream) = state.written_body();
    (EventWriter { body, _follower: follower }, event_stream(stream))
}

impl EventWriter {
    /// Writes an event without a name.
    pub(crate) async fn data(&mut self, data: &str) -> Result<(), StreamClosed> {
        self.write(format!("data: {data}\n\n")).await
    }

    /// Writes an event that is named by its `type`.
    pub(crate) async fn event(&mut self, event: &Value) -> Result<(), StreamClosed> {
        let name = event["type"].as_str().unwrap_or("message");
        self.write(format!("event: {name}\ndata: {event}\n\n")).await
    }

    /// Writes a comment, so that the client gets the headers and proxies see that the stream lives.
    pub(crate) async fn comment(&mut self) -> Result<(), StreamClosed> {
        self.write(":\n\n".to_owned()).await
    }

    /// Writes the error that ends the stream. If the server stops, the same event says when to come back: official clients
    /// can't read a `retry:` that comes alone.
    pub(crate) async fn error(
        &mut self,
        error: &OpenaiError,
        name: Option<&str>,
        data: &Value,
    ) -> Result<(), StreamClosed> {
        let retry =
            if error.is_stopping() { format!("retry: {RECONNECT_DELAY_MS}\n") } else { String::new() };
        let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        self.write(format!("{retry}{name}data: {data}\n\n")).await
    }

    async fn write(&mut self, part: String) -> Result<(), StreamClosed> {
        self.body.write(Bytes::from(part)).await.map_err(|_| StreamClosed)
    }

    /// The next step of a turn. Sends comments while it waits.
    pub(crate) async fn next_step(
        &mut self,
        steps: &mut TurnSteps,
    ) -> Result<OpenaiResult<TurnStep>, StreamClosed> {
        loop {
            tokio::select! {
                biased;
                step = steps.next() => return Ok(step),
                stop = self.body.stopped() => match stop {
                    WriterStop::Gone => return Err(StreamClosed),
                    // The steps end too, with an error for the client.
                    WriterStop::Shutdown => return Ok(steps.next().await),
                },
                () = tokio::time::sleep(COMMENT_INTERVAL) => self.comment().await?,
            }
        }
    }
}
