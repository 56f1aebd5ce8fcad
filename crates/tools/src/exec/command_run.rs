//! One call of `exec`: starting its command, waiting for it, and letting it go on as a task.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use longhaul_keeper::{Error, Found, Spec, Task};
use longhaul_protocol::{At, CallId, TaskId, TaskStarted, ToolStarted};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use super::result::{self, Over};
use super::task_limit::Places;
use super::{ExecSettings, LOCAL};
use crate::blocking::{First, to_the_end, unless, until};
use crate::output::now;
use crate::{Cap, Finished, Resumed, Stop};

/// A keeper that does not answer is asked again after this. Its command goes on meanwhile.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);
/// How often in a row it may not even be possible to look.
const MOST_TRIES: usize = 60;
/// How often a start that was given up is looked at until it has come to its end.
const PAUSE_OF_START: Duration = Duration::from_millis(20);
const ELSEWHERE: &str =
    "the command was kept in a folder of tasks that is not here, so it may or may not have run";
const FULL: &str = "it was waited for beyond its `timeout`, because as many tasks ran as may";

/// How a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It is waited for, up to its time.
    Foreground,
    /// Its call returns at once.
    Background,
}

/// One call, from its start or from wherever a crash has left it, to its result.
#[derive(Clone)]
pub(super) struct Watch {
    pub(super) settings: Arc<ExecSettings>,
    pub(super) call: CallId,
    pub(super) cap: Cap,
    pub(super) command: String,
    pub(super) description: String,
    pub(super) way: Way,
    /// After so long it goes on as a task.
    pub(super) timeout: Duration,
    pub(super) max_runtime: Option<u64>,
    /// What the model should know besides, however the command ends.
    pub(super) notes: Vec<String>,
    pub(super) places: Places,
}

/// How a command is.
#[allow(clippy::large_enum_variant, reason = "there is one a call, and it is taken apart at once")]
enum State {
    NotStarted,
    /// Its keeper lives. No task comes along where only that could be found out.
    Running(Option<Task>),
    Over(Over),
    /// It could not be looked at now, which may pass.
    Unclear(Finished),
}

impl Watch {
    pub(super) fn id(&self) -> TaskId {
        TaskId::from(self.call)
    }

    /// Starts the command and waits for it. Who stops it before it has begun does not wait for a keeper that is slow.
    pub(super) async fn start(self, spec: Spec, mut stop: Stop) -> Finished {
        let tasks = Arc::clone(&self.settings.tasks);
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

    /// Finds out what became of a command that was started before a crash.
    pub(super) async fn resume(self, started: &ToolStarted) -> Resumed {
        let is_here = |tasks: &String| tasks == self.settings.tasks.identity();
        let was_kept_here = started.kept_in.as_ref().is_none_or(is_here);
        match self.find().await {
            // Another home, or one whose folder of tasks was removed: the command may have run, and may be running.
            Ok(State::NotStarted) if !was_kept_here => Resumed::Unknown(ELSEWHERE.to_owned()),
            Ok(State::NotStarted) => Resumed::RunAgain,
            Ok(State::Running(task)) => {
                Resumed::Running(Box::new(move |stop| Box::pin(self.until_the_end(task, stop))))
            }
            Ok(State::Unclear(_)) => {
                Resumed::Running(Box::new(move |stop| Box::pin(self.until_the_end(None, stop))))
            }
            Ok(State::Over(Over::Unknown)) => Resumed::Unknown(result::UNKNOWN.to_owned()),
            Ok(State::Over(Over::Expired)) => Resumed::Unknown(result::EXPIRED.to_owned()),
            Ok(State::Over(over)) => Resumed::Finished(self.finished(over).await),
            Err(trouble) => Resumed::Unknown(trouble.content),
        }
    }

    /// Waits for the command, or lets it go on as a task. To be dropped here changes nothing for it.
    async fn until_the_end(mut self, task: Option<Task>, mut stop: Stop) -> Finished {
        let mut due = self.due(task.as_ref());
        let (mut task, mut tries) = (task, 0);
        loop {
            let is_closed = match until(due, &mut stop, connection_closed(task.take())).await {
                First::Stopped if self.way == Way::Foreground => return self.kill().await,
                First::Stopped | First::Due => false,
                First::Done(()) => true,
            };
            match self.find().await {
                Ok(State::Running(found)) if Instant::now() >= due => {
                    if self.way == Way::Background || !self.places.is_full().await {
                        return self.go_on(found).await;
                    }
                    if !self.notes.iter().any(|note| note == FULL) {
                        self.notes.push(FULL.to_owned());
                    }
                    (task, tries, due) = (found, 0, Instant::now() + self.timeout);
                }
                // The keeper had too much to do, or was not to be talked to.
                Ok(State::Running(found)) => (task, tries) = (found, 0),
                Ok(State::Unclear(_)) if tries < MOST_TRIES => tries += 1,
                Ok(State::Over(over)) => return self.finished(over).await,
                // It had started: somebody has removed its folder.
                Ok(State::NotStarted) => return self.finished(Over::Lost).await,
                Ok(State::Unclear(trouble)) | Err(trouble) => return trouble,
            }
            if is_closed && unless(stop.asked(), tokio::time::sleep(PAUSE)).await.is_none() {
                return match self.way {
                    Way::Foreground => self.kill().await,
                    // It is a task from its start on, also where it can't be looked at now.
                    Way::Background => self.go_on(None).await,
                };
            }
        }
    }

    /// When it goes on as a task: its time counts from its start, also if that was before a restart.
    fn due(&self, task: Option<&Task>) -> Instant {
        let started_at = task.and_then(|task| task.started_at().ok().flatten());
        let since = started_at.map_or(0, |at| u64::try_from(now() - at.0).unwrap_or(0));
        let left = self.timeout.saturating_sub(Duration::from_millis(since));
        Instant::now() + if self.way == Way::Background { Duration::ZERO } else { left }
    }

    /// Lets it go on as a task.
    async fn go_on(self, task: Option<Task>) -> Finished {
        let started_at = task.and_then(|task| task.started_at().ok().flatten());
        let watch = self.clone();
        let told = to_the_end(move || {
            Ok(match watch.way {
                Way::Background => result::started(&watch),
                Way::Foreground => result::goes_on(&watch),
            })
        });
        self.as_task(started_at, told.await.unwrap_or_else(|trouble| trouble))
    }

    /// A result that says that there is a task now.
    fn as_task(&self, started_at: Option<At>, finished: Finished) -> Finished {
        let task = TaskStarted {
            task_id: self.id(),
            command: self.command.clone(),
            description: self.description.clone(),
            target: LOCAL.to_owned(),
            started_at,
        };
        Finished { task: Some(task), ..finished }
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
        let (tasks, id) = (Arc::clone(&self.settings.tasks), self.id());
        to_the_end(move || {
            let failed = |error| Finished::error(format!("the command could not be ended: {error}"));
            tasks.kill(id).map_err(failed)
        })
        .await
    }

    /// Finds out how it is. Trouble that may pass is none as long as a keeper has the task.
    async fn find(&self) -> Result<State, Finished> {
        let (tasks, id) = (Arc::clone(&self.settings.tasks), self.id());
        to_the_end(move || {
            let failed =
                |error| Finished::error(format!("nobody can tell what became of the command: {error}"));
            match tasks.find(id) {
                Ok(Found::NotStarted) => Ok(State::NotStarted),
                Ok(Found::Running(task)) => Ok(State::Running(Some(task))),
                Ok(Found::Ended(status)) => Ok(State::Over(Over::Ended(status))),
                Ok(Found::Lost) => Ok(State::Over(Over::Lost)),
                Ok(Found::Unknown) => Ok(State::Over(Over::Unknown)),
                Ok(Found::Expired) => Ok(State::Over(Over::Expired)),
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
        // One in the background is a task from its start on; how it ended is told as that of any other.
        match (self.way, &over) {
            (Way::Background, Over::Ended(status)) if status.never_started().is_none() => {
                return self.as_task(Some(status.started_at), result::started(self));
            }
            (Way::Background, Over::Lost) => return self.as_task(None, result::started(self)),
            _ => {}
        }
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
