//! Shows the servers that other agents have configured, as sections for the user's own config file. Nothing is copied: the user decides.

use std::path::{Path, PathBuf};

use longhaul_agent::mcp::{ServerSettings, parse_project_file};
use longhaul_protocol::{PrintablePath, printable};
use serde::Serialize;
use serde_json::{Map, Value};

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
    /// The folder for which Claude Code has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    settings: ServerSettings,
    /// Variables whose values stand in that file. They are not copied.
    values_left_out: Vec<String>,
}

impl FoundServer {
    /// The comments above its section, each on one line: a file that somebody else wrote must not put keys into the user's config.
    fn comments(&self) -> Vec<String> {
        let project = self.project.as_ref().map(|folder| format!(", for {}", printable(folder.as_bytes())));
        let from = format!("# from {}{}", self.from.printable(), project.unwrap_or_default());
        let set = |variable: &String| {
            let variable = printable(variable.as_bytes());
            format!("# set {variable} in your environment; its value is in that file")
        };
        std::iter::once(from).chain(self.values_left_out.iter().map(set)).collect()
    }
}

/// What other agents have configured.
#[derive(Default)]
struct FoundServers {
    servers: Vec<FoundServer>,
    /// What can't be proposed, and why.
    warnings: Vec<String>,
}

pub(crate) fn run(as_json: bool) -> anyhow::Result<u8> {
    let home = std::env::var_os("HOME").map(PathBuf::from).ok_or_else(|| bad_usage("HOME is not set"))?;
    let FoundServers { servers: found, warnings } = find_servers(&home);
    warnings.iter().for_each(note);
    if as_json {
        json(&found)?;
        return Ok(exit::DONE);
    }
    if found.is_empty() {
        line("No MCP servers of other agents found.")?;
    }
    for server in &found {
        server.comments().into_iter().try_for_each(line)?;
        line(section(&server.name, &server.settings))?;
    }
    if !found.is_empty() {
        note("review them, then add what you want to your config file, or with `longhaul mcp add`");
    }
    Ok(exit::DONE)
}

fn find_servers(home: &Path) -> FoundServers {
    let mut found = FoundServers::default();
    for file in FILES.map(|file| home.join(file)) {
        let Ok(text) = std::fs::read_to_string(&file) else { continue };
        found.add(&file, None, &text);
        for (project, text) in claude_projects(&text) {
            found.add(&file, Some(&project), &text);
        }
    }
    let codex = home.join(CODEX_FILE);
    if let Ok(text) = std::fs::read_to_string(&codex) {
        match codex_as_json(&text) {
            Ok(text) => found.add(&codex, None, &text),
            Err(reason) => found.warn(&codex, &reason),
        }
    }
    found
}

impl FoundServers {
    fn add(&mut self, from: &Path, project: Option<&str>, text: &str) {
        let (servers, warnings) = match parse_project_file(&with_common_url_key(text)) {
            Ok(parsed) => parsed,
            Err(reason) => return self.warn(from, &reason),
        };
        warnings.iter().for_each(|warning| self.warn(from, warning));
        for (name, mut settings) in servers {
            if self.servers.iter().any(|known| known.name == name) {
                continue;
            }
            let mut values_left_out: Vec<String> =
                std::mem::take(&mut settings.variables).into_keys().collect();
            settings.env.extend(values_left_out.iter().cloned());
            values_left_out.extend(leave_out_header_values(&name, &mut settings));
            let (from, project) = (from.to_owned(), project.map(str::to_owned));
            self.servers.push(FoundServer { name, from, project, settings, values_left_out });
        }
    }

    fn warn(&mut self, from: &Path, reason: &str) {
        self.warnings.push(format!("{}: {reason}", from.printable()));
    }
}

/// Gemini calls the address of a server over HTTP `httpUrl`, and Windsurf `serverUrl`; with the others it is `url`.
fn with_common_url_key(text: &str) -> String {
    let Ok(mut file) = serde_json::from_str::<Value>(text) else { return text.to_owned() };
    let servers = file.get_mut("mcpServers").and_then(Value::as_object_mut);
    for server in servers.into_iter().flat_map(Map::values_mut).filter_map(Value::as_object_mut) {
        let address = ["httpUrl", "serverUrl"].into_iter().find_map(|key| server.remove(key));
        address.map(|address| server.insert("url".to_owned(), address));
    }
    file.to_string()
}

/// Puts a variable in place of each value of a header. Returns the variables.
fn leave_out_header_values(server: &str, settings: &mut ServerSettings) -> Vec<String> {
    let mut variables = Vec::new();
    for (header, value) in settings.headers.iter_mut().filter(|(_, value)| !value.contains("${")) {
        let letter =
            |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_uppercase() } else { '_' };
        let variable: String = format!("{server}_{header}").chars().map(letter).collect();
        // The scheme before a token is no secret.
        let scheme = value.split_once(' ').map(|(scheme, _)| scheme).filter(|scheme| is_scheme(scheme));
        *value = match scheme {
            Some(scheme) => format!("{scheme} ${{{variable}}}"),
            None => format!("${{{variable}}}"),
        };
        variables.push(variable);
    }
    variables
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic", "token"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// The servers that Claude Code has for single folders, each folder's as a text of its own.
fn claude_projects(text: &str) -> Vec<(String, String)> {
    let Ok(file) = serde_json::from_str::<Value>(text) else { return vec![] };
    let projects = file["projects"].as_object().into_iter().flatten();
    let with_servers = projects.filter(|(_, project)| project["mcpServers"].is_object());
    let as_file = |project: &Value| serde_json::json!({"mcpServers": project["mcpServers"]}).to_string();
    with_servers.map(|(folder, project)| (folder.clone(), as_file(project))).collect()
}

/// The servers of codex in the form of the others.
fn codex_as_json(text: &str) -> Result<String, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let servers = table.get("mcp_servers").map(serde_json::to_value);
    let mut servers =
        servers.transpose().map_err(|error| error.to_string())?.unwrap_or_else(|| Value::Object(Map::new()));
    for server in
        servers.as_object_mut().into_iter().flat_map(Map::values_mut).filter(|server| server.is_object())
    {
        let mut headers = server["http_headers"].as_object().cloned().unwrap_or_default();
        let of_variables = server["env_http_headers"].as_object().cloned().unwrap_or_default();
        let named = |variable: &Value| variable.as_str().map(|variable| format!("${{{variable}}}"));
        headers.extend(
            of_variables
                .iter()
                .filter_map(|(header, variable)| Some((header.clone(), named(variable)?.into()))),
        );
        if let Some(token) = named(&server["bearer_token_env_var"]) {
            headers.insert("Authorization".to_owned(), format!("Bearer {token}").into());
        }
        let mut env = server["env"].as_object().cloned().unwrap_or_default();
        let passed_on = server["env_vars"].as_array().cloned().unwrap_or_default();
        env.extend(
            passed_on.iter().filter_map(|name| Some((name.as_str()?.to_owned(), named(name)?.into()))),
        );
        (server["headers"], server["env"]) = (headers.into(), env.into());
        server["disabled"] = (server["enabled"] == false).into();
    }
    Ok(serde_json::json!({ "mcpServers": servers }).to_string())
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
