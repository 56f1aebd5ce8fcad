//! Checks the MCP servers by their settings, and by what became of those that an open runtime has started. No server is started.

use longhaul_agent::config::{ProjectServersFile, Sources};
use longhaul_agent::mcp::{ServerState, ServerStatus, check_settings};
use longhaul_agent::{Config, Runtime};
use longhaul_transcript::format_count;

use super::Finding;

/// `runtime` is the one that runs the servers, if it is open here.
pub(super) fn check(config: &Config, runtime: Option<&Runtime>) -> Vec<Finding> {
    if !config.has_servers() {
        return vec![];
    }
    let statuses = runtime.map(Runtime::mcp_servers).unwrap_or_default();
    let own = &config.settings.mcp.servers;
    let of_project = config.project_servers.iter().filter(|(name, _)| !own.contains_key(*name));
    let (mut fine, mut findings) = (0, Vec::new());
    for (name, settings) in own.iter().chain(of_project) {
        if !settings.enabled {
            let found = format!("{name} is not enabled; to use it, set mcp.servers.{name}.enabled = true");
            findings.push(Finding::fine("mcp", found));
            continue;
        }
        let status = statuses.iter().find(|status| status.name == *name);
        let problem = match (check_settings(name, settings, &config.work_dir), status) {
            (Err(error), _) => Some(error.to_string()),
            (Ok(()), Some(ServerStatus { state: ServerState::Failed, reason, .. })) => reason.clone(),
            (Ok(()), _) => None,
        };
        match problem {
            Some(problem) => {
                let to_do = format!("fix [mcp.servers.{name}], then run `longhaul mcp check {name}`");
                findings.push(Finding::wrong("mcp", format!("{name}: {problem}"), to_do));
            }
            None => fine += 1,
        }
    }
    let found = format!("{} configured; `longhaul mcp check` starts them", format_count(fine, "server"));
    findings.insert(0, Finding::fine("mcp", found));
    findings
}

/// What to do about a warning of the config that is about the project's `.mcp.json`. `None` if it is about something else.
pub(super) fn project_file_to_do(config: &Config, sources: &Sources, warning: &str) -> Option<&'static str> {
    match ProjectServersFile::find(&config.home, sources) {
        Err(why) if why == warning => Some("fix or remove the file"),
        Ok(Some(file)) if file.refusal().as_deref() == Some(warning) => Some(
            "look at the servers with `longhaul trust`, which asks before it trusts them, or remove the file",
        ),
        Ok(Some(file)) if file.warnings.iter().any(|of_file| of_file == warning) => {
            Some("fix the server in the file, then run `longhaul trust` again")
        }
        _ => None,
    }
}
