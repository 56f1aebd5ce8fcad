//! Connections that stay: somebody in another process who wants to hear what happens in a stream while it happens.
//!
//! What is said on them is not the journal's business: lines go from the process that holds a stream to the one that called.

use std::time::Duration;

use longhaul_protocol::StreamName;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// How long whoever called may take to read; one that takes longer has missed so much that it had better call again.
const READS_WITHIN: Duration = Duration::from_secs(10);

/// Those who call this process, as they come.
#[derive(Debug)]
pub struct Callers(pub(crate) mpsc::Receiver<Caller>);

impl Callers {
    /// The next one; nothing, when no one will come any more.
    pub async fn next(&mut self) -> Option<Caller> {
        self.0.recv().await
    }
}

/// Somebody who wants to hear of a stream. It is hung up on by dropping this.
#[derive(Debug)]
pub struct Caller {
    stream: StreamName,
    socket: UnixStream,
}

impl Caller {
    pub(crate) fn new(stream: StreamName, socket: UnixStream) -> Self {
        Self { stream, socket }
    }

    /// What it wants to hear of.
    pub fn stream(&self) -> &StreamName {
        &self.stream
    }

    /// Says these lines. Whether they were heard: one that does not read for long, or that has gone, can't be told more.
    pub async fn tell(&mut self, lines: &str) -> bool {
        let told = tokio::time::timeout(READS_WITHIN, self.socket.write_all(lines.as_bytes())).await;
        matches!(told, Ok(Ok(())))
    }

    /// Waits until it hangs up. What it says meanwhile is ignored.
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

/// A call to the process that holds a stream.
#[derive(Debug)]
pub struct Call(Lines<BufReader<UnixStream>>);

impl Call {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Self(BufReader::new(socket).lines())
    }

    /// The next line; nothing, when the other side has hung up. Giving up on this loses nothing.
    pub async fn next(&mut self) -> Option<String> {
        self.0.next_line().await.ok().flatten()
    }
}
