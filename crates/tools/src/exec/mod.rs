//! `exec`: runs commands, each under a keeper of its own.
//!
//! The tool starts a command and waits. A call that is dropped or killed leaves the command to its keeper;
//! [`Tool::resume`] finds the command and waits for it again.

mod command_run;
pub(crate) mod result;
mod sandbox_refusal;
mod task_limit;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_keeper::{FORMAT, Spec, Tasks};
use longhaul_protocol::{Effect, SessionId, TaskId, ToolStarted};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use command_run::KEEPER_RETRY_DELAY;
use command_run::{CommandRun, RunMode};
use task_limit::TaskSlots;

use crate::blocking_run::run_to_completion;
use crate::sandbox::SandboxedCommand;
use crate::shell::long_sleep;
use crate::{
    Confinement, Permission, PreparedCall, Redact, ResumedCall, Sandbox, SandboxMode, Scope, Tool,
    ToolDefinition, ToolInvocation, ToolOutcome, arguments, display, schema_of,
};

const MAX_TIMEOUT_SECONDS: u64 = 600;
/// Bytes of a command's first line that stand in for a missing description.
const MAX_DESCRIPTION_BYTES: usize = 80;
const LOCAL_TARGET: &str = "local";
/// A variable with this ending, in any case, holds a key.
const KEY_ENDING: &str = "_API_KEY";
/// What the model is told of a command that ran outside of the sandbox.
const SECOND_RUN: &str = "it ran twice: first in the sandbox, which refused it, then once more from its start outside of the sandbox, \
                          as the user allowed for this one time; this is the result of the second run";
const TOKEN_VARIABLE: &str = "LONGHAUL_TOKEN";

/// What exec takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    /// What it is for, in a few words.
    description: Option<String>,
    /// Seconds until it goes on as a background task, 1 to 600. Default: 30.
    timeout: Option<u64>,
    /// Seconds until it is killed. Default: none.
    #[schemars(range(min = 1))]
    max_runtime: Option<u64>,
    /// Start it as a task and return at once: for servers and long builds.
    run_in_background: Option<bool>,
    /// Default: the work folder.
    work_dir: Option<String>,
}

/// The settings of `exec`.
#[derive(Clone)]
pub struct ExecSettings {
    /// Where tasks are kept.
    pub tasks: Arc<Tasks>,
    /// Limits the folders in which a command may start, and has the default one.
    pub scope: Arc<Scope>,
    /// The complete environment of a command; [`command_environment`] makes one.
    pub environment: BTreeMap<String, String>,
    /// Bytes of a command's output to keep on disk.
    pub output_cap: u64,
    /// The file with the token of keepers' sockets, relative to a task's folder: `../../run/token`.
    pub token_file: String,
    /// Confines commands to the scope.
    pub sandbox: Sandbox,
    /// A command that takes longer goes on in the background, unless its call says otherwise.
    pub timeout: Duration,
    /// Tasks of a session that may run at once.
    pub max_tasks: usize,
    /// Removes secrets from the output.
    pub redact: Redact,
}

impl fmt::Debug for ExecSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecSettings").field("scope", &self.scope).finish_non_exhaustive()
    }
}

/// The tool.
pub struct ExecTool {
    definition: ToolDefinition,
    settings: Arc<ExecSettings>,
}

impl ExecTool {
    pub fn new(settings: ExecSettings) -> Self {
        Self { definition: definition(), settings: Arc::new(settings) }
    }
}

/// K17: the environment of this process without keys: neither the names in `hidden`, nor anything that looks like one.
///
/// A variable whose name or value is not Unicode is left out, even `PATH` or `HOME`: a task's spec is JSON, and a
/// changed value would silently point elsewhere.
pub fn command_environment(hidden: &[String]) -> BTreeMap<String, String> {
    without_secrets(std::env::vars_os(), hidden)
}

fn without_secrets(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    hidden: &[String],
) -> BTreeMap<String, String> {
    let is_hidden = |name: &str| {
        let is_key = name.len() >= KEY_ENDING.len()
            && name.as_bytes()[name.len() - KEY_ENDING.len()..].eq_ignore_ascii_case(KEY_ENDING.as_bytes());
        is_key || name == TOKEN_VARIABLE || hidden.iter().any(|hidden| hidden == name)
    };
    let unicode = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    unicode.filter(|(name, _)| !is_hidden(name)).collect()
}

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
        name: "exec".into(),
        description: "Run a bash command; stdin is closed. For files and searches, prefer the tools for them. A command that takes \
                      longer than `timeout` goes on as a background task; you are told when it ends.".into(),
        effect: Effect::Command,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Standard input is closed: a program that asks gets no answer.",
            "Colours and control codes are taken out; of a line that was overwritten the last state is kept.",
            "A long output is shown with its head and tail; up to 1 MiB of it can be read on with read_file.",
            "API keys are not in the environment of commands, nor what is not Unicode.",
            "`timeout` is at most 600; more is taken as 600. What is the default, and how many tasks of a session may run at \
             once, is set under `[exec]`.",
            "What a command started in the background by itself (`server &`) goes on, if its output goes to a file. In the sandbox, \
             task_output without a `task_id` lists it and task_kill ends it.",
        ],
        example: r#"{"command": "cargo test --quiet", "description": "run the tests", "max_runtime": 600}"#,
    }
}

#[async_trait]
impl Tool for ExecTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn prepare(&self, call: &ToolInvocation) -> Result<PreparedCall, ToolOutcome> {
        let arguments = self.parse_arguments(call)?;
        refuse_long_sleep(&arguments)?;
        let work_dir = self.folder(arguments.work_dir.as_deref()).await?;
        let confined = self.confine(call, &work_dir).await?;
        let run = self.new_run(call, &arguments);
        if run.mode == RunMode::Background {
            run.slots.check().await?;
        }
        let spec = Spec {
            format: FORMAT,
            task_id: run.id(),
            command: arguments.command,
            work_dir,
            environment: confined.environment,
            output_cap: self.settings.output_cap,
            max_runtime_s: arguments.max_runtime,
            session: Some(call.session),
            description: Some(run.description.clone()),
            target: LOCAL_TARGET.to_owned(),
            token_file: self.settings.token_file.clone(),
            bounds: confined.bounds,
            relay: false,
        };
        let tasks = self.settings.tasks.identity().to_owned();
        let settings = Arc::clone(&self.settings);
        let (session, id) = (call.session, run.id());
        let run = move |stop| async move {
            let finished = run.start(spec, stop).await;
            settings.command_returned(session, id);
            finished
        };
        Ok(PreparedCall::new(run).kept_in(&tasks))
    }

    async fn resume(&self, call: &ToolInvocation, started: &ToolStarted) -> ResumedCall {
        let arguments = match self.parse_arguments(call) {
            Ok(arguments) => arguments,
            Err(refused) => return ResumedCall::Unknown(refused.content),
        };
        let run = self.new_run(call, &arguments);
        let id = run.id();
        let resumed = run.resume(started).await;
        self.settings.command_returned(call.session, id);
        resumed
    }
}

impl ExecSettings {
    /// The call has returned; the command, or processes that it left, may go on.
    fn command_returned(&self, session: SessionId, id: TaskId) {
        let tasks = Arc::clone(&self.tasks);
        let goes_on = move || tasks.is_kept(id).unwrap_or(true);
        self.sandbox.repositories().command_returned(&self.scope, session, id, goes_on);
    }
}

impl ExecTool {
    fn parse_arguments(&self, call: &ToolInvocation) -> Result<Arguments, ToolOutcome> {
        let arguments: Arguments = arguments::parse(&self.definition, &call.arguments)?;
        let refused = |why: &str| Err(ToolOutcome::error(format!("exec was not run: {why}")));
        if arguments.command.trim().is_empty() {
            return refused("`command` is empty");
        }
        if arguments.command.contains('\0') {
            return refused("`command` has a zero byte in it, which no command can have");
        }
        if arguments.timeout == Some(0) {
            return refused("`timeout` must be at least 1 second");
        }
        Ok(arguments)
    }

    async fn folder(&self, path: Option<&str>) -> Result<PathBuf, ToolOutcome> {
        let scope = Arc::clone(&self.settings.scope);
        let Some(path) = path.map(str::to_owned) else {
            return run_to_completion(move || {
                let refused = |why: String| ToolOutcome::error(format!("exec was not run: {why}"));
                let work_dir = scope.work_dir();
                if scope.denies(work_dir) {
                    let shown = display::display_path(work_dir);
                    return Err(refused(format!(
                        "the scope denies the work folder {shown} (`[[scope.deny]]`)"
                    )));
                }
                scope.check_work_dir().map_err(|error| refused(error.to_string()))?;
                Ok(work_dir.to_owned())
            })
            .await;
        };
        run_to_completion(move || {
            let refused =
                |error| ToolOutcome::error(format!("exec was not run, because of its `work_dir`: {error}"));
            scope.check_folder(&path, Permission::Read).map_err(refused)
        })
        .await
    }

    /// The bounds and environment of the command.
    async fn confine(&self, call: &ToolInvocation, work_dir: &Path) -> Result<SandboxedCommand, ToolOutcome> {
        let (settings, work_dir) = (Arc::clone(&self.settings), work_dir.to_owned());
        let (session, confinement) = (call.session, call.confinement);
        let skill_folders = Arc::clone(&call.skill_folders);
        run_to_completion(move || {
            let refused =
                |why| ToolOutcome::error(format!("exec was not run: it can't be held to the scope. {why}"));
            settings.scope.find_protected_files();
            let sandbox = &settings.sandbox;
            if confinement == Confinement::Sandbox
                && sandbox.mode() != SandboxMode::Off
                && sandbox.should_confine(settings.tasks.enforcement()).map_err(refused)?
            {
                let confined = sandbox.confine(
                    &settings.scope,
                    &settings.environment,
                    &work_dir,
                    Some(session),
                    &skill_folders,
                );
                let mut confined =
                    confined.map_err(|why| ToolOutcome::error(format!("exec was not run: {why}")))?;
                if let Some(bounds) = &mut confined.bounds {
                    bounds.processes = settings.tasks.enforcement().processes();
                }
                return Ok(confined);
            }
            Ok(SandboxedCommand { bounds: None, environment: settings.environment.clone() })
        })
        .await
    }

    fn new_run(&self, call: &ToolInvocation, arguments: &Arguments) -> CommandRun {
        let clamped = arguments.timeout.filter(|timeout| *timeout > MAX_TIMEOUT_SECONDS);
        let clamped =
            clamped.map(|timeout| format!("`timeout` was taken as {MAX_TIMEOUT_SECONDS}, not {timeout}"));
        let second = (call.confinement == Confinement::Outside).then(|| SECOND_RUN.to_owned());
        let timeout = arguments.timeout.map(|timeout| Duration::from_secs(timeout.min(MAX_TIMEOUT_SECONDS)));
        let in_background = arguments.run_in_background == Some(true);
        CommandRun {
            call: call.id,
            confinement: call.confinement,
            output_limit: call.output_limit,
            command: arguments.command.clone(),
            description: description_of(arguments),
            mode: if in_background { RunMode::Background } else { RunMode::Foreground },
            timeout: timeout.unwrap_or(self.settings.timeout),
            max_runtime: arguments.max_runtime,
            notes: second.into_iter().chain(clamped).collect(),
            slots: TaskSlots::new(call, &self.settings),
            settings: Arc::clone(&self.settings),
        }
    }
}

/// K4. Only before a command begins: `resume` waits for a running command, whatever it does.
fn refuse_long_sleep(arguments: &Arguments) -> Result<(), ToolOutcome> {
    match long_sleep(&arguments.command) {
        Some(sleep) if arguments.run_in_background != Some(true) => {
            Err(ToolOutcome::error(format!("exec was not run: {sleep}")))
        }
        _ => Ok(()),
    }
}

/// A description of the command in one line.
fn description_of(arguments: &Arguments) -> String {
    let given = arguments.description.as_deref().map(str::trim).filter(|given| !given.is_empty());
    if let Some(given) = given {
        return given.to_owned();
    }
    let line = arguments.command.trim().lines().next().unwrap_or_default();
    display::truncate_with_ellipsis(line, MAX_DESCRIPTION_BYTES)
}

#[cfg(test)]
#[path = "exec_tests.rs"]
mod tests;
