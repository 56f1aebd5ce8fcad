//! One connection to a running server.

use std::sync::Arc;
use std::time::Duration;

use longhaul_keeper::Tasks;
use longhaul_protocol::{SessionId, TaskId};
use longhaul_tools::StopSignal;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams,
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest, DetailedTask,
    GetTaskParams, InputRequest, InputRequests, InputResponses, ProtocolVersion, RequestId,
    ServerNotification, ServerResult, SubscriptionFilter, UpdateTaskParams,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, Peer, PeerRequestOptions, RunningService,
    RunningServiceCancellationToken, ServiceError,
};
use serde_json::{Map, Value};
use tokio::sync::{Notify, watch};

use crate::catalogue::Catalogue;
use crate::elicitation;
use crate::handler::Handler;
use crate::http_connection::{self, root_cause, service_cause, was_not_taken};
use crate::launch::{LaunchedServer, describe_end};
use crate::login::LoginAccess;
use crate::open_calls::{OpenCall, OpenCalls};
use crate::output_filter::{MessageFilter, OutputTrouble, UNREADABLE_ANSWER, filter_messages};
use crate::pages::all_pages;
use crate::{Error, Result, ServerSettings};

/// The most rounds of questions that a server may need for one call.
const MAX_INPUT_ROUNDS: usize = 10;
/// How long a server may take to acknowledge that a request or a task is cancelled.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest id of a task: it is recorded with the call.
const MAX_TASK_ID_BYTES: usize = 1_024;
/// How long after a subscription has ended the next one begins.
const RESUBSCRIBE_INTERVAL: Duration = Duration::from_secs(10);
/// How long the keeper of a server that closed its output may take to write how it ended.
const END_WAIT: Duration = Duration::from_secs(1);
const END_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The most tools of a server. A server that lists more shows only these.
pub(crate) const MAX_LISTED_TOOLS: usize = 1_000;

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

/// What a server answers to a call.
#[allow(clippy::large_enum_variant, reason = "there is one for each call, and it is matched at once")]
pub(crate) enum CallReply {
    Finished(CallToolResult),
    /// The call goes on as the task with this id.
    Task(String),
}

/// Why a program could not be talked to.
pub(crate) struct StartFailure {
    pub(crate) error: Error,
    /// How another start may succeed, after one that tried both protocols.
    pub(crate) next: Option<ClientLifecycleMode>,
}

impl From<Error> for StartFailure {
    fn from(error: Error) -> Self {
        Self { error, next: None }
    }
}

/// How to start a program again that failed when both protocols were tried.
fn next_mode(error: &ClientInitializeError) -> Option<ClientLifecycleMode> {
    match error {
        // Servers from before the stateless protocol may end at its first message, or answer it like any other. Some say which they speak.
        ClientInitializeError::ConnectionClosed(_)
        | ClientInitializeError::TransportError { .. }
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::NoCompatibleProtocolVersion { .. } => Some(ClientLifecycleMode::Initialize),
        // It takes no handshake, and came too late for the first message.
        ClientInitializeError::JsonRpcError(_) => {
            Some(ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] })
        }
        _ => None,
    }
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
        mode: ClientLifecycleMode,
    ) -> std::result::Result<Self, StartFailure> {
        let failed = |error: std::io::Error| Error::NotStarted(format!("can't talk to it: {error}"));
        launched.stream.set_nonblocking(true).map_err(failed)?;
        let stream = tokio::net::UnixStream::from_std(launched.stream).map_err(failed)?;
        let (stream, trouble, filter) = filter_messages(stream, launched.heard);
        let handler = Arc::new(Handler::default());
        let program = Program { tasks, id: launched.id, trouble, _filter: filter };
        let service = match handler.clone().serve_with_lifecycle(stream, mode).await {
            Ok(service) => service,
            Err(error) => {
                let reason = Error::NotStarted(program.failure(&error.to_string()).await);
                return Err(StartFailure { error: reason, next: next_mode(&error) });
            }
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
        tokio::spawn(listen_for_changes(peer.clone(), Arc::clone(&handler.tools_changed), is_closed.clone()));
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

    pub(crate) fn is_to_program(&self) -> bool {
        self.program.is_some()
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
        // One tool more than are shown, so that the catalogue can say that it leaves some out.
        let pages = all_pages(MAX_LISTED_TOOLS + 1, |page| {
            let peer = self.peer().clone();
            async move { peer.list_tools(page).await.map(|page| (page.tools, page.next_cursor)) }
        });
        match tokio::time::timeout(self.timeout, pages).await {
            Ok(Ok(listed)) => Ok(Catalogue::of_listing(name, &settings.tools, listed)),
            Ok(Err(ServiceError::UnexpectedResponse)) => {
                let reason = "its list of tools can't be read; each tool needs a `name`, and an object as its `inputSchema`";
                Err(Error::Unreadable(reason.to_owned()))
            }
            Ok(Err(error)) => Err(self.explain(error).await),
            Err(_) => Err(Error::Timeout { seconds: self.timeout.as_secs() }),
        }
    }

    /// Calls a tool, through questions of the server, until it has a result or has made a task of the call. The id of a task is on
    /// record before this returns.
    pub(crate) async fn call_tool(&self, call: RemoteCall, mut stop: StopSignal) -> Result<CallReply> {
        let open = self.calls().begin(call.session, stop.line().clone());
        let mut params = CallToolRequestParams::new(call.tool).with_arguments(call.arguments);
        for _ in 0..MAX_INPUT_ROUNDS {
            match self.call_once(params.clone(), &open, &mut stop).await? {
                CallToolResponse::Complete(result) => return Ok(CallReply::Finished(result)),
                CallToolResponse::InputRequired(required) => {
                    let requests = required.input_requests.clone().unwrap_or_default();
                    params.input_responses = Some(self.answer_requests(requests, &mut stop).await?);
                    params.request_state = required.request_state.clone();
                }
                CallToolResponse::Task(created) => {
                    let id = created.task.task_id.clone();
                    if id.len() > MAX_TASK_ID_BYTES {
                        return Err(Error::Unreadable("the id of its task is too long".to_owned()));
                    }
                    // Before the first poll, so that a crash finds the task again.
                    stop.line().record_task(&id).await;
                    return Ok(CallReply::Task(id));
                }
                _ => return Err(no_result()),
            }
        }
        Err(Error::Unreadable(format!("it asked for more input {MAX_INPUT_ROUNDS} times and gave no result")))
    }

    async fn call_once(
        &self,
        params: CallToolRequestParams,
        open: &OpenCall,
        stop: &mut StopSignal,
    ) -> Result<CallToolResponse> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = match sent {
            Ok(handle) => handle,
            Err(error) => return Err(self.explain(error).await),
        };
        let id = handle.id.clone();
        open.note_sent(handle.progress_token.clone());
        let answer = tokio::select! {
            answer = handle.await_response() => answer,
            () = stop.asked() => {
                self.cancel_request(id, "the turn was cancelled").await;
                return Err(Error::Cancelled);
            }
            () = open.timed_out(self.timeout) => {
                self.cancel_request(id, "request timeout").await;
                return Err(Error::Timeout { seconds: self.timeout.as_secs() });
            }
        };
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(CallToolResponse::Complete(result)),
            Ok(ServerResult::InputRequiredResult(required)) => Ok(CallToolResponse::InputRequired(required)),
            Ok(ServerResult::CreateTaskResult(created)) => Ok(CallToolResponse::Task(created)),
            Ok(_) => Err(no_result()),
            Err(error) => Err(self.explain(error).await),
        }
    }

    async fn cancel_request(&self, id: RequestId, reason: &str) {
        let param = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
        let notification = ClientNotification::CancelledNotification(CancelledNotification::new(param));
        let sending = self.peer().send_notification(notification);
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, sending).await;
    }

    /// Asks for the state of a task.
    pub(crate) async fn get_task(&self, id: &str) -> Result<DetailedTask> {
        Ok(self.answer(self.peer().get_task(GetTaskParams::new(id))).await?.task)
    }

    /// Answers what a task asks.
    pub(crate) async fn answer_task(
        &self,
        id: &str,
        requests: InputRequests,
        stop: &mut StopSignal,
    ) -> Result<()> {
        let responses = self.answer_requests(requests, stop).await?;
        self.answer(self.peer().update_task(UpdateTaskParams::new(id, responses))).await?;
        Ok(())
    }

    /// Cancels a task. The turn does not wait long for a server that does not answer.
    pub(crate) async fn cancel_task(&self, id: &str) {
        let cancelling = self.peer().cancel_task(CancelTaskParams::new(id));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancelling).await;
    }

    /// Answers what the server asks in the middle of a call. Such a question names its call.
    async fn answer_requests(
        &self,
        requests: InputRequests,
        stop: &mut StopSignal,
    ) -> Result<InputResponses> {
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let answer = match request {
                InputRequest::Elicitation(request) => {
                    let line = stop.line().clone();
                    let answer = tokio::select! {
                        answer = elicitation::ask(&line, request.params) => answer,
                        () = stop.asked() => return Err(Error::Cancelled),
                    };
                    serde_json::to_value(answer).unwrap_or_default()
                }
                InputRequest::ListRoots(_) => serde_json::json!({ "roots": [] }),
                // Sampling is not offered.
                _ => continue,
            };
            responses.insert(key, answer);
        }
        Ok(responses)
    }

    /// The answer to a request, within the server's `timeout_s`.
    pub(crate) async fn answer<T>(
        &self,
        request: impl Future<Output = std::result::Result<T, ServiceError>>,
    ) -> Result<T> {
        match tokio::time::timeout(self.timeout, request).await {
            Ok(Ok(answered)) => Ok(answered),
            Ok(Err(error)) => Err(self.explain(error).await),
            Err(_) => Err(Error::Timeout { seconds: self.timeout.as_secs() }),
        }
    }

    /// The error of a failed request, for the user.
    async fn explain(&self, error: ServiceError) -> Error {
        if let Some(refusal) = self.login.as_ref().and_then(|login| login.refusal(service_cause(&error))) {
            return refusal;
        }
        match error {
            ServiceError::McpError(error) if error.code.0 == UNREADABLE_ANSWER => {
                Error::Unreadable(error.message.to_string())
            }
            ServiceError::McpError(error) => Error::Refused(error.message.to_string()),
            ServiceError::UnexpectedResponse => no_result(),
            ServiceError::Timeout { timeout } => Error::Timeout { seconds: timeout.as_secs() },
            ServiceError::TransportClosed
            | ServiceError::TransportSend(_)
            | ServiceError::Cancelled { .. } => match &self.program {
                Some(program) => Error::Ended(program.failure("it closed its output").await),
                None => {
                    let cause = service_cause(&error);
                    let reason = format!("the connection to it failed: {}", root_cause(cause));
                    if was_not_taken(cause) { Error::NotStarted(reason) } else { Error::Ended(reason) }
                }
            },
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

/// Subscribes to changes of the tools of a stateless server, which sends no notice otherwise, until the connection is closed.
async fn listen_for_changes(
    peer: Peer<RoleClient>,
    tools_changed: Arc<Notify>,
    mut is_closed: watch::Receiver<bool>,
) {
    let can_subscribe = peer.peer_info().is_some_and(|info| {
        let tools = info.capabilities.tools.as_ref();
        info.protocol_version >= ProtocolVersion::V_2026_07_28
            && tools.is_some_and(|tools| tools.list_changed == Some(true))
    });
    if !can_subscribe {
        return;
    }
    let listening = async {
        loop {
            match peer.listen(SubscriptionFilter::builder().tools_list_changed().build()).await {
                Ok(mut subscription) => {
                    while let Ok(Some(notification)) = subscription.next().await {
                        if matches!(notification, ServerNotification::ToolListChangedNotification(_)) {
                            tools_changed.notify_one();
                        }
                    }
                }
                // The server has no subscriptions.
                Err(ServiceError::McpError(_) | ServiceError::UnexpectedResponse) => return,
                Err(_) => {}
            }
            tokio::time::sleep(RESUBSCRIBE_INTERVAL).await;
            // Without a subscription, a change may have been missed.
            tools_changed.notify_one();
        }
    };
    tokio::select! {
        () = listening => {}
        _ = is_closed.wait_for(|is_closed| *is_closed) => {}
    }
}

fn no_result() -> Error {
    Error::Unreadable("it answered with something that is no result".to_owned())
}

/// Closes the connection when it is dropped.
struct CloseOnDrop(Option<RunningServiceCancellationToken>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(RunningServiceCancellationToken::cancel);
    }
}

impl Program {
    fn has_ended(&self) -> bool {
        self.tasks.status(self.id).ok().flatten().is_some()
    }

    /// Why the program can't be reached: what was wrong with its output or how it ended; `otherwise` if neither is known.
    async fn failure(&self, otherwise: &str) -> String {
        if let Some(fatal) = self.trouble.fatal() {
            return fatal;
        }
        let until = tokio::time::Instant::now() + END_WAIT;
        loop {
            if self.has_ended() {
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
