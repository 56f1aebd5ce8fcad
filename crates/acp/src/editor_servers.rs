//! MCP servers that the editor brings along with a session.
//!
//! They come from the editor's settings, so they count as the user's own: the editor started this program and could start the
//! servers itself. They run like configured servers, under a keeper in the sandbox, for this session alone and in
//! this process. A configured server of the same name is used instead.

use std::collections::BTreeMap;

use longhaul_agent::Config;
use longhaul_agent::mcp::{ServerSettings, check_server_name};
use serde::Deserialize;
use serde_json::Value;

/// Letters of a server's name: its tools are named after it.
const MAX_NAME_CHARS: usize = 32;

/// Servers by name, and why others are not used.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct EditorServers {
    pub(crate) servers: BTreeMap<String, ServerSettings>,
    pub(crate) warnings: Vec<String>,
}

#[derive(Deserialize)]
struct EditorServer {
    /// `http` or `sse`; a program has none.
    #[serde(rename = "type", default)]
    transport: Option<String>,
    name: String,
    #[serde(default)]
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<NamedValue>,
    #[serde(default)]
    url: String,
    #[serde(default)]
    headers: Vec<NamedValue>,
}

#[derive(Deserialize)]
struct NamedValue {
    name: String,
    value: String,
}

impl EditorServers {
    /// The servers that the editor names. One that can't be used costs only itself.
    pub(crate) fn parse(servers: &[Value], config: &Config) -> Self {
        let mut parsed = Self::default();
        for server in servers {
            match parse_server(server) {
                Ok((name, _)) if config.has_server(&name) => {
                    parsed
                        .warnings
                        .push(format!("the configured MCP server {name} is used, not the editor's"));
                }
                Ok((name, settings)) => drop(parsed.servers.insert(name, settings)),
                Err(why) => {
                    let name = server["name"].as_str().unwrap_or("?");
                    parsed.warnings.push(format!("the editor's MCP server {name:?} is not used: {why}"));
                }
            }
        }
        parsed
    }
}

fn parse_server(server: &Value) -> Result<(String, ServerSettings), String> {
    let server: EditorServer = serde_json::from_value(server.clone()).map_err(|error| error.to_string())?;
    match server.transport.as_deref() {
        None | Some("stdio" | "http") => {}
        Some(other) => return Err(format!("{other} is not supported; use a program or streamable HTTP")),
    }
    let name = usable_name(&server.name);
    check_server_name(&name)?;
    let pairs = |values: Vec<NamedValue>| values.into_iter().map(|pair| (pair.name, pair.value)).collect();
    let settings = ServerSettings {
        command: server.command,
        args: server.args,
        url: server.url,
        headers: pairs(server.headers),
        variables: pairs(server.env),
        is_of_folder: true,
        shared: false,
        ..ServerSettings::default()
    };
    settings.transport()?;
    Ok((name, settings))
}

/// Editors let people give servers any name.
fn usable_name(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let plain: String = name.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
    let single: Vec<&str> = plain.split('_').filter(|part| !part.is_empty()).collect();
    let name: String = single.join("_").chars().take(MAX_NAME_CHARS).collect();
    name.trim_matches(['-', '_']).to_owned()
}

#[cfg(test)]
#[path = "editor_servers_tests.rs"]
mod tests;
