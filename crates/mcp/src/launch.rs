//! Starts a server's program under a keeper, in the sandbox, with nothing in its environment that was not named.

use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_keeper::{FORMAT, Spec, Tasks};
use longhaul_protocol::{CallId, TaskId, single_quoted};
use longhaul_tools::{Sandbox, Scope, last_output_line};

use crate::host::note_use;
use crate::settings::expand_variables;
use crate::{Error, Result, ServerSettings};

/// Variables that programs need to find themselves, their files and the user's language. Every server gets them.
const BASE_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
];
const BASE_PREFIXES: &[&str] = &["LC_", "XDG_"];
/// Bytes of a server's standard error to keep.
const STDERR_CAP_BYTES: u64 = 1 << 20;
/// Relative to the folder of a server's keeper: `mcp/servers/<id>`.
const TOKEN_FILE: &str = "../../../run/token";

/// Where the programs of a work folder run: its scope, and the sandbox that holds them to it.
#[derive(Debug, Clone)]
pub struct ServerPlace {
    pub scope: Arc<Scope>,
    pub sandbox: Sandbox,
}

/// A server's program that has been started.
pub(crate) struct LaunchedServer {
    pub(crate) id: TaskId,
    /// Carries its standard input and output.
    pub(crate) stream: UnixStream,
    /// What it has already printed.
    pub(crate) heard: Vec<u8>,
    /// What the user should know.
    pub(crate) warnings: Vec<String>,
}

/// Starts the program. Blocks for some milliseconds.
pub(crate) fn launch_server(
    tasks: &Tasks,
    own_folder: &Path,
    name: &str,
    settings: &ServerSettings,
    place: &ServerPlace,
) -> Result<LaunchedServer> {
    let (mut environment, mut warnings) =
        server_environment(settings, |name| std::env::var(name).ok(), std::env::vars());
    if place.sandbox.is_on() {
        add_tool_folder(&mut environment);
    }
    let settings = &expand_command(settings, &mut warnings);
    find_program(&settings.command, environment.get("PATH").map(String::as_str), place.scope.work_dir())?;
    place.scope.check_work_dir().map_err(|error| Error::NotStarted(error.to_string()))?;
    note_use(own_folder);
    let confined = place
        .sandbox
        .confine_server(&place.scope, &environment, own_folder, tasks.enforcement())
        .map_err(|why| not_confined(&why, place.sandbox.unenforceable(tasks.enforcement()).is_some()))?;
    if confined.bounds.is_none() && place.sandbox.is_on() {
        warnings.push("the system can't enforce the sandbox, so it runs without one".to_owned());
    }
    let id = TaskId::from(CallId::generate());
    let spec = Spec {
        format: FORMAT,
        task_id: id,
        command: command_line(&settings.command, &settings.args),
        work_dir: place.scope.work_dir().to_owned(),
        environment: confined.environment,
        output_cap: STDERR_CAP_BYTES,
        max_runtime_s: None,
        session: None,
        description: Some(format!("MCP server {name}")),
        target: "local".to_owned(),
        token_file: TOKEN_FILE.to_owned(),
        bounds: confined.bounds,
        relay: true,
    };
    let failed = |error: longhaul_keeper::Error| Error::NotStarted(error.to_string());
    let task = tasks.start(&spec).map_err(failed)?;
    match task.relay().map_err(failed)? {
        Some((stream, heard)) => Ok(LaunchedServer { id, stream, heard, warnings }),
        None => Err(Error::NotStarted(describe_end(tasks, id))),
    }
}

fn not_confined(why: &str, is_unenforceable: bool) -> Error {
    let next = match is_unenforceable {
        true => "; to run MCP servers without a sandbox, set `sandbox.unavailable` to \"allow\"",
        false => "",
    };
    Error::NotStarted(format!("it can't be held to the scope: {why}{next}"))
}

/// How a server's program ended, with the last line of its standard error.
pub(crate) fn describe_end(tasks: &Tasks, id: TaskId) -> String {
    let status = tasks.status(id).ok().flatten();
    let how = match status.as_ref().and_then(|status| status.exit_code) {
        Some(code) => format!("it ended with exit code {code}"),
        None => "it ended".to_owned(),
    };
    let line = tasks.output(id).and_then(|output| last_output_line(&output)).unwrap_or_default();
    match line.trim() {
        "" => how,
        line => format!("{how}: {}", longhaul_protocol::printable(line.as_bytes())),
    }
}

/// The whole environment of a server, and warnings about variables that are not set.
fn server_environment(
    settings: &ServerSettings,
    lookup: impl Fn(&str) -> Option<String>,
    all: impl Iterator<Item = (String, String)>,
) -> (BTreeMap<String, String>, Vec<String>) {
    let is_base = |name: &str| {
        BASE_VARIABLES.contains(&name) || BASE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
    };
    let mut environment: BTreeMap<String, String> = all.filter(|(name, _)| is_base(name)).collect();
    let mut warnings = Vec::new();
    for name in &settings.env {
        match lookup(name) {
            Some(value) => drop(environment.insert(name.clone(), value)),
            None => warnings.push(format!("the variable {name} is not set")),
        }
    }
    for (name, value) in &settings.variables {
        match expand_variables(value, &lookup) {
            Ok(value) => drop(environment.insert(name.clone(), value)),
            Err(missing) => warnings.push(format!("the variable {missing} is not set")),
        }
    }
    (environment, warnings)
}

/// Moves the folder of `uvx` for installed tools into the caches, which a server can write: `uvx` does not run without it.
fn add_tool_folder(environment: &mut BTreeMap<String, String>) {
    let of_home = |home: &String| format!("{home}/.cache");
    let caches = environment.get("XDG_CACHE_HOME").cloned().or_else(|| environment.get("HOME").map(of_home));
    if let Some(caches) = caches {
        environment.entry("UV_TOOL_DIR".to_owned()).or_insert_with(|| format!("{caches}/uv/tools"));
    }
}

/// Checks that the program exists, because the shell's own message is less clear.
pub(crate) fn find_program(command: &str, path: Option<&str>, work_dir: &Path) -> Result<PathBuf> {
    let candidates: Vec<PathBuf> = match command.contains('/') {
        true => vec![work_dir.join(command)],
        false => path.unwrap_or_default().split(':').map(|folder| Path::new(folder).join(command)).collect(),
    };
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let place = if command.contains('/') { "does not exist" } else { "is not on the PATH" };
        Error::NotStarted(format!(
            "the command `{}` {place}; install it, or correct `command`",
            longhaul_protocol::printable(command.as_bytes())
        ))
    })
}

/// The settings with variables in the command and its arguments expanded, which only servers of a project or an editor may have.
fn expand_command(settings: &ServerSettings, warnings: &mut Vec<String>) -> ServerSettings {
    let mut expanded = settings.clone();
    if !settings.is_of_folder {
        return expanded;
    }
    for word in std::iter::once(&mut expanded.command).chain(&mut expanded.args) {
        match expand_variables(word, |name| std::env::var(name).ok()) {
            Ok(value) => *word = value,
            Err(missing) => warnings.push(format!("the variable {missing} is not set")),
        }
    }
    expanded
}

/// The shell command that runs the program in place of the shell.
fn command_line(command: &str, args: &[String]) -> String {
    let words = std::iter::once(command).chain(args.iter().map(String::as_str));
    let quoted: Vec<String> = words.map(single_quoted).collect();
    format!("exec {}", quoted.join(" "))
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
