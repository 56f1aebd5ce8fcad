//! K11: `task_wait`, which returns when there is news.
//!
//! The keeper says when there is more output and closes its connection at the end, so nothing is asked again and again. What is
//! news is counted from what the model was told last; each result says how far it knows now.

use std::time::Duration;

use async_trait::async_trait;
use longhaul_keeper::{Following, Task};
use longhaul_protocol::{Effect, TaskNews, TaskStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::state::{State, state_of};
use super::{TaskSettings, known};
use crate::blocking::{First, to_the_end, until};
use crate::exec::PAUSE;
use crate::output::Rest;
use crate::output::{Printed, SETTLING, Text, WHOLE, now};
use crate::{About, Call, Cap, Finished, KnownTask, Prepared, Stop, Tool, arguments, schema_of};

const USUAL: u64 = 60;
const LONGEST: u64 = 600;
/// What a tool needs besides the waiting itself.
const MARGIN: Duration = Duration::from_secs(30);
/// After the first new output, some more is waited for: a tenth of what is quiet.
const GATHERING: u32 = 10;
const STOPPED: &str = "stopped before there was news; the task goes on";

/// What task_wait takes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The task.
    task_id: String,
    /// How long at most, 1 to 600. Default: 60.
    #[schemars(range(min = 1))]
    seconds: Option<u64>,
}

/// The tool.
pub(super) struct TaskWait {
    about: About,
    settings: TaskSettings,
}

impl TaskWait {
    pub(super) fn new(settings: TaskSettings) -> Self {
        Self { about: about(), settings }
    }
}

pub(crate) fn about() -> About {
    About {
        name: "task_wait",
        description: "Waits until a task ends or prints something new after silence.",
        effect: Effect::Read,
        schema: schema_of::<Arguments>(),
        limits: &[
            "`seconds` is at most 600; more is taken as 600.",
            "New output is told when the task is quiet for 2 s, or came after 2 s of silence. One that prints all the time is \
             waited for until the time is over.",
        ],
        example: r#"{"task_id": "task_01jq4z5v8k2m9x7w3r6t1y0b4n", "seconds": 120}"#,
    }
}

#[async_trait]
impl Tool for TaskWait {
    fn about(&self) -> &About {
        &self.about
    }

    async fn prepare(&self, call: &Call) -> Result<Prepared, Finished> {
        let arguments: Arguments = arguments::parse(&self.about, &call.arguments)?;
        let task = known(call, &arguments.task_id)?;
        let seconds = arguments.seconds.unwrap_or(USUAL);
        let waiting = Waiting {
            settings: self.settings.clone(),
            task,
            cap: call.cap,
            seconds: seconds.min(LONGEST),
            note: (seconds > LONGEST).then(|| format!("`seconds` was taken as {LONGEST}, not {seconds}")),
        };
        let most = Duration::from_secs(waiting.seconds) + MARGIN;
        Ok(Prepared::new(move |stop| waiting.run(stop)).taking_up_to(most))
    }
}

/// One wait.
#[derive(Clone)]
struct Waiting {
    settings: TaskSettings,
    task: KnownTask,
    cap: Cap,
    seconds: u64,
    note: Option<String>,
}

/// Why it is not listened any more.
enum Heard {
    News,
    TimeIsOver,
    Closed,
    Stopped,
}

impl Waiting {
    async fn run(self, mut stop: Stop) -> Finished {
        let due = Instant::now() + Duration::from_secs(self.seconds);
        loop {
            let mut state = match self.look().await {
                Ok(state) => state,
                Err(trouble) => return trouble,
            };
            if state.is_over() {
                return self.tell(state, None).await;
            }
            let heard = match self.follow(state.task.take()).await {
                Some((connection, following)) => self.listen(connection, following, due, &mut stop).await,
                None => Heard::Closed,
            };
            match heard {
                Heard::News => return self.tell(state, Some("it goes on")).await,
                Heard::TimeIsOver => return self.tell(state, Some("the time is over, and it goes on")).await,
                Heard::Stopped => return Finished::error(STOPPED),
                Heard::Closed => {}
            }
            // It has ended; or its keeper has too much to do or can't be talked to, and is asked again.
            match self.look().await {
                Ok(state) if state.is_over() => return self.tell(state, None).await,
                Ok(_) => {}
                Err(trouble) => return trouble,
            }
            match until(due, &mut stop, tokio::time::sleep(PAUSE)).await {
                First::Done(()) => {}
                First::Due => return self.tell(state, Some("the time is over, and it goes on")).await,
                First::Stopped => return Finished::error(STOPPED),
            }
        }
    }

    /// How the task is. One of which the end was told is no news.
    async fn look(&self) -> Result<State, Finished> {
        let waiting = self.clone();
        let state = to_the_end(move || state_of(&waiting.settings.tasks, &waiting.task)).await?;
        if state.is_over() && self.task.told.is_some_and(|told| told.ended) {
            let (id, how) = (self.task.started.task_id, state.status.word());
            return Err(Finished::error(format!(
                "there is nothing to wait for: {id} has ended ({how}), and you were told; task_output reads what it printed"
            )));
        }
        Ok(state)
    }

    async fn follow(&self, task: Option<Task>) -> Option<(UnixStream, Following)> {
        let task = task?;
        let followed = to_the_end(move || {
            let failed = |error: &dyn std::fmt::Display| Finished::error(error.to_string());
            let (stream, following) = task.follow().map_err(|error| failed(&error))?;
            stream.set_nonblocking(true).map_err(|error| failed(&error))?;
            Ok((stream, following))
        });
        let (stream, following) = followed.await.ok()?;
        Some((UnixStream::from_std(stream).ok()?, following))
    }

    /// Hears of output until there is news. What can't be told yet is none, such as the first half of a character: who is
    /// told of it gets nothing to read, and would be told of it again and again.
    async fn listen(
        &self,
        mut connection: UnixStream,
        mut following: Following,
        due: Instant,
        stop: &mut Stop,
    ) -> Heard {
        let quiet = self.settings.quiet;
        let settles_in = quiet.max(SETTLING);
        // So much was told, or can't be told without what comes after it.
        let mut known = self.task.told.map_or(0, |told| told.printed);
        let mut printed = following.printed();
        let mut last = self.last_printed().await;
        let mut news_at = None;
        let mut bytes = [0; 1024];
        loop {
            let untold = (printed > known).then_some(last + settles_in);
            let next = news_at.or(untold).map_or(due, |at: Instant| at.min(due));
            match until(next, stop, connection.read(&mut bytes)).await {
                First::Stopped => return Heard::Stopped,
                First::Due if Instant::now() >= due => return Heard::TimeIsOver,
                First::Due if self.can_tell().await => return Heard::News,
                First::Due => {
                    if last.elapsed() >= settles_in {
                        known = printed;
                    }
                    news_at = None;
                    continue;
                }
                First::Done(Ok(0) | Err(_)) => return Heard::Closed,
                First::Done(Ok(count)) => following.hear(&bytes[..count]),
            }
            if following.printed() > printed {
                let is_after_silence = last.elapsed() >= quiet;
                (printed, last) = (following.printed(), Instant::now());
                if is_after_silence && news_at.is_none() {
                    news_at = Some(last + quiet / GATHERING);
                }
            }
        }
    }

    /// Whether there is more to be read than was told.
    async fn can_tell(&self) -> bool {
        let (settings, id) = (self.settings.clone(), self.task.started.task_id);
        let settled = to_the_end(move || {
            let output = settings.tasks.output(id);
            let settled = output
                .and_then(|output| Printed::new(&output, &settings.redact).settled(TaskStatus::Running));
            settled.map_err(|error| Finished::error(error.to_string()))
        });
        let told = self.task.told.map_or(0, |told| told.printed);
        settled.await.is_ok_and(|settled| settled > told)
    }

    /// When something was printed last; long ago, if nothing was.
    async fn last_printed(&self) -> Instant {
        let (tasks, id) = (self.settings.tasks.clone(), self.task.started.task_id);
        let printed_at =
            to_the_end(move || Ok(tasks.output(id).and_then(|output| output.printed_at()).ok().flatten()));
        let since = match printed_at.await {
            Ok(Some(at)) => Duration::from_millis(u64::try_from(now() - at.0).unwrap_or(0)),
            _ => self.settings.quiet,
        };
        let now = Instant::now();
        now.checked_sub(since).unwrap_or(now)
    }

    /// What the model did not know yet.
    async fn tell(&self, state: State, how: Option<&'static str>) -> Finished {
        let waiting = self.clone();
        to_the_end(move || Ok(waiting.told(&state, how))).await.unwrap_or_else(|trouble| trouble)
    }

    fn told(&self, state: &State, how: Option<&'static str>) -> Finished {
        let id = self.task.started.task_id;
        let told = self.task.told.map_or(0, |told| told.printed);
        let read = self.settings.tasks.output(id).and_then(|output| {
            let printed = Printed::new(&output, &self.settings.redact);
            let end = printed.settled(state.status)?.max(told);
            Ok((printed.head_and_tail(told..end, WHOLE)?, end, output.printed()?))
        });
        let mut report = state.report(id);
        let mut said: Vec<String> = how.map(str::to_owned).into_iter().chain(state.message.clone()).collect();
        let (text, end) = match read {
            Ok((text, end, printed)) => {
                (report.next_offset, report.printed) = (Some(end), Some(printed));
                (text, end)
            }
            Err(error) => {
                said.push(format!("its output can't be read: {error}"));
                (Text::default(), told)
            }
        };
        report.say(said.into_iter().chain(self.note.clone()));
        let news = TaskNews { task_id: id, printed: end, ended: state.is_over() };
        Finished { news: Some(news), ..report.within(self.cap, &text, Rest::InTask) }
    }
}
