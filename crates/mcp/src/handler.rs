//! Our side of a connection: what a server may ask of us, and what it tells us.

use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationCapability, FormElicitationCapability, Implementation, ProgressNotificationParam,
    ProtocolVersion, TASKS_EXTENSION_ID,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use tokio::sync::Notify;

use crate::open_calls::OpenCalls;

/// Handles the requests and notifications of one server.
#[derive(Debug, Default)]
pub(crate) struct Handler {
    pub(crate) calls: Arc<OpenCalls>,
    /// Notified when the server says that its tools have changed.
    pub(crate) tools_changed: Arc<Notify>,
}

/// What this client can do.
pub(crate) fn client_config() -> ClientConfig {
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation =
        Some(ElicitationCapability::new().with_form(FormElicitationCapability::default()));
    let tasks = (TASKS_EXTENSION_ID.to_owned(), serde_json::Map::new());
    capabilities.extensions = Some([tasks].into_iter().collect());
    // What a handshake asks for. The stateless protocol has none, and names its version in each request.
    ClientConfig::new(capabilities, Implementation::new("longhaul", env!("CARGO_PKG_VERSION")))
        .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
}

impl ClientHandler for Handler {
    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        // It names no call. With calls of two sessions open, it is unknown which one it asks (E1).
        Ok(match self.calls.begin_question() {
            Some(question) => crate::elicitation::ask(&question.line, request).await,
            None => ElicitResult::new(ElicitationAction::Decline),
        })
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.calls.note_progress(&progress.progress_token);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        client_config()
    }
}
