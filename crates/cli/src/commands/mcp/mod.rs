//! `longhaul mcp`: the MCP servers whose tools the agent may use; and Longhaul as such a server.

mod config_file;
mod import;
mod login;
mod serve;

use std::io::IsTerminal;

use longhaul_agent::Config;
use longhaul_agent::config::{ProjectFile, ProjectServersFile};
use longhaul_agent::mcp::{
    LoginState, ServerSettings, ServerState, ServerStatus, TransportKind, check_server_name,
};
use longhaul_protocol::PrintablePath;
use serde::Serialize;

use crate::args::{GlobalArgs, McpAddOptions, McpCommand};
use crate::output::{json, line, note};
use crate::{bad_usage, config, exit};

pub(crate) async fn run(
    globals: &GlobalArgs,
    command: Option<McpCommand>,
    as_json: bool,
) -> anyhow::Result<u8> {
    match command {
        None => list(globals, as_json),
        Some(McpCommand::List { json }) => list(globals, as_json || json),
        Some(McpCommand::Add(options)) => add(globals, options),
        Some(McpCommand::Remove { name }) => remove(globals, &name),
        Some(McpCommand::Check { name, json }) => check(globals, name.as_deref(), json).await,
        Some(McpCommand::Login { name, paste }) => login::log_in(globals, &name, paste).await,
        Some(McpCommand::Logout { name }) => login::log_out(globals, &name),
        Some(McpCommand::Import { json }) => import::run(json),
        Some(McpCommand::Serve) => serve::run(globals).await,
    }
}

/// A server in the listing.
#[derive(Serialize)]
struct ServerRow {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<TransportKind>,
    /// The command line or the address.
    target: String,
    enabled: bool,
    shared: bool,
    /// `config`, or the path of a project's file.
    source: String,
    /// Whether a session in this folder uses it.
    used: bool,
    /// Why not, if it is enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    unused_because: Option<&'static str>,
    /// Whether you are logged in there, if it asks for that.
    login: LoginState,
}

fn list(globals: &GlobalArgs, as_json: bool) -> anyhow::Result<u8> {
    let config = config::load(globals)?;
    let servers = longhaul_agent::configured_servers(&config)?;
    let mut rows: Vec<ServerRow> = config
        .settings
        .mcp
        .servers
        .iter()
        .map(|(name, settings)| row(name, settings, "config".to_owned(), None))
        .collect();
    let own = |name: &String| config.settings.mcp.servers.contains_key(name);
    let own_wins = |name: &String| own(name).then_some("you have a server of this name");
    // Those of the `.mcp.json` are listed below, trusted or not.
    let of_config_file = || config.project_servers.iter().filter(|(_, settings)| !settings.is_of_folder);
    if let Some(file) = ProjectFile::find(&config.home, &globals.sources()?).ok().flatten() {
        let source = file.path.printable().to_string();
        rows.extend(
            of_config_file().map(|(name, settings)| row(name, settings, source.clone(), own_wins(name))),
        );
    }
    // A file that can't be read offers no servers; `longhaul mcp check` and `longhaul trust` say why.
    if let Ok(Some(file)) = ProjectServersFile::find(&config.home, &globals.sources()?) {
        let is_trusted = file.refusal().is_none();
        let unused_because = |name: &String| match of_config_file().any(|(known, _)| known == name) {
            _ if own(name) => own_wins(name),
            true => Some("longhaul.toml has a server of this name"),
            false => (!is_trusted).then_some("not trusted; `longhaul trust` shows it"),
        };
        let source = file.path.printable().to_string();
        let of_project = file
            .servers
            .iter()
            .map(|(name, settings)| row(name, settings, source.clone(), unused_because(name)));
        rows.extend(of_project);
    }
    for row in rows.iter_mut().filter(|row| row.used) {
        row.login = servers.login_state(&row.name).unwrap_or(LoginState::NotNeeded);
    }
    if as_json {
        json(&rows)?;
        return Ok(exit::DONE);
    }
    if rows.is_empty() {
        line("No MCP servers. Add one with `longhaul mcp add NAME -- COMMAND`.")?;
    }
    for row in rows {
        let state = match (row.enabled, row.used, row.login) {
            (false, ..) => "  # not enabled".to_owned(),
            (true, true, LoginState::NotNeeded) => String::new(),
            (true, true, LoginState::LoggedIn) => "  # logged in".to_owned(),
            (true, true, LoginState::Needed) => {
                format!("  # needs a login: `longhaul mcp login {}`", row.name)
            }
            (true, false, _) => format!("  # not used: {}", row.unused_because.unwrap_or_default()),
        };
        line(format!("{}  {}{state}", row.name, row.target))?;
    }
    Ok(exit::DONE)
}

fn row(
    name: &str,
    settings: &ServerSettings,
    source: String,
    unused_because: Option<&'static str>,
) -> ServerRow {
    let words = std::iter::once(&settings.command).chain(&settings.args);
    let target = match settings.url.is_empty() {
        true => words.map(String::as_str).collect::<Vec<_>>().join(" "),
        false => longhaul_agent::config::hide_url_password(&settings.url),
    };
    ServerRow {
        name: name.to_owned(),
        transport: settings.transport().ok(),
        target,
        enabled: settings.enabled,
        shared: settings.shared,
        source,
        used: unused_because.is_none() && settings.enabled,
        unused_because: unused_because.filter(|_| settings.enabled),
        login: LoginState::NotNeeded,
    }
}

fn add(globals: &GlobalArgs, options: McpAddOptions) -> anyhow::Result<u8> {
    check_server_name(&options.name).map_err(bad_usage)?;
    if let Some(named) = options.env.iter().find(|name| !is_variable_name(name)) {
        let name = named.split('=').next().unwrap_or_default();
        return Err(bad_usage(format!(
            "--env takes the name of a variable, not {named:?}: `--env {name}` passes on the value that {name} has when the server starts"
        )));
    }
    if let Some(url) = options.url.as_ref().filter(|url| !is_web_address(url)) {
        return Err(bad_usage(format!("--url takes an http or https address, not {url:?}")));
    }
    let mut command = options.command.into_iter();
    let settings = ServerSettings {
        command: command.next().unwrap_or_default(),
        args: command.collect(),
        url: options.url.unwrap_or_default(),
        env: options.env,
        headers: options.header.iter().map(|header| parse_header(header)).collect::<anyhow::Result<_>>()?,
        ..ServerSettings::default()
    };
    settings.transport().map_err(|problem| {
        bad_usage(format!(
            "{problem}: `longhaul mcp add NAME -- COMMAND` or `longhaul mcp add NAME --url URL`"
        ))
    })?;
    let file = config::user_file(globals)?;
    config_file::add_server(&file, &options.name, &settings)?;
    note(format!("added to {}; try it with `longhaul mcp check {}`", file.printable(), options.name));
    Ok(exit::DONE)
}

fn is_variable_name(name: &str) -> bool {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || character == '_';
    !name.is_empty()
        && name.chars().all(is_allowed)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// Whether it is an address that a server can have.
fn is_web_address(url: &str) -> bool {
    !url.contains("${")
        && ["https://", "http://"]
            .iter()
            .any(|scheme| url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()))
}

fn parse_header(header: &str) -> anyhow::Result<(String, String)> {
    let (name, value) = header
        .split_once(':')
        .ok_or_else(|| bad_usage(format!("a header is `Name: value`, not {header:?}")))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn remove(globals: &GlobalArgs, name: &str) -> anyhow::Result<u8> {
    let file = config::user_file(globals)?;
    config_file::remove_server(&file, name)?;
    note(format!("removed {name} from {}", file.printable()));
    Ok(exit::DONE)
}

async fn check(globals: &GlobalArgs, name: Option<&str>, as_json: bool) -> anyhow::Result<u8> {
    let config = config::load(globals)?;
    if std::io::stderr().is_terminal() {
        note("starting MCP servers; one that has to be fetched may take two minutes");
    }
    let statuses = longhaul_agent::check_servers(&config, name).await?;
    if let (Some(name), true) = (name, statuses.is_empty()) {
        return Err(unknown_server(&config, name));
    }
    let is_fine = statuses.iter().all(|status| status.state == ServerState::Ready);
    if as_json {
        json(&statuses)?;
    } else if statuses.is_empty() {
        line("No MCP servers. Add one with `longhaul mcp add NAME -- COMMAND`.")?;
    } else {
        statuses.iter().flat_map(status_lines).try_for_each(line)?;
    }
    Ok(if is_fine { exit::DONE } else { exit::FAILED })
}

fn unknown_server(config: &Config, name: &str) -> anyhow::Error {
    let all = || config.settings.mcp.servers.iter().chain(&config.project_servers);
    if all().any(|(known, settings)| known == name && !settings.enabled) {
        return bad_usage(format!(
            "the MCP server {name} is not enabled; set `enabled = true` in its section"
        ));
    }
    let names: Vec<&str> =
        all().filter(|(_, settings)| settings.enabled).map(|(name, _)| name.as_str()).collect();
    let known = if names.is_empty() {
        "there is none".to_owned()
    } else {
        format!("there are: {}", names.join(", "))
    };
    bad_usage(format!("no MCP server {name:?}; {known}"))
}

/// A server's state, its tools, and what the user should know.
pub(crate) fn status_lines(status: &ServerStatus) -> Vec<String> {
    let about = match (&status.reason, &status.protocol) {
        (Some(reason), _) => reason.clone(),
        (None, Some(protocol)) => format!("{} tools, protocol {protocol}", status.tools.len()),
        (None, None) => format!("{} tools", status.tools.len()),
    };
    let mut lines = vec![format!("{}: {}, {about}", status.name, status.state.word())];
    lines.extend(status.tools.iter().map(|tool| format!("  {tool}")));
    lines.extend(status.warnings.iter().map(|warning| format!("  warning: {warning}")));
    lines
}
