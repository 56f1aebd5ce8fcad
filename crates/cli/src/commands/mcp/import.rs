//! Shows the servers that other agents have configured, as sections for the user's own config file. Nothing is copied: the user decides.

use std::path::{Path, PathBuf};

use longhaul_agent::mcp::{ServerSettings, parse_project_file};
use longhaul_protocol::PrintablePath;
use serde::Serialize;

use super::config_file::section;
use crate::output::{json, line, note};
use crate::{bad_usage, exit};

/// Where other agents keep their servers, in the user's home folder. All have the key `mcpServers`.
const FILES: [&str; 5] = [
    ".claude.json",
    ".claude/settings.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".codeium/windsurf/mcp_config.json",
];
/// The config file of codex, which has `[mcp_servers.NAME]`.
const CODEX_FILE: &str = ".codex/config.toml";

/// A server that another agent has.
#[derive(Serialize)]
struct FoundServer {
    name: String,
    from: PathBuf,
    settings: ServerSettings,
    /// Variables whose values stand in that file. They are not copied.
    values_left_out: Vec<String>,
}

pub(crate) fn run(as_json: bool) -> anyhow::Result<u8> {
    let home = std::env::var_os("HOME").map(PathBuf::from).ok_or_else(|| bad_usage("HOME is not set"))?;
    let found = find_servers(&home);
    if as_json {
        json(&found)?;
        return Ok(exit::DONE);
    }
    if found.is_empty() {
        line("No MCP servers of other agents found.")?;
    }
    for FoundServer { name, from, settings, values_left_out } in &found {
        line(format!("# from {}", from.printable()))?;
        for variable in values_left_out {
            line(format!("# set {variable} in your environment; its value is in that file"))?;
        }
        line(section(name, settings))?;
    }
    if !found.is_empty() {
        note("review them, then add what you want to your config file, or with `longhaul mcp add`");
    }
    Ok(exit::DONE)
}

fn find_servers(home: &Path) -> Vec<FoundServer> {
    let json_files = FILES
        .iter()
        .map(|file| (home.join(file), std::fs::read_to_string(home.join(file)).unwrap_or_default()));
    let codex = home.join(CODEX_FILE);
    let codex_text =
        std::fs::read_to_string(&codex).ok().and_then(|text| codex_as_json(&text)).unwrap_or_default();
    let mut found: Vec<FoundServer> = Vec::new();
    for (from, text) in json_files.chain([(codex, codex_text)]) {
        let Ok((servers, _)) = parse_project_file(&text) else { continue };
        for (name, mut settings) in servers {
            let values_left_out: Vec<String> = std::mem::take(&mut settings.variables).into_keys().collect();
            settings.env.extend(values_left_out.iter().cloned());
            if !found.iter().any(|known| known.name == name) {
                found.push(FoundServer { name, from: from.clone(), settings, values_left_out });
            }
        }
    }
    found
}

/// The servers of codex in the form of the others.
fn codex_as_json(text: &str) -> Option<String> {
    let table: toml::Table = text.parse().ok()?;
    let servers = serde_json::to_value(table.get("mcp_servers")?).ok()?;
    Some(serde_json::json!({ "mcpServers": servers }).to_string())
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
