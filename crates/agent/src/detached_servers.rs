//! MCP servers without a runtime: to check them, and for a message to a session that another process runs.

use std::sync::Arc;

use longhaul_journal::{Home, Journal};
use longhaul_mcp::{FolderServers, McpServers, ServerPlace, ServerStatus};
use longhaul_protocol::SessionId;
use longhaul_tools::command_environment;

use crate::journal_place::JournalPlace;
use crate::runtime::launcher;
use crate::secrets::redactor;
use crate::server_references::ServerReferences;
use crate::session_servers::SessionServers;
use crate::web::network_guard;
use crate::worker::toolset::{command_sandbox, server_sandbox, tool_scope};
use crate::{Config, Result, UserMessage};

/// The servers of a work folder, started as a session would start them.
struct DetachedServers {
    journal: Arc<dyn Journal>,
    folder: FolderServers,
    session: SessionId,
}

/// The MCP servers of the work folder. None of them is started.
pub fn configured_servers(config: &Config) -> Result<FolderServers> {
    let pool = McpServers::new(
        &config.home,
        launcher(config, &config.home)?,
        config.settings.mcp.clone(),
        network_guard(config)?,
        redactor(config)?,
    );
    let work_dir = config.work_dir.canonicalize().unwrap_or(config.work_dir.clone());
    let sandbox = server_sandbox(config, command_sandbox(config, &command_environment(&[])));
    let place = ServerPlace { scope: Arc::new(tool_scope(config, &work_dir)), sandbox };
    Ok(pool.for_folder(Some(place), config.project_servers.clone()))
}

/// Starts the MCP servers of the work folder, or only the one with this name, and says how that went.
pub async fn check_servers(config: &Config, name: Option<&str>) -> Result<Vec<ServerStatus>> {
    let servers = DetachedServers::open(config).await?;
    if name.is_none() {
        servers.folder.start(servers.session);
    }
    let (mut statuses, redactor) = (Vec::new(), redactor(config)?);
    for known in servers.folder.names() {
        if name.is_none_or(|name| name == known) {
            let status = servers.folder.check(known, servers.session).await;
            statuses.extend(status.map(|status| status.redacted(&redactor)));
        }
    }
    servers.close().await;
    Ok(statuses)
}

/// The message with the resources and the prompt of MCP servers that it names, for a session that another process runs. The inner error
/// says what can't be had.
pub async fn attach_references(
    config: &Config,
    message: UserMessage,
) -> Result<std::result::Result<UserMessage, String>> {
    if ServerReferences::find(&message.text, |name| config.has_server(name)).is_none() {
        return Ok(Ok(message));
    }
    let servers = DetachedServers::open(config).await?;
    let attached = SessionServers::detached(servers.folder.clone(), servers.session).attach(message).await;
    servers.close().await;
    Ok(attached)
}

impl DetachedServers {
    async fn open(config: &Config) -> Result<Self> {
        let home = Home::create(&config.home)?;
        // Makes the token of the home, for which keepers ask every client.
        let journal =
            JournalPlace::from_settings(&config.settings.journal, &config.settings.node)?.open(&home).await?;
        journal.wake_signals().await?;
        let config = Config { home: home.folder().to_owned(), ..config.clone() };
        Ok(Self { journal, folder: configured_servers(&config)?, session: SessionId::generate() })
    }

    /// Ends the servers.
    async fn close(self) {
        self.folder.pool().stop_all();
        self.journal.close().await;
    }
}
