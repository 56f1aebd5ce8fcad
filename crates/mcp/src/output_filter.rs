//! What a server prints to its standard output: messages, one a line. Any other line is dropped, and the first one is kept for a
//! warning, because the user can't see the output.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::UnixStream;
use tokio::task::AbortHandle;

/// The longest message that is read. A longer one ends the connection, because its call could never be answered.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 << 20;
const DUPLEX_BYTES: usize = 64 << 10;
const CHUNK_BYTES: usize = 64 << 10;
/// Bytes of a stray line to quote.
const MAX_QUOTED_BYTES: usize = 120;

/// What was wrong with a server's output.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputTrouble(Arc<Mutex<Troubles>>);

#[derive(Debug, Default)]
struct Troubles {
    /// The first line that was not a message.
    stray: Option<String>,
    /// Why the connection was closed.
    fatal: Option<String>,
}

impl OutputTrouble {
    /// A warning about lines that were not messages.
    pub(crate) fn warning(&self) -> Option<String> {
        let stray = self.lock().stray.clone()?;
        Some(format!(
            "it prints lines to its standard output that are not messages, such as {stray:?}; they are dropped"
        ))
    }

    /// Why the connection was closed by us.
    pub(crate) fn fatal(&self) -> Option<String> {
        self.lock().fatal.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Troubles> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes messages on until it is dropped. Then the server's connection closes, even if the server reads nothing.
pub(crate) struct MessageFilter(AbortHandle);

impl Drop for MessageFilter {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A stream for the MCP client that carries only whole messages from the server. The server's connection closes with
/// this stream, or with the filter.
pub(crate) fn filter_messages(
    server: UnixStream,
    heard: Vec<u8>,
) -> (DuplexStream, OutputTrouble, MessageFilter) {
    let (ours, theirs) = tokio::io::duplex(DUPLEX_BYTES);
    let trouble = OutputTrouble::default();
    let told = trouble.clone();
    let passing = tokio::spawn(async move {
        let (mut from_server, mut to_server) = server.into_split();
        let (mut from_client, mut to_client) = tokio::io::split(theirs);
        // Either end ends both.
        tokio::select! {
            _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
            _ = pass_messages(&mut from_server, &mut to_client, heard, &told) => {}
        }
    });
    (ours, trouble, MessageFilter(passing.abort_handle()))
}

async fn pass_messages(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut buffer: Vec<u8>,
    trouble: &OutputTrouble,
) -> io::Result<()> {
    let mut searched = 0;
    loop {
        while let Some(end) = buffer[searched..].iter().position(|byte| *byte == b'\n') {
            let rest = buffer.split_off(searched + end + 1);
            let line = std::mem::replace(&mut buffer, rest);
            searched = 0;
            if is_message(&line) {
                to.write_all(&line).await?;
            } else if !line.trim_ascii().is_empty() {
                trouble.lock().stray.get_or_insert_with(|| quote(&line));
            }
        }
        searched = buffer.len();
        if buffer.len() > MAX_MESSAGE_BYTES {
            let limit = MAX_MESSAGE_BYTES >> 20;
            trouble.lock().fatal = Some(format!("it sent a message of more than {limit} MiB"));
            return Ok(());
        }
        let old = buffer.len();
        buffer.resize(old + CHUNK_BYTES, 0);
        let count = from.read(&mut buffer[old..]).await?;
        buffer.truncate(old + count);
        if count == 0 {
            return Ok(());
        }
    }
}

/// Whether a line looks like a JSON-RPC message: the client parses it and answers what is wrong in it.
fn is_message(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"{")
        && line.ends_with(b"}")
        && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok()
}

fn quote(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.trim_ascii());
    let end = text.floor_char_boundary(MAX_QUOTED_BYTES);
    longhaul_protocol::printable(&text.as_bytes()[..end]).to_string()
}

#[cfg(test)]
#[path = "output_filter_tests.rs"]
mod tests;
