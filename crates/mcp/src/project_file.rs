//! The `.mcp.json` of a project, in the form that other agents use too.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{ServerSettings, check_server_name};

/// The name of the file.
pub const PROJECT_FILE: &str = ".mcp.json";

#[derive(Deserialize)]
struct ProjectFile {
    #[serde(default, rename = "mcpServers")]
    servers: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct ProjectServer {
    #[serde(default)]
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    url: String,
    /// How Gemini names the address of a streamable HTTP server.
    #[serde(default, rename = "httpUrl")]
    http_url: String,
    /// How Windsurf names the address.
    #[serde(default, rename = "serverUrl")]
    server_url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    disabled: bool,
}

/// The servers in the text of such a file, and what is wrong with others in it.
pub fn parse_project_file(text: &str) -> Result<(BTreeMap<String, ServerSettings>, Vec<String>), String> {
    let file: ProjectFile =
        serde_json::from_str(text).map_err(|error| format!("this is not a list of MCP servers: {error}"))?;
    let (mut servers, mut warnings) = (BTreeMap::new(), Vec::new());
    for (name, value) in file.servers {
        match parse_server(&name, value) {
            Ok(settings) => drop(servers.insert(name, settings)),
            Err(reason) => warnings.push(format!("ignoring the MCP server {name:?}: {reason}")),
        }
    }
    Ok((servers, warnings))
}

fn parse_server(name: &str, value: Value) -> Result<ServerSettings, String> {
    check_server_name(name)?;
    if value["type"] == "sse" {
        return Err("its transport `sse` was replaced by streamable HTTP, and is not supported".to_owned());
    }
    let server: ProjectServer = serde_json::from_value(value).map_err(|error| error.to_string())?;
    // `"KEY": "${KEY}"` is how such a file names a variable.
    let (named, valued): (BTreeMap<_, _>, BTreeMap<_, _>) =
        server.env.into_iter().partition(|(name, value)| *value == format!("${{{name}}}"));
    let settings = ServerSettings {
        command: server.command,
        args: server.args,
        url: [server.http_url, server.url, server.server_url]
            .into_iter()
            .find(|url| !url.is_empty())
            .unwrap_or_default(),
        env: named.into_keys().collect(),
        headers: server.headers,
        enabled: !server.disabled,
        variables: valued,
        is_of_folder: true,
        ..ServerSettings::default()
    };
    settings.transport()?;
    Ok(settings)
}

#[cfg(test)]
#[path = "project_file_tests.rs"]
mod tests;
