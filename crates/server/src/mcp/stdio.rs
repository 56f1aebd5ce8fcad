//! The server at standard input and output: one message a line.

use std::collections::HashMap;
use std::time::Duration;

use longhaul_agent::{Runtime, SessionActivity, session_overview};
use longhaul_journal::all_sessions;
use longhaul_jsonrpc::{
    BadMessage, Line, LineReader, MAX_LINE_BYTES, Message, Params, parse_message, write_lines,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::dispatch::{McpClient, Work, handle_request};
use super::error::{McpError, McpResult};
use super::request::ClientContext;
use super::turn::Progress;
use crate::ServerOptions;
use crate::access::{Caller, Scope};
use crate::problem::ApiResult;
use crate::state::ServerState;
use crate::tokens::TokenStore;

/// The most requests that may be open at once. Only a faulty client has more.
const MAX_OPEN_REQUESTS: usize = 256;
/// Messages that wait to be written. Requests wait for a client that does not read.
const MAX_QUEUED_MESSAGES: usize = 256;
/// How long requests may wait for their turns after the end of the input. Turns that go on were handed over before.
const END_GRACE: Duration = Duration::from_secs(10);
/// How long the last answers may take to write.
const WRITE_GRACE: Duration = Duration::from_secs(1);
/// Bytes of a client's name that are recorded with its inputs.
const MAX_NAME_BYTES: usize = 200;
/// The name of a client that gives none.
const UNNAMED_CLIENT: &str = "an MCP client";
/// What a client at standard input may do: the same as a token for programs.
const LOCAL_SCOPE: Scope = Scope::Act;

/// Serves an MCP client at `input` and `output` until its input ends or it takes no more output. `hand_over` gets the keys of the sessions
/// whose turn is not over then and which no other process runs: at once, because a client may kill this process soon, and again for what its
/// last requests have begun.
pub async fn serve_mcp(
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    runtime: &Runtime,
    mut hand_over: impl AsyncFnMut(Vec<String>),
) {
    let (stop, stopped) = watch::channel(false);
    let tokens = TokenStore::with_file(None);
    let state = ServerState::new(runtime.clone(), tokens, &ServerOptions::default(), stopped);
    let (outbox, messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
    let writing = tokio::spawn(write_lines(messages, output));
    let mut connection = Connection {
        state,
        name: UNNAMED_CLIENT.to_owned(),
        outbox: outbox.clone(),
        open: HashMap::new(),
        tasks: JoinSet::new(),
    };
    let mut reader = LineReader::new(input, MAX_LINE_BYTES);
    loop {
        tokio::select! {
            line = reader.next() => match line {
                Ok(Some(line)) => connection.handle_line(line).await,
                // An input that can't be read any more has ended.
                Ok(None) | Err(_) => break,
            },
            Some(done) = connection.tasks.join_next(), if !connection.tasks.is_empty() => {
                // A request that was given up has left the table already.
                done.ok().map(|id| connection.open.remove(&id));
            }
            () = outbox.closed() => break,
        }
    }
    // If the journal can't be read, no process can go on with its sessions either.
    let unfinished = find_unfinished(runtime).await.unwrap_or_default();
    hand_over(unfinished.clone()).await;
    connection.end(&stop).await;
    drop(outbox);
    let _ = tokio::time::timeout(WRITE_GRACE, writing).await;
    let mut begun_last = find_unfinished(runtime).await.unwrap_or_default();
    begun_last.retain(|key| !unfinished.contains(key));
    hand_over(begun_last).await;
}

/// The sessions with an open turn or a waiting input that this process runs, or that no process runs. One that waits for an answer has
/// nothing to go on with.
async fn find_unfinished(runtime: &Runtime) -> ApiResult<Vec<String>> {
    let journal = runtime.journal();
    let (mut sessions, mut unfinished) = (all_sessions(&*journal), Vec::new());
    while let Some(entry) = sessions.next().await? {
        if entry.trashed {
            continue;
        }
        let activity = session_overview(&*journal, &entry).await.unwrap_or_default().activity;
        let has_work = matches!(activity, SessionActivity::Working(_) | SessionActivity::Interrupted(_));
        if has_work && runtime.session_of(&entry).other_holder().await?.is_none() {
            unfinished.push(entry.key);
        }
    }
    Ok(unfinished)
}

struct Connection {
    state: ServerState,
    /// What the client calls itself, by its handshake.
    name: String,
    outbox: mpsc::Sender<Value>,
    /// The requests that are being worked on, by their ids as JSON.
    open: HashMap<String, AbortHandle>,
    /// They end with their id.
    tasks: JoinSet<String>,
}

#[derive(Deserialize)]
struct HandshakeParams {
    #[serde(rename = "clientInfo", default)]
    client_info: Value,
}

#[derive(Deserialize)]
struct CancelledParams {
    #[serde(rename = "requestId")]
    request_id: Value,
}

impl Connection {
    async fn handle_line(&mut self, line: Line) {
        let message = match line {
            Line::Text(line) => parse_message(&line),
            Line::TooLong => Err(Box::new(BadMessage::too_long())),
        };
        match message {
            Ok(Message::Request { id, method, params }) => self.start_request(id, method, params).await,
            Ok(Message::Notification { method, params }) if method == "notifications/cancelled" => {
                self.abandon_request(&params);
            }
            // Other notifications mean nothing here, and this server sends no requests that could have replies.
            Ok(Message::Notification { .. } | Message::Reply { .. }) => {}
            Err(bad) => send_reply(&self.outbox, &bad.id, Err(McpError::from(&*bad))).await,
        }
    }

    /// Works on a request beside the others: one may wait for a turn.
    async fn start_request(&mut self, id: Value, method: String, params: Params) {
        let open_id = id.to_string();
        if self.open.len() >= MAX_OPEN_REQUESTS || self.open.contains_key(&open_id) {
            let reason = match self.open.contains_key(&open_id) {
                true => "a request with this id is being worked on".to_owned(),
                false => format!("{MAX_OPEN_REQUESTS} requests are being worked on; wait for their answers"),
            };
            return send_reply(&self.outbox, &id, Err(McpError::params(&method, reason))).await;
        }
        if method == "initialize"
            && let Ok(HandshakeParams { client_info }) = params.parse()
            && let Some(name) = client_info["name"].as_str()
        {
            self.name = name.to_owned();
        }
        let (state, name, outbox) = (self.state.clone(), self.name.clone(), self.outbox.clone());
        let task_id = open_id.clone();
        let task = self.tasks.spawn(async move {
            let result = run_request(state, name, &outbox, &method, &params).await;
            send_reply(&outbox, &id, result).await;
            task_id
        });
        self.open.insert(open_id, task);
    }

    /// The client no longer waits for a request. What the request has sent goes on.
    fn abandon_request(&mut self, params: &Params) {
        if let Ok(CancelledParams { request_id }) = params.parse()
            && let Some(task) = self.open.remove(&request_id.to_string())
        {
            task.abort();
        }
    }

    /// Lets the requests end. Those that still wait for a turn then are told that the server stops.
    async fn end(mut self, stop: &watch::Sender<bool>) {
        for grace in [END_GRACE, WRITE_GRACE] {
            let ended = async { while self.tasks.join_next().await.is_some() {} };
            tokio::select! {
                _ = tokio::time::timeout(grace, ended) => {}
                // The client is gone, so the answers have no reader.
                () = self.outbox.closed() => {}
            }
            stop.send_replace(true);
        }
        self.tasks.abort_all();
    }
}

async fn run_request(
    state: ServerState,
    name: String,
    outbox: &mpsc::Sender<Value>,
    method: &str,
    params: &Params,
) -> McpResult<Value> {
    let mut context = ClientContext::of_line(method, params)?;
    let mut name = context.name.take().unwrap_or(name);
    name.truncate(name.floor_char_boundary(MAX_NAME_BYTES));
    let client = McpClient { state, caller: Caller::local(LOCAL_SCOPE), name };
    match handle_request(&client, &context, method, params).await? {
        Work::Done(result) => Ok(result),
        Work::Wait(pending) => {
            let progress = Progress::new(context.progress_token.clone(), outbox.clone());
            pending.run(&client, &context, progress).await
        }
    }
}

async fn send_reply(outbox: &mpsc::Sender<Value>, id: &Value, result: McpResult<Value>) {
    let reply = match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error.error}),
    };
    // If the client is gone, the connection ends.
    let _ = outbox.send(reply).await;
}
