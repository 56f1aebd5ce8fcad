//! One connection to a running server.

use std::sync::Arc;
use std::time::Duration;

use longhaul_keeper::Tasks;
use longhaul_protocol::{SessionId, TaskId};
use longhaul_tools::StopSignal;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest, GetTaskParams,
    InputRequest, InputRequests, InputResponses, PaginatedRequestParams, ProtocolVersion, RequestId,
    ServerResult, TaskPayload, UpdateTaskParams,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RunningService,
    RunningServiceCancellationToken, ServiceError,
};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};

use crate::catalogue::Catalogue;
use crate::elicitation;
use crate::handler::Handler;
use crate::http_connection::{self, root_cause, service_cause};
use crate::launch::{LaunchedServer, describe_end};
use crate::login::LoginAccess;
use crate::open_calls::OpenCalls;
use crate::output_filter::{MessageFilter, OutputTrouble, filter_messages};
use crate::{Error, Result, ServerSettings};

/// The most rounds of questions that a server may need for one call.
const MAX_INPUT_ROUNDS: usize = 10;
/// How long a server may take to acknowledge that a task is cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// The id of a task is recorded.
const MAX_TASK_ID_BYTES: usize = 1_024;
/// How often a task is polled if the server names no interval, and the range of what it may name.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How long the keeper of a server that closed its output may take to write how it ended.
const END_WAIT: Duration = Duration::from_secs(1);
const END_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The most tools of a server, and the most pages that list them. A server that lists more shows only these.
pub(crate) const MAX_LISTED_TOOLS: usize = 1_000;
const MAX_LIST_PAGES: usize = 100;

/// A connection to a running server.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    _close: CloseOnDrop,
    is_closed: watch::Receiver<bool>,
    handler: Arc<Handler>,
    timeout: Duration,
    /// The program, if there is one.
    program: Option<Program>,
    /// The login at an HTTP server.
    login: Option<LoginAccess>,
    /// What the user should know about how it was started.
    warnings: Vec<String>,
}

struct Program {
    tasks: Arc<Tasks>,
    id: TaskId,
    trouble: OutputTrouble,
    _filter: MessageFilter,
}

/// A call for a server.
pub(crate) struct RemoteCall {
    pub(crate) session: SessionId,
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Value>,
}

/// How both protocols are tried: the stateless one first, then the one with a handshake.
pub(crate) fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    }
}

impl Connection {
    /// Speaks to a program that was started.
    pub(crate) async fn to_program(
        launched: LaunchedServer,
        tasks: Arc<Tasks>,
        settings: &ServerSettings,
    ) -> Result<Self> {
        let failed = |error: std::io::Error| Error::NotStarted(format!("can't talk to it: {error}"));
        launched.stream.set_nonblocking(true).map_err(failed)?;
        let stream = tokio::net::UnixStream::from_std(launched.stream).map_err(failed)?;
        let (stream, trouble, filter) = filter_messages(stream, launched.heard);
        let handler = Arc::new(Handler::default());
        let program = Program { tasks, id: launched.id, trouble, _filter: filter };
        let service = match handler.clone().serve_with_lifecycle(stream, lifecycle()).await {
            Ok(service) => service,
            Err(error) => return Err(Error::NotStarted(program.failure(&error.to_string()).await)),
        };
        Ok(Self::new(service, handler, settings, Some(program), launched.warnings))
    }

    /// Speaks to an HTTP server.
    pub(crate) async fn to_address(client: reqwest::Client, login: LoginAccess) -> Result<Self> {
        let handler = Arc::new(Handler::default());
        let service = http_connection::open(client, &login, &handler).await?;
        let settings = login.settings.clone();
        Ok(Self { login: Some(login), ..Self::new(service, handler, &settings, None, Vec::new()) })
    }

    fn new(
        service: RunningService<RoleClient, Arc<Handler>>,
        handler: Arc<Handler>,
        settings: &ServerSettings,
        program: Option<Program>,
        warnings: Vec<String>,
    ) -> Self {
        let (peer, close) = (service.peer().clone(), CloseOnDrop(Some(service.cancellation_token())));
        let (closed, is_closed) = watch::channel(false);
        tokio::spawn(async move {
            let _ = service.waiting().await;
            closed.send_replace(true);
        });
        let timeout = Duration::from_secs(settings.timeout_s);
        Self { peer, _close: close, is_closed, handler, timeout, program, login: None, warnings }
    }

    pub(crate) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    pub(crate) fn calls(&self) -> &Arc<OpenCalls> {
        &self.handler.calls
    }

    pub(crate) fn tools_changed(&self) -> &Arc<Notify> {
        &self.handler.tools_changed
    }

    pub(crate) fn protocol_version(&self) -> Option<String> {
        Some(self.peer().peer_info()?.protocol_version.to_string())
    }

    pub(crate) fn is_closed(&self) -> bool {
        *self.is_closed.borrow()
    }

    /// Waits until the connection is closed.
    pub(crate) async fn closed(&self) {
        let _ = self.is_closed.clone().wait_for(|is_closed| *is_closed).await;
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        let stray = self.program.as_ref().and_then(|program| program.trouble.warning());
        self.warnings.iter().cloned().chain(stray).collect()
    }

    /// The tools that the server lists now.
    pub(crate) async fn list_tools(&self, name: &str, settings: &ServerSettings) -> Result<Catalogue> {
        let has_tools = self.peer().peer_info().is_some_and(|info| info.capabilities.tools.is_some());
        if !has_tools {
            return Ok(Catalogue::default());
        }
        match tokio::time::timeout(self.timeout, self.list_pages()).await {
            Ok(Ok(listed)) => Ok(Catalogue::new(name, &settings.tools, listed)),
            Ok(Err(error)) => Err(self.explain(error).await),
            Err(_) => Err(Error::Timeout { seconds: self.timeout.as_secs() }),
        }
    }

    /// One tool more than may be listed, if there are as many: the catalogue leaves it out and says so.
    async fn list_pages(&self) -> std::result::Result<Vec<rmcp::model::Tool>, ServiceError> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_LIST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let listed = self.peer().list_tools(Some(page)).await?;
            tools.extend(listed.tools);
            cursor = listed.next_cursor;
            if cursor.is_none() || tools.len() > MAX_LISTED_TOOLS {
                break;
            }
        }
        tools.truncate(MAX_LISTED_TOOLS + 1);
        Ok(tools)
    }

    /// Calls a tool and waits for its result, through questions of the server and tasks.
    pub(crate) async fn call_tool(&self, call: RemoteCall, stop: StopSignal) -> Result<CallToolResult> {
        let _open = self.calls().begin(call.session, stop.line().clone());
        let mut params = CallToolRequestParams::new(call.tool).with_arguments(call.arguments);
        for _ in 0..MAX_INPUT_ROUNDS {
            match self.call_once(params.clone(), stop.clone()).await? {
                CallToolResponse::Complete(result) => return Ok(result),
                CallToolResponse::InputRequired(required) => {
                    let requests = required.input_requests.clone().unwrap_or_default();
                    params.input_responses = Some(self.answer_requests(requests, &stop).await);
                    params.request_state = required.request_state.clone();
                }
                CallToolResponse::Task(created) => {
                    let id = created.task.task_id.clone();
                    if id.len() > MAX_TASK_ID_BYTES {
                        return Err(Error::Refused("the id of its task is too long".to_owned()));
                    }
                    // Before the first poll, so that a crash finds the task again.
                    stop.line().record_task(&id).await;
                    return self.await_task(&id, stop).await;
                }
                _ => return Err(Error::Refused("it answered with something that is no result".to_owned())),
            }
        }
        Err(Error::Refused(format!("it asked {MAX_INPUT_ROUNDS} times for more and gave no result")))
    }

    /// Polls a task until it ends. Its call may have been made by a process that is gone.
    pub(crate) async fn resume_task(
        &self,
        session: SessionId,
        task: &str,
        stop: StopSignal,
    ) -> Result<CallToolResult> {
        let _open = self.calls().begin(session, stop.line().clone());
        self.await_task(task, stop).await
    }

    async fn call_once(
        &self,
        params: CallToolRequestParams,
        mut stop: StopSignal,
    ) -> Result<CallToolResponse> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::with_timeout(self.timeout).reset_timeout_on_progress();
        let sent = self.peer().send_cancellable_request(request, options).await;
        let handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.explain(error).await),
        };
        let id = handle.id.clone();
        let answer = tokio::select! {
            answer = handle.await_response() => answer,
            () = stop.asked() => {
                self.cancel_request(id).await;
                return Err(Error::Cancelled);
            }
        };
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(CallToolResponse::Complete(result)),
            Ok(ServerResult::InputRequiredResult(required)) => Ok(CallToolResponse::InputRequired(required)),
            Ok(ServerResult::CreateTaskResult(created)) => Ok(CallToolResponse::Task(created)),
            Ok(_) => Err(Error::Refused("it answered with something that is no result".to_owned())),
            Err(error) => Err(self.explain(error).await),
        }
    }

    async fn cancel_request(&self, id: RequestId) {
        let param = CancelledNotificationParam::new(Some(id), Some("the turn was cancelled".to_owned()));
        let notification = ClientNotification::CancelledNotification(CancelledNotification::new(param));
        let _ = self.peer().send_notification(notification).await;
    }

    async fn await_task(&self, id: &str, mut stop: StopSignal) -> Result<CallToolResult> {
        loop {
            let polled = tokio::select! {
                polled = tokio::time::timeout(self.timeout, self.peer().get_task(GetTaskParams::new(id))) => polled,
                () = stop.asked() => return self.cancel_task(id).await,
            };
            let task = match polled {
                Ok(Ok(result)) => result.task,
                Ok(Err(error)) => return Err(self.explain(error).await),
                Err(_) => return Err(Error::Timeout { seconds: self.timeout.as_secs() }),
            };
            match task.payload {
                TaskPayload::Completed { result } => {
                    let result: std::result::Result<CallToolResult, _> =
                        serde_json::from_value(Value::Object(result));
                    return result
                        .map_err(|error| Error::Refused(format!("the result of its task is none: {error}")));
                }
                TaskPayload::Failed { error } => {
                    let message =
                        error.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
                    return Err(Error::Refused(format!("its task failed: {message}")));
                }
                TaskPayload::Cancelled => {
                    return Err(Error::Refused("its task was cancelled there".to_owned()));
                }
                TaskPayload::InputRequired { input_requests } => {
                    let responses = self.answer_requests(input_requests, &stop).await;
                    if let Err(error) = self.peer().update_task(UpdateTaskParams::new(id, responses)).await {
                        return Err(self.explain(error).await);
                    }
                }
                _ => {}
            }
            let interval = task.task.poll_interval_ms.map_or(POLL_INTERVAL, Duration::from_millis);
            tokio::select! {
                () = tokio::time::sleep(interval.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL)) => {}
                () = stop.asked() => return self.cancel_task(id).await,
            }
        }
    }

    async fn cancel_task(&self, id: &str) -> Result<CallToolResult> {
        // The turn does not wait longer for a server that does not answer.
        let cancelling = self.peer().cancel_task(CancelTaskParams::new(id));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancelling).await;
        Err(Error::Cancelled)
    }

    /// Answers what the server asks in the middle of this call. Such a question names its call.
    async fn answer_requests(&self, requests: InputRequests, stop: &StopSignal) -> InputResponses {
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let answer = match request {
                InputRequest::Elicitation(request) => {
                    serde_json::to_value(elicitation::ask(stop.line(), request.params).await)
                        .unwrap_or_default()
                }
                InputRequest::ListRoots(_) => serde_json::json!({ "roots": [] }),
                // Sampling is not offered.
                _ => continue,
            };
            responses.insert(key, answer);
        }
        responses
    }

    pub(crate) async fn explain(&self, error: ServiceError) -> Error {
        if let Some(refusal) = self.login.as_ref().and_then(|login| login.refusal(service_cause(&error))) {
            return refusal;
        }
        match error {
            ServiceError::McpError(error) => Error::Refused(error.message.to_string()),
            ServiceError::Timeout { timeout } => Error::Timeout { seconds: timeout.as_secs() },
            ServiceError::TransportClosed
            | ServiceError::TransportSend(_)
            | ServiceError::Cancelled { .. } => Error::Ended(match &self.program {
                Some(program) => program.failure("it closed its output").await,
                None => format!("the connection to it failed: {}", root_cause(service_cause(&error))),
            }),
            other => Error::Refused(other.to_string()),
        }
    }

    /// Why the connection is closed.
    pub(crate) async fn end_reason(&self) -> String {
        match &self.program {
            Some(program) => program.failure("it closed its output").await,
            None => "the connection was closed".to_owned(),
        }
    }
}

/// Closes the connection when it is dropped.
struct CloseOnDrop(Option<RunningServiceCancellationToken>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(RunningServiceCancellationToken::cancel);
    }
}

impl Program {
    /// Why it can't be talked to: what we saw on its output, how it ended, or else this.
    async fn failure(&self, otherwise: &str) -> String {
        if let Some(fatal) = self.trouble.fatal() {
            return fatal;
        }
        let until = tokio::time::Instant::now() + END_WAIT;
        loop {
            if self.tasks.status(self.id).ok().flatten().is_some() {
                return describe_end(&self.tasks, self.id);
            }
            if tokio::time::Instant::now() >= until {
                return match self.trouble.warning() {
                    Some(warning) => format!("{otherwise}; {warning}"),
                    None => otherwise.to_owned(),
                };
            }
            tokio::time::sleep(END_POLL_INTERVAL).await;
        }
    }
}
