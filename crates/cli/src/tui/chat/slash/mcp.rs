//! `/mcp`: the MCP servers of the session, as they are in this process.

use longhaul_agent::Config;
use longhaul_agent::config::ProjectServersFile;
use longhaul_agent::mcp::ServerState;

use super::CommandContext;
use crate::commands::mcp::status_lines;
use crate::output::sanitize;

/// Shows each server with its state, its tools and its last error, and what to do about those that are not used.
pub(crate) async fn run(context: &mut CommandContext<'_>) -> anyhow::Result<()> {
    let servers = context.runtime.session_servers(context.session).await?;
    let mut lines = Vec::new();
    for status in servers.statuses() {
        lines.extend(status_lines(&status));
        if status.state == ServerState::Failed {
            lines.push(format!("  to try it again: longhaul mcp check {}", status.name));
        }
    }
    lines.extend(unused_servers(context.config));
    // A file that can't be read is what the warnings at the start are about.
    if let Ok(Some(file)) = ProjectServersFile::find(&context.config.home, &context.globals.sources()?) {
        lines.extend(file.refusal());
    }
    if lines.is_empty() {
        lines.push("no MCP servers; add one with `longhaul mcp add NAME -- COMMAND`".to_owned());
    }
    context.printer.page(&sanitize(&lines.join("\n")));
    Ok(())
}

fn unused_servers(config: &Config) -> Vec<String> {
    let unused = config.settings.mcp.servers.iter().filter(|(_, settings)| !settings.enabled);
    unused.map(|(name, _)| format!("{name}: not enabled (mcp.servers.{name}.enabled)")).collect()
}
