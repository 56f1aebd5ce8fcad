//! The MCP servers of one session, for its clients: their states, what they have for messages, and servers that a client brings.

use std::collections::BTreeMap;
use std::sync::Arc;

use longhaul_mcp::{ContentList, FolderServers, ServerSettings, ServerStatus};
use longhaul_protocol::SessionId;

use crate::server_references::ServerReferences;
use crate::worker::tool_profile::ToolProfile;
use crate::worker::toolset::FolderTools;
use crate::{Result, Runtime, Session, UserMessage};

/// The MCP servers of one session.
#[derive(Clone)]
pub struct SessionServers {
    servers: FolderServers,
    session: SessionId,
    /// Keeps the tools of the folder for the next turn, which would make them again.
    _folder: Option<Arc<FolderTools>>,
}

impl Runtime {
    /// The MCP servers of the sessions in the runtime's work folder, with their states in this process.
    pub fn mcp_servers(&self) -> Vec<ServerStatus> {
        let statuses = self
            .folder_tools(&ToolProfile::of_folder(Some(&self.config().work_dir)))
            .servers()
            .statuses(None);
        statuses.into_iter().map(|status| status.redacted(&self.0.redactor)).collect()
    }

    /// The MCP servers of a session.
    pub async fn session_servers(&self, session: &Session) -> Result<SessionServers> {
        let profile = ToolProfile::of_session(&self.0, &session.state().await?);
        // A server that is not shared, and is needed before the session has begun, is started once more for the session.
        let id = session.id().unwrap_or_else(SessionId::generate);
        let folder = self.folder_tools(&profile);
        Ok(SessionServers { servers: folder.servers().clone(), session: id, _folder: Some(folder) })
    }

    /// Gives a session MCP servers of its own, in place of those that it was given before. They run in this process, for this session
    /// alone. A configured server of the same name is used instead.
    pub fn set_session_servers(&self, session: SessionId, servers: BTreeMap<String, ServerSettings>) {
        self.0.mcp.set_session_servers(session, servers);
    }

    fn folder_tools(&self, profile: &ToolProfile) -> Arc<FolderTools> {
        self.0.folder_tools.get_or_create(&self.0, profile)
    }
}

impl SessionServers {
    /// Servers without a runtime.
    pub(crate) fn detached(servers: FolderServers, session: SessionId) -> Self {
        Self { servers, session, _folder: None }
    }

    /// The states of the servers.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.servers.statuses(Some(self.session))
    }

    /// The resources and prompts of servers that have run. It does not wait; running servers are asked again in the background. Needs the
    /// context of a tokio runtime.
    pub fn content_list(&self) -> ContentList {
        self.servers.content_list(self.session)
    }

    /// Whether a message names a resource or starts a prompt.
    pub fn are_named_in(&self, text: &str) -> bool {
        self.references(text).is_some()
    }

    /// The message with the resources and the prompt that it names. Starts servers that do not run. The error says what can't be had;
    /// then nothing should be sent.
    pub async fn attach(&self, message: UserMessage) -> std::result::Result<UserMessage, String> {
        match self.references(&message.text) {
            Some(references) => references.attach(message, &self.servers, self.session).await,
            None => Ok(message),
        }
    }

    fn references(&self, text: &str) -> Option<ServerReferences> {
        ServerReferences::find(text, |name| self.servers.has_server(self.session, name))
    }
}
