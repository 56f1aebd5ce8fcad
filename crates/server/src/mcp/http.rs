//! `POST /mcp`: one message a request. A call that waits for a turn is answered with a stream of events, which keeps the connection alive.

use std::future::Future;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{HeaderMap, Method, StatusCode};
use longhaul_jsonrpc::{BadMessage, Message, Params, parse_message};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::dispatch::{McpClient, Work, handle_request};
use super::error::{McpError, McpResult};
use super::request::{ClientContext, Revision};
use super::turn::Progress;
use crate::access::{Access, Caller, Scope};
use crate::body::{read_body, require_content_type};
use crate::events::body::{BodyWriter, COMMENT_INTERVAL, WriterStop, event_stream};
use crate::problem::{ApiResult, Problem};
use crate::route::{EVENT_STREAM, JSON, Route};
use crate::state::ServerState;

/// Notifications that wait to be written.
const MAX_QUEUED_MESSAGES: usize = 16;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::POST, "/mcp", Access::Token(Scope::Act), "The MCP server", handle)
            .header("MCP-Protocol-Version", "The revision of the protocol, such as 2026-07-28.")
            .header("Mcp-Method", "The method, as in the body; from 2026-07-28 on.")
            .header(
                "Mcp-Name",
                "The name of the tool or the id of the task, as in the body; from 2026-07-28 on.",
            )
            .body::<RpcMessage>()
            .answers::<RpcReply>(
                StatusCode::OK,
                "The answer, or a stream of events whose last one is the answer.",
            )
            .answers_raw(EVENT_STREAM, "The answer, or a stream of events whose last one is the answer.")
            .answers_empty(StatusCode::ACCEPTED, "A notification.")
            .answers::<RpcReply>(
                StatusCode::BAD_REQUEST,
                "This is not a message, or it does not fit the protocol.",
            )
            .answers::<RpcReply>(StatusCode::NOT_FOUND, "There is no such method."),
    ]
}

/// A message of JSON-RPC 2.0.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct RpcMessage {
    /// `2.0`.
    jsonrpc: String,
    /// Absent in a notification.
    id: Option<Value>,
    method: Option<String>,
    params: Option<Value>,
}

/// The answer to a message of JSON-RPC 2.0: a result or an error.
#[derive(Serialize, JsonSchema)]
struct RpcReply {
    jsonrpc: &'static str,
    /// The id of the request; null if it has none that can be read.
    id: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
}

impl RpcReply {
    fn new(id: Value, result: McpResult<Value>) -> Self {
        let (result, error) = match result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(json!(error.error))),
        };
        Self { jsonrpc: "2.0", id, result, error }
    }

    fn text(&self) -> String {
        json!(self).to_string()
    }

    fn response(&self, status: StatusCode) -> Response {
        (status, [(CONTENT_TYPE, JSON)], self.text()).into_response()
    }
}

/// A body with one message, or why it has none.
struct MessageBody(Result<Message, Box<BadMessage>>);

impl FromRequest<ServerState> for MessageBody {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &ServerState) -> ApiResult<Self> {
        require_content_type(request.headers(), JSON)?;
        let body = read_body(request, state, state.limits().max_body_bytes).await?;
        Ok(Self(parse_message(&body.bytes)))
    }
}

async fn handle(
    State(state): State<ServerState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    MessageBody(message): MessageBody,
) -> ApiResult<Response> {
    match message {
        Ok(Message::Request { id, method, params }) => {
            let name = caller.token.clone();
            answer_request(McpClient { state, caller, name }, &headers, id, &method, &params).await
        }
        // The server keeps nothing between requests that a notification could change.
        Ok(Message::Notification { .. } | Message::Reply { .. }) => Ok(StatusCode::ACCEPTED.into_response()),
        Err(bad) => {
            let error = McpError::from(&*bad);
            let status = error.status(Revision::Stateless);
            Ok(RpcReply::new(bad.id, Err(error)).response(status))
        }
    }
}

async fn answer_request(
    client: McpClient,
    headers: &HeaderMap,
    id: Value,
    method: &str,
    params: &Params,
) -> ApiResult<Response> {
    let refuse = |id, error: McpError, revision| {
        let status = error.status(revision);
        Ok(RpcReply::new(id, Err(error)).response(status))
    };
    let context = match ClientContext::of_http(method, params, headers) {
        Ok(context) => context,
        Err(error) => return refuse(id, error, Revision::Stateless),
    };
    // Checked before anything is put into a session, so that refusing one stream too many changes nothing.
    let permit = match method {
        "tools/call" | "tasks/result" => Some(client.state.count_follower()?),
        _ => None,
    };
    let pending = match handle_request(&client, &context, method, params).await {
        Ok(Work::Done(result)) => return Ok(RpcReply::new(id, Ok(result)).response(StatusCode::OK)),
        Ok(Work::Wait(pending)) => pending,
        Err(error) => return refuse(id, error, context.revision),
    };
    if !accepts_events(headers) {
        let result = pending.run(&client, &context, None).await;
        return Ok(RpcReply::new(id, result).response(StatusCode::OK));
    }
    let (mut writer, body) = client.state.written_body();
    let (sender, notifications) = mpsc::channel(MAX_QUEUED_MESSAGES);
    tokio::spawn(async move {
        let _permit = permit;
        let progress = Progress::new(context.progress_token.clone(), sender);
        let result = pending.run(&client, &context, progress);
        // The client is gone, or does not read. The turn goes on.
        let _ = write_events(&mut writer, notifications, id, result).await;
    });
    Ok(event_stream(body))
}

fn accepts_events(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT).iter().any(|value| value.to_str().is_ok_and(|value| value.contains(EVENT_STREAM)))
}

/// Writes notifications and, as the last event, the answer. Comments in between keep the connection alive.
async fn write_events(
    writer: &mut BodyWriter,
    mut notifications: mpsc::Receiver<Value>,
    id: Value,
    result: impl Future<Output = McpResult<Value>>,
) -> Result<(), WriterStop> {
    let mut result = std::pin::pin!(result);
    writer.write(Bytes::from_static(b":\n\n")).await?;
    let result = loop {
        tokio::select! {
            biased;
            result = &mut result => break result,
            Some(notification) = notifications.recv() => {
                writer.write(Bytes::from(format!("data: {notification}\n\n"))).await?;
            }
            WriterStop::Gone = writer.stopped() => return Err(WriterStop::Gone),
            () = tokio::time::sleep(COMMENT_INTERVAL) => writer.write(Bytes::from_static(b":\n\n")).await?,
        }
    };
    while let Ok(notification) = notifications.try_recv() {
        writer.write(Bytes::from(format!("data: {notification}\n\n"))).await?;
    }
    writer.write(Bytes::from(format!("data: {}\n\n", RpcReply::new(id, result).text()))).await
}
