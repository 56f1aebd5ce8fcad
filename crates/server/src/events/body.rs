//! A response body that a task writes.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use tokio::sync::{mpsc, watch};

use crate::route::EVENT_STREAM;

/// Parts of a body that wait for the connection. Then its writer waits.
const BODY_QUEUE_LEN: usize = 16;
/// When a client should come back after the server has stopped, or after it was too slow.
pub(crate) const RECONNECT_DELAY_MS: u64 = 1_000;
/// How often a stream sends a comment, so that both ends notice a broken connection.
pub(crate) const COMMENT_INTERVAL: Duration = Duration::from_secs(15);
/// Proxies such as nginx must not collect the events.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// The reading end, which the connection polls.
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

/// The writing end of a body. Dropping it ends the body.
pub(crate) struct BodyWriter {
    parts: mpsc::Sender<Bytes>,
    shutdown: watch::Receiver<bool>,
    /// How long the client may take to read one part.
    read_timeout: Duration,
}

/// Why nothing more can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterStop {
    /// The client is gone, or has not read for too long.
    Gone,
    /// The server stops.
    Shutdown,
}

/// A body and the end that writes it.
pub(crate) fn written_body(shutdown: watch::Receiver<bool>, read_timeout: Duration) -> (BodyWriter, Body) {
    let (parts, receiver) = mpsc::channel(BODY_QUEUE_LEN);
    (BodyWriter { parts, shutdown, read_timeout }, Body::new(QueueBody(receiver)))
}

/// A response with server-sent events.
pub(crate) fn event_stream(body: Body) -> Response {
    let headers = [(CONTENT_TYPE, EVENT_STREAM), (CACHE_CONTROL, "no-store"), (NO_BUFFERING, "no")];
    (headers, body).into_response()
}

impl BodyWriter {
    /// Writes a part. Waits while the client does not read.
    pub(crate) async fn write(&mut self, part: Bytes) -> Result<(), WriterStop> {
        tokio::select! {
            biased;
            sent = tokio::time::timeout(self.read_timeout, self.parts.send(part)) => match sent {
                Ok(Ok(())) => Ok(()),
                _ => Err(WriterStop::Gone),
            },
            _ = self.shutdown.wait_for(|stopped| *stopped) => Err(WriterStop::Shutdown),
        }
    }

    /// Waits until nothing more can be written.
    pub(crate) async fn stopped(&mut self) -> WriterStop {
        tokio::select! {
            () = self.parts.closed() => WriterStop::Gone,
            _ = self.shutdown.wait_for(|stopped| *stopped) => WriterStop::Shutdown,
        }
    }

    /// Tells the client when to come back, and ends the body.
    pub(crate) fn end_with_retry(self) {
        let _ = self.parts.try_send(Bytes::from(format!("retry: {RECONNECT_DELAY_MS}\n\n")));
    }
}
