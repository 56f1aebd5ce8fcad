//! A response body of server-sent events that a task writes.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use hyper::header::CONTENT_TYPE;
use serde_json::Value;
use tokio::sync::mpsc;

use super::error::OpenaiResult;
use super::follower::TurnFollower;
use super::turn::TurnStep;
use crate::route::EVENT_STREAM;

/// Parts that wait for a client that does not read. Then the writer waits.
const QUEUE_LEN: usize = 64;
/// How long a client may take to read one part. Then it is disconnected; it can come back.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How often a stream sends a comment, so that both ends notice a broken connection.
const COMMENT_INTERVAL: Duration = Duration::from_secs(15);

struct QueueBody(mpsc::Receiver<Bytes>);

impl HttpBody for QueueBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|part| part.map(|part| Ok(Frame::data(part))))
    }
}

/// The client is gone, or has not read for too long.
pub(crate) struct ClientGone;

/// The writing end. Dropping it ends the stream.
pub(crate) struct EventWriter(mpsc::Sender<Bytes>);

/// A stream of events and the end that writes it.
pub(crate) fn event_stream() -> (EventWriter, Response) {
    let (sender, receiver) = mpsc::channel(QUEUE_LEN);
    let headers = [(CONTENT_TYPE, EVENT_STREAM), (hyper::header::CACHE_CONTROL, "no-store")];
    (EventWriter(sender), (headers, Body::new(QueueBody(receiver))).into_response())
}

impl EventWriter {
    /// Writes an event without a name.
    pub(crate) async fn data(&self, data: &str) -> Result<(), ClientGone> {
        self.write(format!("data: {data}\n\n")).await
    }

    /// Writes an event that is named by its `type`.
    pub(crate) async fn event(&self, event: &Value) -> Result<(), ClientGone> {
        let name = event["type"].as_str().unwrap_or("message");
        self.write(format!("event: {name}\ndata: {event}\n\n")).await
    }

    async fn write(&self, part: String) -> Result<(), ClientGone> {
        match tokio::time::timeout(READ_TIMEOUT, self.0.send(Bytes::from(part))).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(ClientGone),
        }
    }

    /// The next step of a turn. Sends comments while it waits.
    pub(crate) async fn next_step(
        &self,
        follower: &mut TurnFollower,
    ) -> Result<OpenaiResult<TurnStep>, ClientGone> {
        loop {
            tokio::select! {
                biased;
                step = follower.next() => return Ok(step),
                () = self.0.closed() => return Err(ClientGone),
                () = tokio::time::sleep(COMMENT_INTERVAL) => self.write(":\n\n".to_owned()).await?,
            }
        }
    }
}
