//! Checks MCP servers without a runtime: each is started as a session would start it, and ended.

use std::sync::Arc;

use longhaul_journal::{Home, Journal, SqliteJournal};
use longhaul_mcp::{McpServers, ServerPlace, ServerStatus};
use longhaul_protocol::SessionId;
use longhaul_tools::command_environment;

use crate::runtime::launcher;
use crate::worker::toolset::{command_sandbox, tool_scope};
use crate::{Config, Result};

/// Starts the MCP servers of the work folder, or only the one with this name, and says how that went.
pub async fn check_servers(config: &Config, name: Option<&str>) -> Result<Vec<ServerStatus>> {
    let home = Home::create(&config.home)?;
    // Makes the token of the home, for which keepers ask every client.
    let journal = SqliteJournal::open(&home).await?;
    journal.wake_signals().await?;
    let config = Config { home: home.folder().to_owned(), ..config.clone() };
    let servers =
        McpServers::new(home.folder(), launcher(&config, home.folder())?, config.settings.mcp.clone());
    let work_dir = config.work_dir.canonicalize().unwrap_or(config.work_dir.clone());
    let sandbox = command_sandbox(&config, &command_environment(&[]));
    let place = ServerPlace { scope: Arc::new(tool_scope(&config, &work_dir)), sandbox };
    let folder = servers.for_folder(Some(place), config.project_servers.clone());
    let session = SessionId::generate();
    folder.start(session);
    let mut statuses = Vec::new();
    for known in folder.names() {
        if name.is_none_or(|name| name == known) {
            statuses.extend(folder.check(known, session).await);
        }
    }
    servers.stop_all();
    journal.close().await;
    Ok(statuses)
}
