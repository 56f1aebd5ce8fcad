//! A tool of a server, as the model calls it.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the answer of the model | the call | it is run |
//! | `tool_started`, before or during the call | the call and its effect | a tool that promised to read, or to change nothing twice, is called again; any other is told as unknown |
//! | the server made a task of it | the same, and the id of the task | the task is polled until it ends; also over failed polls and new connections; a server that does not know it any more: unknown |
//! | `tool_finished` | the result | nothing |

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::{Effect, SessionId, ToolSchema, ToolStarted};
use longhaul_tools::{
    PreparedCall, ResumedCall, StopSignal, Tool, ToolDefinition, ToolInvocation, ToolOutcome,
};
use serde_json::{Map, Value};

use crate::argument_check::check_arguments;
use crate::connection::{CallReply, RemoteCall};
use crate::remote_task::RemoteTask;
use crate::result_content::outcome_of;
use crate::server::Server;
use crate::{Error, FolderServers};

/// The longest time of one call. Its server's `timeout_s` ends a call without progress long before.
const MAX_CALL_TIME: Duration = Duration::from_secs(24 * 3600);

pub(crate) struct RemoteTool {
    definition: ToolDefinition,
    server: String,
    servers: FolderServers,
}

impl RemoteTool {
    pub(crate) fn new(servers: FolderServers, server: &str, schema: ToolSchema, effect: Effect) -> Self {
        let definition = ToolDefinition {
            name: schema.name.into(),
            description: schema.description.into(),
            effect,
            schema: schema.parameters,
            limits: &[],
            example: "{}",
        };
        Self { definition, server: server.to_owned(), servers }
    }

    /// What the tool takes, as far as is known. That may have changed since the epoch began, and only calls that fit it now can succeed.
    fn schema(&self, session: SessionId) -> Value {
        let catalogue = self.servers.server(&self.server, session).and_then(|server| server.catalogue());
        let known = catalogue.as_ref().and_then(|catalogue| catalogue.find(&self.definition.name));
        known.map_or(&self.definition.schema, |tool| &tool.schema).clone()
    }

    fn call(&self, session: SessionId, arguments: Map<String, Value>) -> OutgoingCall {
        OutgoingCall {
            server: self.server.clone(),
            servers: self.servers.clone(),
            name: self.definition.name.to_string(),
            effect: self.definition.effect,
            session,
            arguments,
        }
    }
}

#[async_trait]
impl Tool for RemoteTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
        let arguments = check_arguments(&self.definition.name, &self.schema(call.session), &call.arguments)?;
        let outgoing = self.call(call.session, arguments);
        Ok(PreparedCall::new(move |stop| outgoing.run(stop)).taking_up_to(MAX_CALL_TIME))
    }

    async fn resume(&self, call: &ToolInvocation, started: &ToolStarted) -> ResumedCall {
        if let Some(task) = started.remote_task.clone() {
            let outgoing = self.call(call.session, Map::new());
            return ResumedCall::Running {
                run: Box::new(move |stop| Box::pin(outgoing.resume_task(task, stop))),
                takes_up_to: Some(MAX_CALL_TIME),
            };
        }
        match started.effect {
            // What the tool promised when it was called, and still promises.
            Effect::Read | Effect::Idempotent if self.definition.effect == started.effect => {
                ResumedCall::RunAgain
            }
            _ => ResumedCall::Unknown(format!(
                "the runtime ended while the MCP server {} worked on this; it may or may not have happened",
                self.server
            )),
        }
    }
}

struct OutgoingCall {
    servers: FolderServers,
    server: String,
    name: String,
    effect: Effect,
    session: SessionId,
    arguments: Map<String, Value>,
}

impl OutgoingCall {
    async fn run(self, mut stop: StopSignal) -> ToolOutcome {
        let Some(server) = self.servers.server(&self.server, self.session) else {
            return ToolOutcome::error(format!(
                "not run: the MCP server {} is not configured any more",
                self.server
            ));
        };
        let connection = tokio::select! {
            connection = server.ready() => connection,
            () = stop.asked() => return ToolOutcome::error(Error::Cancelled.to_string()),
        };
        let connection = match connection {
            Ok(connection) => connection,
            Err(error) => {
                return ToolOutcome::error(format!(
                    "not run: the MCP server {} can't be used: {error}",
                    self.server
                ));
            }
        };
        let catalogue = server.catalogue();
        let Some(tool) = catalogue.as_ref().and_then(|catalogue| catalogue.find(&self.name)) else {
            return ToolOutcome::error(format!(
                "not run: the MCP server {} does not have {} any more",
                self.server, self.name
            ));
        };
        let is_harmless = |effect| matches!(effect, Effect::Read | Effect::Idempotent);
        if is_harmless(self.effect) && tool.effect != self.effect {
            return ToolOutcome::error(format!(
                "not run: the MCP server {} has changed what {} does; call it again",
                self.server, self.name
            ));
        }
        let call = RemoteCall {
            session: self.session,
            tool: tool.remote_name.clone(),
            arguments: self.arguments.clone(),
        };
        match connection.call_tool(call, stop.clone()).await {
            Ok(CallReply::Finished(result)) => outcome_of(&self.server, result),
            Ok(CallReply::Task(id)) => {
                // The task goes on if this connection does not.
                drop(connection);
                self.await_task(server, id, stop).await
            }
            Err(error) => {
                server.fail_connection(&connection, &error);
                self.failed(&error)
            }
        }
    }

    async fn resume_task(self, id: String, stop: StopSignal) -> ToolOutcome {
        match self.servers.server(&self.server, self.session) {
            Some(server) => self.await_task(server, id, stop).await,
            None => {
                self.task_failed(&id, &Error::Settings("the server is not configured any more".to_owned()))
            }
        }
    }

    async fn await_task(&self, server: Arc<Server>, id: String, stop: StopSignal) -> ToolOutcome {
        let task = RemoteTask { server, session: self.session, id };
        match task.wait(stop).await {
            Ok(result) => outcome_of(&self.server, result),
            Err(error) => self.task_failed(&task.id, &error),
        }
    }

    /// The result of a call whose task gave none. The server has begun the task, whatever the error.
    fn task_failed(&self, task: &str, error: &Error) -> ToolOutcome {
        match error {
            Error::TaskFailed(_) | Error::Cancelled => self.failed(error),
            error => ToolOutcome::error(format!(
                "unknown: the MCP server {} worked on this, and its task {task} can't be asked about: {error}. \
                 Find out what happened before doing it again.",
                self.server
            )),
        }
    }

    /// The result of a call that failed. It says so if the call may have had its effect.
    fn failed(&self, error: &Error) -> ToolOutcome {
        let server = &self.server;
        let is_harmless = matches!(self.effect, Effect::Read | Effect::Idempotent);
        let doubt = "; it may or may not have happened. Check before doing it again";
        ToolOutcome::error(match error {
            Error::Refused(reason) | Error::TaskFailed(reason) => {
                format!("the MCP server {server} answered with an error: {reason}")
            }
            // It refused the request before it did anything, or never got it.
            Error::LoginNeeded { .. } | Error::NotStarted(_) => {
                format!("not run: the MCP server {server} can't be used: {error}")
            }
            Error::Cancelled if is_harmless => error.to_string(),
            Error::Cancelled => format!("{error}{doubt}"),
            error if is_harmless => format!("the MCP server {server} gave no result: {error}"),
            error => format!("unknown: the MCP server {server} gave no result: {error}{doubt}"),
        })
    }
}
