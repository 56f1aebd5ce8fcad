//! One call of `exec`: starts its command, waits for it, and lets it go on as a task.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use longhaul_keeper::{Error, Found, Spec, Task};
use longhaul_protocol::{At, CallId, TaskId, TaskStarted, ToolStarted};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::result::{self, CommandEnd};
use super::task_limit::TaskSlots;
use super::{ExecSettings, LOCAL_TARGET};
use crate::blocking_run::{WaitOutcome, run_before, run_to_completion, run_unless};
use crate::output::unix_millis_now;
use crate::{Confinement, OutputLimit, ResumedCall, StopSignal, ToolOutcome};

/// Delay before the keeper is asked again if it does not answer. The command goes on meanwhile.
pub(crate) const KEEPER_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Failed lookups in a row before the call gives up.
const MAX_FAILED_LOOKUPS: usize = 60;
/// How often a cancelled start is checked until it has ended.
const START_POLL_INTERVAL: Duration = Duration::from_millis(20);
const TASK_FOLDER_ELSEWHERE: &str =
    "the command was kept in a folder of tasks that is not here, so it may or may not have run";
const TASK_LIMIT_NOTE: &str = "it was waited for beyond its `timeout`, because as many tasks ran as may";

/// How a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunMode {
    /// The call waits for it, up to its timeout.
    Foreground,
    /// The call returns at once.
    Background,
}

/// One call, from its start or from where a crash left it, to its result.
#[derive(Clone)]
pub(super) struct CommandRun {
    pub(super) settings: Arc<ExecSettings>,
    pub(super) call: CallId,
    pub(super) confinement: Confinement,
    pub(super) output_limit: OutputLimit,
    pub(super) command: String,
    pub(super) description: String,
    pub(super) mode: RunMode,
    /// After this time the command goes on as a task.
    pub(super) timeout: Duration,
    pub(super) max_runtime: Option<u64>,
    /// Notes for the model, however the command ends.
    pub(super) notes: Vec<String>,
    pub(super) slots: TaskSlots,
}

/// The state of a command.
#[allow(clippy::large_enum_variant, reason = "there is one a call, and it is taken apart at once")]
enum CommandState {
    NotStarted,
    /// Its keeper lives. `None` if the task could not be opened.
    Running(Option<Task>),
    Ended(CommandEnd),
    /// Its state can't be read now, which may pass.
    Unclear(ToolOutcome),
}

impl CommandRun {
    pub(super) fn id(&self) -> TaskId {
        match self.confinement {
            Confinement::Sandbox => TaskId::from(self.call),
            Confinement::Outside => TaskId::outside_sandbox(self.call),
        }
    }

    /// Starts the command and waits for it. A call that is stopped before the command begins does not wait for a slow
    /// keeper.
    pub(super) async fn start(self, spec: Spec, mut stop: StopSignal) -> ToolOutcome {
        let tasks = Arc::clone(&self.settings.tasks);
        let mut starting = pin!(run_to_completion(move || Ok(tasks.start(&spec))));
        let Some(started) = run_unless(stop.asked(), starting.as_mut()).await else {
            loop {
                // Until the start has ended, the command could still begin.
                let ended = self.kill_command().await;
                if run_unless(tokio::time::sleep(START_POLL_INTERVAL), starting.as_mut()).await.is_some() {
                    return self.kill().await;
                }
                if let Err(trouble) = ended {
                    return trouble;
                }
            }
        };
        match started {
            Ok(Ok(task)) => self.wait_for_end(Some(task), stop).await,
            Ok(Err(error @ Error::NotStarted { .. })) => ToolOutcome::error(error.to_string()),
            // The command may have started all the same.
            Ok(Err(error)) => match self.find_state().await {
                Ok(CommandState::NotStarted) => {
                    ToolOutcome::error(format!("could not start the command: {error}"))
                }
                Ok(CommandState::Running(task)) => self.wait_for_end(task, stop).await,
                Ok(CommandState::Unclear(_)) => self.wait_for_end(None, stop).await,
                Ok(CommandState::Ended(over)) => self.finished(over).await,
                Err(trouble) => trouble,
            },
            Err(trouble) => trouble,
        }
    }

    /// Finds a command that was started before a crash.
    pub(super) async fn resume(self, started: &ToolStarted) -> ResumedCall {
        let running = |run| ResumedCall::Running { run, takes_up_to: None };
        let is_here = |tasks: &String| tasks == self.settings.tasks.identity();
        let was_kept_here = started.kept_in.as_ref().is_none_or(is_here);
        match self.find_state().await {
            // Another home, or the folder of tasks was removed: the command may have run, and may be running.
            Ok(CommandState::NotStarted) if !was_kept_here => {
                ResumedCall::Unknown(TASK_FOLDER_ELSEWHERE.to_owned())
            }
            Ok(CommandState::NotStarted) => ResumedCall::RunAgain,
            Ok(CommandState::Running(task)) => {
                running(Box::new(move |stop| Box::pin(self.wait_for_end(task, stop))))
            }
            Ok(CommandState::Unclear(_)) => {
                running(Box::new(move |stop| Box::pin(self.wait_for_end(None, stop))))
            }
            Ok(CommandState::Ended(CommandEnd::Unknown)) => ResumedCall::Unknown(result::UNKNOWN.to_owned()),
            Ok(CommandState::Ended(CommandEnd::Expired)) => ResumedCall::Unknown(result::EXPIRED.to_owned()),
            Ok(CommandState::Ended(over)) => ResumedCall::Finished(self.finished(over).await),
            Err(trouble) => ResumedCall::Unknown(trouble.content),
        }
    }

    /// Waits for the command, or lets it go on as a task. Dropping this future changes nothing for the command.
    async fn wait_for_end(mut self, task: Option<Task>, mut stop: StopSignal) -> ToolOutcome {
        let mut deadline = self.background_deadline(task.as_ref());
        let (mut task, mut tries) = (task, 0);
        loop {
            let is_closed = match run_before(deadline, &mut stop, connection_closed(task.take())).await {
                WaitOutcome::Stopped if self.mode == RunMode::Foreground => return self.kill().await,
                WaitOutcome::Stopped | WaitOutcome::DeadlinePassed => false,
                WaitOutcome::Done(()) => true,
            };
            match self.find_state().await {
                Ok(CommandState::Running(found)) if Instant::now() >= deadline => {
                    if self.mode == RunMode::Background || !self.slots.is_full().await {
                        return self.move_to_background(found).await;
                    }
                    if !self.notes.iter().any(|note| note == TASK_LIMIT_NOTE) {
                        self.notes.push(TASK_LIMIT_NOTE.to_owned());
                    }
                    (task, tries, deadline) = (found, 0, Instant::now() + self.timeout);
                }
                // The keeper was busy, or could not be reached.
                Ok(CommandState::Running(found)) => (task, tries) = (found, 0),
                Ok(CommandState::Unclear(_)) if tries < MAX_FAILED_LOOKUPS => tries += 1,
                Ok(CommandState::Ended(over)) => return self.finished(over).await,
                // The command had started, so its folder was removed.
                Ok(CommandState::NotStarted) => return self.finished(CommandEnd::Lost).await,
                Ok(CommandState::Unclear(trouble)) | Err(trouble) => return trouble,
            }
            if is_closed && run_unless(stop.asked(), tokio::time::sleep(KEEPER_RETRY_DELAY)).await.is_none() {
                return match self.mode {
                    RunMode::Foreground => self.kill().await,
                    // It is a task from the start, even if its state can't be read now.
                    RunMode::Background => self.move_to_background(None).await,
                };
            }
        }
    }

    /// When the command becomes a task. The timeout counts from the start of the command, even before a restart.
    fn background_deadline(&self, task: Option<&Task>) -> Instant {
        let started_at = task.and_then(|task| task.started_at().ok().flatten());
        let since = started_at.map_or(0, |at| u64::try_from(unix_millis_now() - at.0).unwrap_or(0));
        let left = self.timeout.saturating_sub(Duration::from_millis(since));
        Instant::now() + if self.mode == RunMode::Background { Duration::ZERO } else { left }
    }

    async fn move_to_background(self, task: Option<Task>) -> ToolOutcome {
        let started_at = task.and_then(|task| task.started_at().ok().flatten());
        let run = self.clone();
        let told = run_to_completion(move || {
            Ok(match run.mode {
                RunMode::Background => result::started(&run),
                RunMode::Foreground => result::goes_on(&run),
            })
        });
        self.with_task(started_at, told.await.unwrap_or_else(|trouble| trouble))
    }

    /// Adds the task to a result.
    fn with_task(&self, started_at: Option<At>, finished: ToolOutcome) -> ToolOutcome {
        let task = TaskStarted {
            task_id: self.id(),
            command: self.command.clone(),
            description: self.description.clone(),
            target: LOCAL_TARGET.to_owned(),
            started_at,
            session: None,
        };
        ToolOutcome { task: Some(task), ..finished }
    }

    /// Kills the command, and returns its result.
    async fn kill(self) -> ToolOutcome {
        if let Err(trouble) = self.kill_command().await {
            return trouble;
        }
        match self.find_state().await {
            Ok(CommandState::Ended(over)) => self.finished(over).await,
            Ok(CommandState::NotStarted) => ToolOutcome::error("stopped before the command began"),
            Ok(CommandState::Running(_)) => {
                ToolOutcome::error("the command could not be ended: it still runs")
            }
            Ok(CommandState::Unclear(trouble)) | Err(trouble) => trouble,
        }
    }

    /// Makes sure that nothing runs and nothing begins.
    async fn kill_command(&self) -> Result<(), ToolOutcome> {
        let (tasks, id) = (Arc::clone(&self.settings.tasks), self.id());
        run_to_completion(move || {
            let failed = |error| ToolOutcome::error(format!("the command could not be ended: {error}"));
            tasks.kill(id).map_err(failed)
        })
        .await
    }

    /// Looks up the state of the command. While a keeper has the task, an error counts as running.
    async fn find_state(&self) -> Result<CommandState, ToolOutcome> {
        let (tasks, id) = (Arc::clone(&self.settings.tasks), self.id());
        run_to_completion(move || {
            let failed =
                |error| ToolOutcome::error(format!("it is unknown what became of the command: {error}"));
            match tasks.find(id) {
                Ok(Found::NotStarted) => Ok(CommandState::NotStarted),
                Ok(Found::Running(task)) => Ok(CommandState::Running(Some(task))),
                Ok(Found::Ended(status)) => Ok(CommandState::Ended(CommandEnd::Ended(status))),
                Ok(Found::Lost) => Ok(CommandState::Ended(CommandEnd::Lost)),
                Ok(Found::Unknown) => Ok(CommandState::Ended(CommandEnd::Unknown)),
                Ok(Found::Expired) => Ok(CommandState::Ended(CommandEnd::Expired)),
                Err(error @ Error::Newer { .. }) => Err(failed(error)),
                Err(error) => match tasks.is_kept(id) {
                    Ok(true) => Ok(CommandState::Running(None)),
                    Ok(false) => Err(failed(error)),
                    Err(_) => Ok(CommandState::Unclear(failed(error))),
                },
            }
        })
        .await
    }

    async fn finished(&self, over: CommandEnd) -> ToolOutcome {
        // A background command is a task from the start; its end is reported like that of any task.
        match (self.mode, &over) {
            (RunMode::Background, CommandEnd::Ended(status)) if status.never_started().is_none() => {
                return self.with_task(Some(status.started_at), result::started(self));
            }
            (RunMode::Background, CommandEnd::Lost) => return self.with_task(None, result::started(self)),
            _ => {}
        }
        let run = self.clone();
        run_to_completion(move || Ok(result::finished(&run, &over))).await.unwrap_or_else(|trouble| trouble)
    }
}

/// Returns when the keeper closes its connection, or at once if there is none: then it is time to look again.
async fn connection_closed(task: Option<Task>) {
    let Some(task) = task else { return };
    let connected = run_to_completion(move || {
        let connected = task.connect().and_then(|stream| {
            let nonblocking = stream.set_nonblocking(true).map(|()| stream);
            nonblocking.map_err(|source| Error::Io { what: "waiting for a keeper".to_owned(), source })
        });
        connected.map_err(|error| ToolOutcome::error(error.to_string()))
    });
    let stream = connected.await.ok().and_then(|stream| tokio::net::UnixStream::from_std(stream).ok());
    let Some(mut stream) = stream else { return };
    let mut unused = [0; 256];
    while matches!(stream.read(&mut unused).await, Ok(1..)) {}
}
