//! Connections between processes on which the holder of a stream sends live events.
//!
//! The journal only carries lines. Both ends agree on their meaning. The connection is a socket of this machine, a pipe in
//! memory, or whatever an engine has between machines. An empty line means nothing: it shows that a silent connection works.

use std::fmt;
use std::time::Duration;

use longhaul_protocol::StreamName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::mpsc;

/// How long a subscriber may take to read. A slower one has missed so much that it should connect again.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest line. A holder sends shorter ones; what sends a longer one is no holder.
const MAX_LINE_BYTES: usize = 32 << 20;
/// How much is read at once.
const READ_BYTES: usize = 8 << 10;
/// The bytes that wait in a pipe between two tasks. Then its writer waits.
const PIPE_BYTES: usize = 64 << 10;

/// Accepts the subscribers of this process.
#[derive(Debug)]
pub struct Subscribers(pub(crate) mpsc::Receiver<Subscriber>);

impl Subscribers {
    /// The next subscriber; `None` when no more can come.
    pub async fn next(&mut self) -> Option<Subscriber> {
        self.0.recv().await
    }
}

/// Bytes in both directions.
trait Connection: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<C: AsyncRead + AsyncWrite + Send + Sync + Unpin> Connection for C {}

/// The holder's end: a client elsewhere that follows a stream. Dropping this disconnects the client.
pub struct Subscriber {
    stream: StreamName,
    connection: Box<dyn Connection>,
}

impl fmt::Debug for Subscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl Subscriber {
    pub(crate) fn new(
        stream: StreamName,
        connection: impl AsyncRead + AsyncWrite + Send + Sync + Unpin + 'static,
    ) -> Self {
        Self { stream, connection: Box::new(connection) }
    }

    /// A subscriber in this process, and its subscription.
    pub(crate) fn pair(stream: StreamName) -> (Self, Subscription) {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        (Self::new(stream, ours), Subscription::new(theirs))
    }

    /// The stream that the client follows.
    pub fn stream(&self) -> &StreamName {
        &self.stream
    }

    /// Sends lines. Returns false if the client is gone, or has not read for ten seconds.
    pub async fn tell(&mut self, lines: &str) -> bool {
        let written = tokio::time::timeout(WRITE_TIMEOUT, self.connection.write_all(lines.as_bytes())).await;
        matches!(written, Ok(Ok(())))
    }

    /// Waits until the client disconnects. Bytes that it sends meanwhile are ignored.
    pub async fn hung_up(&mut self) {
        let mut ignored = [0; 256];
        while self.connection.read(&mut ignored).await.is_ok_and(|bytes| bytes > 0) {}
    }
}

/// The client's end: the lines that the holder of a stream sends.
pub struct Subscription {
    connection: Box<dyn AsyncRead + Send + Sync + Unpin>,
    buffer: Vec<u8>,
    /// The bytes of the buffer that were returned.
    returned: usize,
    /// The bytes of the buffer in which there is no further end of a line.
    searched: usize,
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl Subscription {
    /// The lines that are read from this connection. Dropping the subscription drops the connection.
    pub fn new(connection: impl AsyncRead + Send + Sync + Unpin + 'static) -> Self {
        Self { connection: Box::new(connection), buffer: Vec::new(), returned: 0, searched: 0 }
    }

    /// A subscription whose lines are what the caller writes into the pipe. Reading from the pipe ends when the subscription is
    /// dropped.
    pub fn piped() -> (DuplexStream, Self) {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        (ours, Self::new(theirs))
    }

    /// The next line; `None` when the holder has disconnected. Dropping this future loses nothing.
    pub async fn next(&mut self) -> Option<String> {
        loop {
            if let Some(line) = self.next_received() {
                return line;
            }
            self.buffer.drain(..self.returned);
            self.searched -= self.returned;
            self.returned = 0;
            if self.buffer.len() > MAX_LINE_BYTES {
                return None;
            }
            self.buffer.reserve(READ_BYTES);
            if self.connection.read_buf(&mut self.buffer).await.ok()? == 0 {
                return None;
            }
        }
    }

    /// A line that has arrived already, if there is one. `Some(None)` if it is not text; then no later line is, either.
    pub fn next_received(&mut self) -> Option<Option<String>> {
        loop {
            let Some(length) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') else {
                self.searched = self.buffer.len();
                return None;
            };
            let (from, end) = (self.returned, self.searched + length);
            (self.returned, self.searched) = (end + 1, end + 1);
            if end > from {
                return Some(String::from_utf8(self.buffer[from..end].to_vec()).ok());
            }
        }
    }
}

#[cfg(test)]
#[path = "subscribers_tests.rs"]
mod tests;
