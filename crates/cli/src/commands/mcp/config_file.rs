//! Adds and removes the section of a server in the user's config file. Everything else in it stays, comments too.

use std::io::Write as _;
use std::path::Path;

use longhaul_agent::Config;
use longhaul_agent::journal::ReplacingFile;
use longhaul_agent::mcp::ServerSettings;
use longhaul_protocol::PrintablePath;

use crate::bad_usage;

pub(crate) fn add_server(file: &Path, name: &str, settings: &ServerSettings) -> anyhow::Result<()> {
    let text = read(file)?;
    if Config::from_toml(&text)?.settings.mcp.servers.contains_key(name) {
        return Err(bad_usage(format!(
            "there is already an MCP server {name:?} in {}; remove it first with `longhaul mcp remove {name}`",
            file.printable()
        )));
    }
    let gap = if text.is_empty() || text.ends_with("\n\n") {
        ""
    } else if text.ends_with('\n') {
        "\n"
    } else {
        "\n\n"
    };
    write(file, &format!("{text}{gap}{}", section(name, settings)))
}

pub(crate) fn remove_server(file: &Path, name: &str) -> anyhow::Result<()> {
    let text = read(file)?;
    if !Config::from_toml(&text)?.settings.mcp.servers.contains_key(name) {
        return Err(bad_usage(format!("there is no MCP server {name:?} in {}", file.printable())));
    }
    let rest = without_section(&text, name);
    if Config::from_toml(&rest)?.settings.mcp.servers.contains_key(name) {
        let reason = "it is not written as a section of its own; remove it by hand";
        return Err(bad_usage(format!("can't remove {name:?} from {}: {reason}", file.printable())));
    }
    write(file, &rest)
}

/// The section of a server, as TOML.
pub(super) fn section(name: &str, settings: &ServerSettings) -> String {
    let text = |value: &str| serde_json::Value::from(value).to_string();
    let list = |values: &[String]| values.iter().map(|value| text(value)).collect::<Vec<_>>().join(", ");
    let mut lines = vec![format!("[mcp.servers.{name}]")];
    if !settings.command.is_empty() {
        lines.push(format!("command = {}", text(&settings.command)));
    }
    if !settings.args.is_empty() {
        lines.push(format!("args = [{}]", list(&settings.args)));
    }
    if !settings.url.is_empty() {
        lines.push(format!("url = {}", text(&settings.url)));
    }
    if !settings.env.is_empty() {
        lines.push(format!("env = [{}]", list(&settings.env)));
    }
    if !settings.headers.is_empty() {
        let headers =
            settings.headers.iter().map(|(name, value)| format!("{} = {}", text(name), text(value)));
        lines.push(format!("headers = {{ {} }}", headers.collect::<Vec<_>>().join(", ")));
    }
    if !settings.enabled {
        lines.push("enabled = false".to_owned());
    }
    lines.join("\n") + "\n"
}

/// The text without the section of a server and the sections within it. Comments right above the next section belong to that one.
fn without_section(text: &str, name: &str) -> String {
    let header = format!("[mcp.servers.{name}]");
    let within = format!("[mcp.servers.{name}.");
    let (mut rest, mut held) = (String::new(), String::new());
    let mut is_inside = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if trimmed.starts_with('[') {
            is_inside = trimmed.starts_with(&header) || trimmed.starts_with(&within);
            let above = std::mem::take(&mut held);
            rest.push_str(if is_inside { "" } else { &above });
        }
        match is_inside {
            true if trimmed.is_empty() || trimmed.starts_with('#') => held.push_str(line),
            true => held.clear(),
            false => rest.push_str(line),
        }
    }
    rest + &held
}

fn read(file: &Path) -> anyhow::Result<String> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(bad_usage(format!("can't read {}: {error}", file.printable()))),
    }
}

/// Writes a text that is a config, and no other.
fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    Config::from_toml(text)?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut replacing = ReplacingFile::create(file)?;
    replacing.write_all(text.as_bytes())?;
    Ok(replacing.finish()?)
}

#[cfg(test)]
#[path = "config_file_tests.rs"]
mod tests;
