//! Connections between processes on which the holder of a stream sends live events.
//!
//! The journal only carries lines. Both ends agree on their meaning.

use std::time::Duration;

use longhaul_protocol::StreamName;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// How long a subscriber may take to read. A slower one has missed so much that it should connect again.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Accepts the subscribers of this process.
#[derive(Debug)]
pub struct Subscribers(pub(crate) mpsc::Receiver<Subscriber>);

impl Subscribers {
    /// The next subscriber; `None` when no more can come.
    pub async fn next(&mut self) -> Option<Subscriber> {
        self.0.recv().await
    }
}

/// The holder's end: a client in another process that follows a stream. Dropping this disconnects the client.
#[derive(Debug)]
pub struct Subscriber {
    stream: StreamName,
    socket: UnixStream,
}

impl Subscriber {
    pub(crate) fn new(stream: StreamName, socket: UnixStream) -> Self {
        Self { stream, socket }
    }

    /// The stream that the client follows.
    pub fn stream(&self) -> &StreamName {
        &self.stream
    }

    /// Sends lines. Returns false if the client is gone, or has not read for ten seconds.
    pub async fn tell(&mut self, lines: &str) -> bool {
        let written = tokio::time::timeout(WRITE_TIMEOUT, self.socket.write_all(lines.as_bytes())).await;
        matches!(written, Ok(Ok(())))
    }

    /// Waits until the client disconnects. Bytes that it sends meanwhile are ignored.
    pub async fn hung_up(&self) {
        let mut ignored = [0; 256];
        while self.socket.readable().await.is_ok() {
            match self.socket.try_read(&mut ignored) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
}

/// The client's end: the lines that the holder of a stream sends.
#[derive(Debug)]
pub struct Subscription(Lines<BufReader<UnixStream>>);

impl Subscription {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self(BufReader::new(socket).lines())
    }

    /// The next line; `None` when the holder has disconnected. Dropping this future loses nothing.
    pub async fn next(&mut self) -> Option<String> {
        self.0.next_line().await.ok().flatten()
    }
}
