//! `exec`: commands, each under a keeper of its own.
//!
//! The tool only starts a command and watches. Whoever stops waiting, by being dropped or killed, leaves the command to its
//! keeper; [`Tool::resume`] finds it again and goes on as if nothing had happened.

mod result;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_keeper::{Error, FORMAT, Found, Spec, Task, Tasks};
use longhaul_protocol::{CallId, Effect, TaskId, ToolStarted};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt;

use result::Over;

use crate::background::{to_the_end, unless};
use crate::bounds::Held;
use crate::{
    About, Call, Cap, Finished, Permission, Prepared, Resumed, Sandbox, Scope, Stop, Tool, arguments,
    schema_of,
};

const LONGEST_TIMEOUT: u64 = 600;
/// A keeper that does not answer is asked again after this. Its command goes on meanwhile.
const PAUSE: Duration = Duration::from_secs(1);
/// How often in a row it may not even be possible to look.
const MOST_TRIES: usize = 60;
/// How often a start that was given up is looked at until it has come to its end.
const PAUSE_OF_START: Duration = Duration::from_millis(20);
const ELSEWHERE: &str =
    "the command was kept in a folder of tasks that is not here, so it may or may not have run";
/// A name with this ending holds a key, whatever it is called before that, in any case.
const KEY_ENDING: &str = "_API_KEY";
const TOKEN: &str = "LONGHAUL_TOKEN";

/// What exec takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The command, for bash. Its standard input is closed.
    command: String,
    /// What it is for.
    description: Option<String>,
    /// Seconds until it goes on in the background, 1 to 600. Not in this version.
    timeout: Option<u64>,
    /// Seconds until it is ended. Default: no limit.
    #[schemars(range(min = 1))]
    max_runtime: Option<u64>,
    /// Return at once. Not in this version.
    run_in_background: Option<bool>,
    /// The folder to run it in, from the work folder on.
    work_dir: Option<String>,
}

/// What commands need besides what the model writes.
#[derive(Debug, Clone)]
pub struct ExecSettings {
    /// Where tasks are kept.
    pub tasks: Arc<Tasks>,
    /// Bounds the folders in which a command may be started, and has the one in which it is unless it says otherwise.
    pub scope: Arc<Scope>,
    /// The whole environment of a command; [`command_environment`] makes one.
    pub environment: BTreeMap<String, String>,
    /// How many bytes of a command's output are kept on disk.
    pub output_cap: u64,
    /// The file with the token of keepers' sockets, by a task's folder: `../../run/token`.
    pub token_file: String,
    /// What holds commands to the scope.
    pub sandbox: Sandbox,
}

/// The tool.
pub struct ExecTool {
    about: About,
    settings: Arc<ExecSettings>,
}

impl ExecTool {
    /// The tool, for commands with these settings.
    pub fn new(settings: ExecSettings) -> Self {
        Self { about: about(), settings: Arc::new(settings) }
    }
}

/// K17: this process's environment without keys: neither the names in `hidden`, nor anything that looks like one.
///
/// A variable whose name or value is not Unicode is left out, also if it is `PATH` or `HOME`: a task's spec is JSON, and a value
/// that was changed to fit would lead elsewhere without anybody noticing.
pub fn command_environment(hidden: &[String]) -> BTreeMap<String, String> {
    visible(std::env::vars_os(), hidden)
}

fn visible(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    hidden: &[String],
) -> BTreeMap<String, String> {
    let is_hidden = |name: &str| {
        let is_key = name.len() >= KEY_ENDING.len()
            && name.as_bytes()[name.len() - KEY_ENDING.len()..].eq_ignore_ascii_case(KEY_ENDING.as_bytes());
        is_key || name == TOKEN || hidden.iter().any(|hidden| hidden == name)
    };
    let unicode = variables
        .into_iter()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    unicode.filter(|(name, _)| !is_hidden(name)).collect()
}

pub(crate) fn about() -> About {
    About {
        name: "exec",
        description: "Runs a command with bash in the work folder and returns its output and exit code, as JSON, when it ends. \
                      What it started in the background goes on, if its output goes to a file.",
        effect: Effect::Command,
        schema: schema_of::<Arguments>(),
        limits: &[
            "Standard input is closed: a program that asks gets no answer.",
            "Colours and control codes are taken out; of a line that was overwritten the last state is kept.",
            "A long output is shown with its head and tail; up to 1 MiB of it can be read on with read_file.",
            "API keys are not in the environment of commands, nor what is not Unicode.",
            "`timeout` is at most 600; more is taken as 600.",
        ],
        example: r#"{"command": "cargo test --quiet", "description": "run the tests", "max_runtime": 600}"#,
    }
}

#[async_trait]
impl Tool for ExecTool {
    fn about(&self) -> &About {
        &self.about
    }

    async fn prepare(&self, call: &Call) -> Result<Prepared, Finished> {
        let arguments = self.check(call)?;
        let work_dir = self.folder(arguments.work_dir.as_deref()).await?;
        let held = self.held(&work_dir).await?;
        let watch = self.watch(call, &arguments);
        let spec = Spec {
            format: FORMAT,
            task_id: watch.id(),
            command: arguments.command,
            work_dir,
            environment: held.environment,
            output_cap: self.settings.output_cap,
            max_runtime_s: arguments.max_runtime,
            description: arguments.description,
            target: "local".to_owned(),
            token_file: self.settings.token_file.clone(),
            bounds: held.bounds,
        };
        let tasks = self.settings.tasks.identity().to_owned();
        Ok(Prepared::new(move |stop| watch.start(spec, stop)).kept_in(&tasks))
    }

    async fn resume(&self, call: &Call, started: &ToolStarted) -> Resumed {
        let arguments = match self.check(call) {
            Ok(arguments) => arguments,
            Err(refused) => return Resumed::Unknown(refused.content),
        };
        let watch = self.watch(call, &arguments);
        match watch.find().await {
            // Another home, or one whose folder of tasks was removed: the command may have run, and may be running.
            Ok(State::NotStarted)
                if started
                    .kept_in
                    .as_deref()
                    .is_some_and(|tasks| tasks != self.settings.tasks.identity()) =>
            {
                Resumed::Unknown(ELSEWHERE.to_owned())
            }
            Ok(State::NotStarted) => Resumed::RunAgain,
            Ok(State::Running(task)) => {
                Resumed::Running(Box::new(move |stop| Box::pin(watch.until_the_end(task, stop))))
            }
            Ok(State::Unclear(_)) => {
                Resumed::Running(Box::new(move |stop| Box::pin(watch.until_the_end(None, stop))))
            }
            Ok(State::Over(Over::Unknown)) => Resumed::Unknown(result::UNKNOWN.to_owned()),
            Ok(State::Over(over)) => Resumed::Finished(watch.finished(over).await),
            Err(trouble) => Resumed::Unknown(trouble.content),
        }
    }
}

impl ExecTool {
    fn check(&self, call: &Call) -> Result<Arguments, Finished> {
        let arguments: Arguments = arguments::parse(&self.about, &call.arguments)?;
        let refused = |why: &str| Err(Finished::error(format!("exec was not run: {why}")));
        if arguments.command.trim().is_empty() {
            return refused("`command` is empty");
        }
        if arguments.command.contains('\0') {
            return refused("`command` has a zero byte in it, which no command can have");
        }
        if arguments.timeout == Some(0) {
            return refused("`timeout` must be at least 1 second");
        }
        if arguments.run_in_background == Some(true) {
            return refused(
                "background commands are not available in this version yet; run it in the foreground, without \
                 `run_in_background`",
            );
        }
        Ok(arguments)
    }

    async fn folder(&self, path: Option<&str>) -> Result<PathBuf, Finished> {
        let Some(path) = path.map(str::to_owned) else {
            return Ok(self.settings.scope.work_dir().to_owned());
        };
        let scope = Arc::clone(&self.settings.scope);
        to_the_end(move || {
            let refused =
                |error| Finished::error(format!("exec was not run, because of its `work_dir`: {error}"));
            scope.check_folder(&path, Permission::Read).map_err(refused)
        })
        .await
    }

    /// What the command gets because of the sandbox.
    async fn held(&self, work_dir: &Path) -> Result<Held, Finished> {
        let (settings, work_dir) = (Arc::clone(&self.settings), work_dir.to_owned());
        to_the_end(move || {
            Ok(settings.sandbox.around(&settings.scope, &settings.environment, &work_dir, None))
        })
        .await
    }

    fn watch(&self, call: &Call, arguments: &Arguments) -> Watch {
        let clamped = arguments.timeout.filter(|timeout| *timeout > LONGEST_TIMEOUT);
        let note = clamped.map(|timeout| format!("`timeout` was taken as {LONGEST_TIMEOUT}, not {timeout}"));
        Watch {
            tasks: Arc::clone(&self.settings.tasks),
            call: call.id,
            cap: call.cap,
            note,
            max_runtime: arguments.max_runtime,
        }
    }
}

/// One call, from its start or from wherever a crash has left it, to its result.
#[derive(Debug, Clone)]
struct Watch {
    tasks: Arc<Tasks>,
    call: CallId,
    cap: Cap,
    /// What the model should know besides, however the command ends.
    note: Option<String>,
    max_runtime: Option<u64>,
}

/// How a command is.
enum State {
    NotStarted,
    /// Its keeper lives. No task comes along where only that could be found out.
    Running(Option<Task>),
    Over(Over),
    /// It could not be looked at now, which may pass.
    Unclear(Finished),
}

impl Watch {
    fn id(&self) -> TaskId {
        TaskId::from(self.call)
    }

    /// Starts the command and waits for it. Who stops it before it has begun does not wait for a keeper that is slow.
    async fn start(self, spec: Spec, mut stop: Stop) -> Finished {
        let tasks = Arc::clone(&self.tasks);
        let mut starting = pin!(to_the_end(move || Ok(tasks.start(&spec))));
        let Some(started) = unless(stop.asked(), starting.as_mut()).await else {
            loop {
                // As long as the start goes on, something could still begin.
                let ended = self.end().await;
                if unless(tokio::time::sleep(PAUSE_OF_START), starting.as_mut()).await.is_some() {
                    return self.kill().await;
                }
                if let Err(trouble) = ended {
                    return trouble;
                }
            }
        };
        match started {
            Ok(Ok(task)) => self.until_the_end(Some(task), stop).await,
            Ok(Err(error @ Error::NotStarted { .. })) => Finished::error(error.to_string()),
            // It may have started all the same.
            Ok(Err(error)) => match self.find().await {
                Ok(State::NotStarted) => Finished::error(format!("the command did not start: {error}")),
                Ok(State::Running(task)) => self.until_the_end(task, stop).await,
                Ok(State::Unclear(_)) => self.until_the_end(None, stop).await,
                Ok(State::Over(over)) => self.finished(over).await,
                Err(trouble) => trouble,
            },
            Err(trouble) => trouble,
        }
    }

    /// Waits for the command. To be dropped here changes nothing for it.
    async fn until_the_end(self, task: Option<Task>, mut stop: Stop) -> Finished {
        let (mut task, mut tries) = (task, 0);
        loop {
            if unless(stop.asked(), connection_closed(task.take())).await.is_none() {
                return self.kill().await;
            }
            match self.find().await {
                // The keeper had too much to do, or was not to be talked to.
                Ok(State::Running(found)) => (task, tries) = (found, 0),
                Ok(State::Unclear(_)) if tries < MOST_TRIES => tries += 1,
                Ok(State::Over(over)) => return self.finished(over).await,
                // It had started: somebody has removed its folder.
                Ok(State::NotStarted) => return self.finished(Over::Lost).await,
                Ok(State::Unclear(trouble)) | Err(trouble) => return trouble,
            }
            if unless(stop.asked(), tokio::time::sleep(PAUSE)).await.is_none() {
                return self.kill().await;
            }
        }
    }

    /// Ends the command, and says how that went.
    async fn kill(self) -> Finished {
        if let Err(trouble) = self.end().await {
            return trouble;
        }
        match self.find().await {
            Ok(State::Over(over)) => self.finished(over).await,
            Ok(State::NotStarted) => Finished::error("stopped before the command began"),
            Ok(State::Running(_)) => Finished::error("the command could not be ended: it still runs"),
            Ok(State::Unclear(trouble)) | Err(trouble) => trouble,
        }
    }

    /// Sees to it that nothing runs and nothing begins.
    async fn end(&self) -> Result<(), Finished> {
        let (tasks, id) = (Arc::clone(&self.tasks), self.id());
        to_the_end(move || {
            let failed = |error| Finished::error(format!("the command could not be ended: {error}"));
            tasks.kill(id).map_err(failed)
        })
        .await
    }

    /// Finds out how it is. Trouble that may pass is none as long as a keeper has the task.
    async fn find(&self) -> Result<State, Finished> {
        let (tasks, id) = (Arc::clone(&self.tasks), self.id());
        to_the_end(move || {
            let failed =
                |error| Finished::error(format!("nobody can tell what became of the command: {error}"));
            match tasks.find(id) {
                Ok(Found::NotStarted) => Ok(State::NotStarted),
                Ok(Found::Running(task)) => Ok(State::Running(Some(task))),
                Ok(Found::Ended(status)) => Ok(State::Over(Over::Ended(status))),
                Ok(Found::Lost) => Ok(State::Over(Over::Lost)),
                Ok(Found::Unknown) => Ok(State::Over(Over::Unknown)),
                Err(error @ Error::Newer { .. }) => Err(failed(error)),
                Err(error) => match tasks.is_kept(id) {
                    Ok(true) => Ok(State::Running(None)),
                    Ok(false) => Err(failed(error)),
                    Err(_) => Ok(State::Unclear(failed(error))),
                },
            }
        })
        .await
    }

    async fn finished(&self, over: Over) -> Finished {
        let watch = self.clone();
        to_the_end(move || Ok(result::finished(&watch, &over))).await.unwrap_or_else(|trouble| trouble)
    }
}

/// Returns when the keeper has closed its connection, or at once if none can be made: then it is time to look again.
async fn connection_closed(task: Option<Task>) {
    let Some(task) = task else { return };
    let connected = to_the_end(move || {
        let connected = task.connect().and_then(|stream| {
            let nonblocking = stream.set_nonblocking(true).map(|()| stream);
            nonblocking.map_err(|source| Error::Io { what: "waiting for a keeper".to_owned(), source })
        });
        connected.map_err(|error| Finished::error(error.to_string()))
    });
    let stream = connected.await.ok().and_then(|stream| tokio::net::UnixStream::from_std(stream).ok());
    let Some(mut stream) = stream else { return };
    let mut unused = [0; 256];
    while matches!(stream.read(&mut unused).await, Ok(1..)) {}
}

#[cfg(test)]
#[path = "exec_tests.rs"]
mod tests;
