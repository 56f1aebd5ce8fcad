//! A response body that a task writes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

use crate::route::EVENT_STREAM;

/// Parts of a body that wait for the connection. Then its writer waits.
const BODY_QUEUE_LEN: usize = 16;
/// When a client should come back after the server has stopped, or after it was too slow.
pub(crate) const RECONNECT_DELAY_MS: u64 = 1_000;
/// How often a stream sends a comment, so that both ends notice a broken connection.
pub(crate) const COMMENT_INTERVAL: Duration = Duration::from_secs(15);
/// The same after a session could not be read any more, which seldom passes.
pub(crate) const FAILURE_DELAY_MS: u64 = 60_000;
/// Proxies such as nginx must not collect the events.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Room that a writer waits for that has given up its place meanwhile.
const WAITED_ROOM: usize = BODY_QUEUE_LEN / 2;

/// The body breaks off: the client must not take what it has for all there is.
#[derive(Debug, thiserror::Error)]
#[error("the body broke off")]
struct BrokenOff;

/// The reading end, which the connection polls.
struct QueueBody {
    parts: mpsc::Receiver<Bytes>,
    breaks_off: Arc<AtomicBool>,
}

impl HttpBody for QueueBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        self.parts.poll_recv(context).map(|part| match part {
            Some(part) => Some(Ok(Frame::data(part))),
            None => self.breaks_off.swap(false, Ordering::AcqRel).then_some(Err(BrokenOff)),
        })
    }
}

/// The writing end of a body. Dropping it ends the body.
pub(crate) struct BodyWriter {
    parts: mpsc::Sender<Bytes>,
    breaks_off: Arc<AtomicBool>,
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
    let breaks_off = Arc::new(AtomicBool::new(false));
    let body = QueueBody { parts: receiver, breaks_off: breaks_off.clone() };
    (BodyWriter { parts, breaks_off, shutdown, read_timeout }, Body::new(body))
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

    /// Writes a part if the client has read enough. Otherwise gives it back.
    pub(crate) fn try_write(&mut self, part: Bytes) -> Result<Option<Bytes>, WriterStop> {
        match self.parts.try_send(part) {
            _ if *self.shutdown.borrow() => Err(WriterStop::Shutdown),
            Ok(()) => Ok(None),
            Err(TrySendError::Full(part)) => Ok(Some(part)),
            Err(TrySendError::Closed(_)) => Err(WriterStop::Gone),
        }
    }

    /// Waits until the client has read several parts.
    pub(crate) async fn wait_for_room(&mut self) -> Result<(), WriterStop> {
        let mut room = Vec::with_capacity(WAITED_ROOM);
        while room.len() < WAITED_ROOM {
            tokio::select! {
                biased;
                reserved = tokio::time::timeout(self.read_timeout, self.parts.reserve()) => match reserved {
                    Ok(Ok(reserved)) => room.push(reserved),
                    _ => return Err(WriterStop::Gone),
                },
                _ = self.shutdown.wait_for(|stopped| *stopped) => return Err(WriterStop::Shutdown),
            }
        }
        Ok(())
    }

    /// Ends the body so that the client sees that something is missing.
    pub(crate) fn break_off(self) {
        self.breaks_off.store(true, Ordering::Release);
    }

    /// Waits until nothing more can be written.
    pub(crate) async fn stopped(&mut self) -> WriterStop {
        tokio::select! {
            () = self.parts.closed() => WriterStop::Gone,
            _ = self.shutdown.wait_for(|stopped| *stopped) => WriterStop::Shutdown,
        }
    }

    /// Tells the client when to come back, and ends the body.
    pub(crate) fn end_with_retry(self, delay_ms: u64) {
        let _ = self.parts.try_send(Bytes::from(format!("retry: {delay_ms}\n\n")));
    }
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
