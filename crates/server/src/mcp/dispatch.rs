//! The methods of the server.

use longhaul_jsonrpc::Params;
use longhaul_protocol::Sender;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::{McpError, McpResult};
use super::question::{ElicitationResponse, check_agent_answer, elicitations};
use super::request::{ClientContext, Revision, STATELESS_VERSION, SUPPORTED_VERSIONS, TASKS_EXTENSION};
use super::task::{TaskId, TurnTask};
use super::tools::{call_tool, tool_list};
use super::turn::{Progress, TurnStatus, TurnWait, WaitEnd};
use crate::access::Caller;
use crate::state::ServerState;

const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
const RELATED_TASK_KEY: &str = "io.modelcontextprotocol/related-task";
/// How long a client may keep the list of tools, in milliseconds. It changes with a new version only.
const LIST_TTL_MS: u64 = 3_600_000;
const INSTRUCTIONS: &str = "Longhaul runs long-lived agent sessions. session_send gives a session work and returns its answer; a \
    turn survives restarts of this server. A turn may stop at a question for a person: answer it with session_answer only if you \
    have that person's answer.";

/// One client of the server.
#[derive(Clone)]
pub(super) struct McpClient {
    pub(super) state: ServerState,
    pub(super) caller: Caller,
    /// Who its inputs are from.
    pub(super) name: String,
}

impl McpClient {
    /// Who its inputs and answers are from (P8).
    pub(super) fn sender(&self) -> Sender {
        Sender::Agent { name: self.name.clone() }
    }
}

/// The outcome of handling a request.
pub(super) enum Work {
    /// The result.
    Done(Value),
    /// The client waits for a turn.
    Wait(Box<PendingResult>),
}

/// The result of a call that comes with a turn.
pub(super) struct PendingResult {
    pub(super) turn: TurnWait,
    pub(super) of: ResultOf,
}

/// What a result answers.
pub(super) enum ResultOf {
    /// `tools/call`.
    Call,
    /// `tools/call` of `session_send`, whose turn has this task. A client with forms may answer a question by repeating its call.
    Send(TaskId),
    /// `tasks/result` with this id.
    Task(String),
}

impl PendingResult {
    /// The result, once the turn has one.
    pub(super) async fn run(
        self,
        client: &McpClient,
        context: &ClientContext,
        progress: Option<Progress>,
    ) -> McpResult<Value> {
        let report = self.turn.run(client.state.journal(), client.state.shutdown(), progress).await?;
        let result = match (self.of, &report.status) {
            // Questions of an earlier turn are not answered with this call.
            (ResultOf::Send(task), TurnStatus::Asking(questions))
                if context.has_forms && report.turn.is_some() =>
            {
                json!({
                    "resultType": "input_required",
                    "inputRequests": elicitations(questions, &client.caller),
                    "requestState": task.to_string(),
                })
            }
            (ResultOf::Task(task), _) => {
                let mut result = report.result();
                result["_meta"] = json!({RELATED_TASK_KEY: {"taskId": task}});
                result
            }
            _ => report.result(),
        };
        Ok(complete(context, result))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InitializeParams {
    #[serde(default)]
    protocol_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskParams {
    task_id: String,
    #[serde(default)]
    input_responses: Map<String, Value>,
}

/// Carries out a request.
pub(super) async fn handle_request(
    client: &McpClient,
    context: &ClientContext,
    method: &str,
    params: &Params,
) -> McpResult<Work> {
    let result = match (method, context.revision) {
        ("initialize", Revision::Handshake) => {
            let InitializeParams { protocol_version } = parse(method, params)?;
            initialize_result(&protocol_version)
        }
        ("ping", Revision::Handshake) => json!({}),
        ("server/discover", Revision::Stateless) => discover_result(),
        ("tools/list", revision) => cacheable(revision, json!({"tools": tool_list(revision)})),
        ("tools/call", _) => return call_tool(client, context, parse(method, params)?).await,
        ("tasks/get" | "tasks/update" | "tasks/cancel", Revision::Stateless) if !context.wants_task => {
            return Err(McpError::missing_tasks(method));
        }
        ("tasks/get", _) => find_task(client, method, params).await?.0.to_json(context, &client.caller),
        ("tasks/result", Revision::Handshake) => {
            let (task, TaskParams { task_id, .. }) = find_task(client, method, params).await?;
            let (locator, turn) = (task.locator(), task.report.turn);
            let turn = TurnWait { session: task.session, locator, turn, until: WaitEnd::Turn };
            return Ok(Work::Wait(Box::new(PendingResult { turn, of: ResultOf::Task(task_id) })));
        }
        ("tasks/update", Revision::Stateless) => {
            let (task, TaskParams { input_responses, .. }) = find_task(client, method, params).await?;
            answer_questions(client, method, &task, &input_responses).await?;
            json!({})
        }
        ("tasks/cancel", revision) => {
            let (task, TaskParams { task_id, .. }) = find_task(client, method, params).await?;
            cancel_task(client, context, revision, &task, &task_id).await?
        }
        _ => return Err(McpError::unknown_method(method)),
    };
    Ok(Work::Done(complete(context, result)))
}

fn parse<T: for<'de> Deserialize<'de>>(method: &str, params: &Params) -> McpResult<T> {
    params.parse().map_err(|error| McpError::params(method, error))
}

/// The result in the form of the client's revision. In the stateless one, each result says that it is complete and names the server.
pub(super) fn complete(context: &ClientContext, mut result: Value) -> Value {
    if context.revision == Revision::Stateless
        && let Some(fields) = result.as_object_mut()
    {
        fields.entry("resultType").or_insert_with(|| json!("complete"));
        let meta = fields.entry("_meta").or_insert_with(|| json!({}));
        meta[SERVER_INFO_KEY] = server_info();
    }
    result
}

fn cacheable(revision: Revision, mut result: Value) -> Value {
    if revision == Revision::Stateless {
        result["ttlMs"] = json!(LIST_TTL_MS);
        result["cacheScope"] = json!("public");
    }
    result
}

fn server_info() -> Value {
    json!({"name": "longhaul", "title": "Longhaul", "version": env!("CARGO_PKG_VERSION")})
}

/// The revision that the client asks for, if it is one with a handshake; else the newest such one.
fn initialize_result(requested: &str) -> Value {
    let mut with_handshake = SUPPORTED_VERSIONS.into_iter().filter(|version| *version != STATELESS_VERSION);
    let newest = SUPPORTED_VERSIONS[1];
    let version = with_handshake.find(|version| *version == requested).unwrap_or(newest);
    let tasks = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}, "tasks": tasks},
        "serverInfo": server_info(),
        "instructions": INSTRUCTIONS,
    })
}

fn discover_result() -> Value {
    let result = json!({
        "supportedVersions": SUPPORTED_VERSIONS,
        "capabilities": {"tools": {}, "extensions": {TASKS_EXTENSION: {}}},
        "instructions": INSTRUCTIONS,
    });
    cacheable(Revision::Stateless, result)
}

async fn find_task(client: &McpClient, method: &str, params: &Params) -> McpResult<(TurnTask, TaskParams)> {
    let params: TaskParams = parse(method, params)?;
    Ok((TurnTask::find(&client.state, &params.task_id).await?, params))
}

/// Answers open questions of a task. Skips questions that are unknown or already answered.
pub(super) async fn answer_questions(
    client: &McpClient,
    method: &str,
    task: &TurnTask,
    responses: &Map<String, Value>,
) -> McpResult<()> {
    let TurnStatus::Asking(questions) = &task.report.status else { return Ok(()) };
    for question in questions {
        let Some(response) = responses.get(&question.id.to_string()) else { continue };
        let wrong =
            |reason: String| McpError::params(method, format!("inputResponses.{}: {reason}", question.id));
        let response: ElicitationResponse =
            serde_json::from_value(response.clone()).map_err(|error| wrong(error.to_string()))?;
        let answer =
            response.answer(question).ok_or_else(|| wrong("content.answer is missing".to_owned()))?;
        check_agent_answer(&client.caller, question, answer)?;
        match task.session.put_answer_of(client.sender(), question.id, answer).await {
            // Another client was faster.
            Err(longhaul_agent::Error::QuestionSettled { .. }) => {}
            answered => drop(answered?),
        }
    }
    Ok(())
}

async fn cancel_task(
    client: &McpClient,
    context: &ClientContext,
    revision: Revision,
    task: &TurnTask,
    id: &str,
) -> McpResult<Value> {
    match revision {
        Revision::Stateless => {
            task.cancel().await?;
            Ok(json!({}))
        }
        Revision::Handshake if task.has_ended() => {
            Err(McpError::params("tasks/cancel", format!("the task {id:?} has ended already")))
        }
        Revision::Handshake => {
            task.cancel().await?;
            // The order is on disk, and this revision expects the state that follows from it.
            let mut cancelled = TurnTask::find(&client.state, id).await?.to_json(context, &client.caller);
            cancelled["status"] = json!("cancelled");
            Ok(cancelled)
        }
    }
}
