//! What a server prints to its standard output: messages, one a line. Any other line is dropped, and the first one is kept for a
//! warning, because the user can't see the output. The client of the protocol silently drops an answer that it can't read, so
//! such an answer becomes an error for the call that waits for it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::ServerJsonRpcMessage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::net::UnixStream;
use tokio::task::AbortHandle;

/// The longest message that is read. A longer one ends the connection, because its call could never be answered.
pub(crate) const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// The code of the error that stands for an answer that can't be read. No server uses it.
pub(crate) const UNREADABLE_ANSWER: i32 = -1_719_407;
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
        let first = FirstRequest::default();
        tokio::select! {
            _ = pass_requests(&mut from_client, &mut to_server, &first) => {}
            _ = pass_messages(&mut from_server, &mut to_client, heard, &told, &first) => {}
        }
    });
    (ours, trouble, MessageFilter(passing.abort_handle()))
}

/// The first request of the client asks for the newest protocol. A program that is fetched first may answer it when the client has given it
/// up and has sent another one. The client takes no such answer.
#[derive(Default)]
struct FirstRequest(Mutex<FirstRequestState>);

#[derive(Default)]
enum FirstRequestState {
    /// Not all of it was sent.
    #[default]
    Begun,
    Sent(Value),
    GivenUp(Value),
    Answered,
}

impl FirstRequest {
    fn note_sent(&self, bytes: &[u8], line: &mut Vec<u8>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = bytes;
        if let FirstRequestState::Begun = *state {
            let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return line.extend(bytes) };
            line.extend(&bytes[..end]);
            let request = serde_json::from_slice::<Value>(line).unwrap_or_default();
            (*state, rest) = (FirstRequestState::Sent(request["id"].clone()), &bytes[end + 1..]);
        }
        if let FirstRequestState::Sent(id) = &mut *state
            && !rest.is_empty()
        {
            *state = FirstRequestState::GivenUp(id.take());
        }
    }

    /// Whether an answer to the request with this id comes too late.
    fn is_late_answer(&self, id: &Value) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (FirstRequestState::Sent(asked) | FirstRequestState::GivenUp(asked)) = &*state else {
            return false;
        };
        // Some servers answer with the number as a string.
        let quoted = asked.to_string();
        let is_answer = id == asked || id.as_str() == Some(quoted.as_str());
        let is_late = is_answer && matches!(*state, FirstRequestState::GivenUp(_));
        if is_answer {
            *state = FirstRequestState::Answered;
        }
        is_late
    }
}

async fn pass_requests(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    first: &FirstRequest,
) -> io::Result<()> {
    let (mut chunk, mut line) = (vec![0; CHUNK_BYTES], Vec::new());
    loop {
        let count = from.read(&mut chunk).await?;
        if count == 0 {
            return Ok(());
        }
        first.note_sent(&chunk[..count], &mut line);
        to.write_all(&chunk[..count]).await?;
    }
}

async fn pass_messages(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    mut buffer: Vec<u8>,
    trouble: &OutputTrouble,
    first: &FirstRequest,
) -> io::Result<()> {
    let mut searched = 0;
    loop {
        while let Some(end) = buffer[searched..].iter().position(|byte| *byte == b'\n') {
            let rest = buffer.split_off(searched + end + 1);
            let line = std::mem::replace(&mut buffer, rest);
            searched = 0;
            if line.len() > MAX_MESSAGE_BYTES {
                trouble.lock().fatal = Some(too_long());
                return Ok(());
            }
            let answered = answered_id(&line);
            if answered.as_ref().is_some_and(|id| first.is_late_answer(id)) {
                continue;
            }
            let is_readable = serde_json::from_slice::<ServerJsonRpcMessage>(&line).is_ok();
            match answered.filter(|_| !is_readable) {
                Some(id) => {
                    trouble.lock().stray.get_or_insert_with(|| quote(&line));
                    to.write_all(unreadable_answer(&id).as_bytes()).await?;
                }
                None if is_readable || is_message(&line) => to.write_all(&line).await?,
                None if line.trim_ascii().is_empty() => {}
                None => {
                    trouble.lock().stray.get_or_insert_with(|| quote(&line));
                }
            }
        }
        searched = buffer.len();
        if buffer.len() > MAX_MESSAGE_BYTES {
            trouble.lock().fatal = Some(too_long());
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

fn too_long() -> String {
    format!("it sent a message of more than {} MiB", MAX_MESSAGE_BYTES >> 20)
}

/// The id of the request that a line answers, however much else is wrong in the line. `None` if it is no answer.
fn answered_id(line: &[u8]) -> Option<Value> {
    #[derive(Deserialize)]
    struct Answer {
        id: Value,
        method: Option<IgnoredAny>,
    }
    let Answer { id, method } = serde_json::from_slice(line).ok()?;
    (method.is_none() && !id.is_null()).then_some(id)
}

fn unreadable_answer(id: &Value) -> String {
    let error =
        json!({"code": UNREADABLE_ANSWER, "message": "it answered with what is no message of the protocol"});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

/// Whether a line looks like a JSON-RPC message: the client parses it and answers what is wrong in it.
fn is_message(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"{") && line.ends_with(b"}") && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}

fn quote(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.trim_ascii());
    let end = text.floor_char_boundary(MAX_QUOTED_BYTES);
    longhaul_protocol::printable(&text.as_bytes()[..end]).to_string()
}

#[cfg(test)]
#[path = "output_filter_tests.rs"]
mod tests;
