//! K11: `task_wait`, which returns when there is news.
//!
//! The keeper announces output and closes its connection at the end, so there is no polling. News is counted from what
//! the model was told last; each result says how far that is now.

use std::sync::Arc;
use std::time::Duration;

use longhaul_keeper::{Following, Task};
use longhaul_protocol::{Effect, TaskNews, TaskStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::state::{TaskState, load_task_state};
use super::{TaskSettings, find_task};
use crate::blocking::{WaitOutcome, run_before, run_to_completion};
use crate::exec::KEEPER_RETRY_DELAY;
use crate::output::FullOutput;
use crate::output::{LINE_SETTLE_TIME, MAX_KEPT_OUTPUT_BYTES, OutputReader, OutputText, unix_millis_now};
use crate::{
    OutputLimit, PreparedCall, SessionTask, StopSignal, Tool, ToolDefinition, ToolInvocation, ToolOutcome,
    function_tool, schema_of,
};

const DEFAULT_WAIT_SECONDS: u64 = 60;
const MAX_WAIT_SECONDS: u64 = 600;
/// Time for the call besides the wait itself.
const CALL_MARGIN: Duration = Duration::from_secs(30);
/// After the first new output, the wait goes on for this fraction of the quiet time, to collect more.
const QUIET_FRACTION: u32 = 10;
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

pub(crate) fn definition() -> ToolDefinition {
    ToolDefinition {
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

pub(super) fn tool(settings: TaskSettings) -> Arc<dyn Tool> {
    function_tool(definition(), settings, prepare)
}

#[allow(clippy::needless_pass_by_value, reason = "a function tool hands its arguments over")]
fn prepare(
    settings: &TaskSettings,
    arguments: Arguments,
    call: &ToolInvocation,
) -> Result<PreparedCall, ToolOutcome> {
    let seconds = arguments.seconds.unwrap_or(DEFAULT_WAIT_SECONDS);
    let clamped = seconds > MAX_WAIT_SECONDS;
    let waiter = TaskWaiter {
        settings: settings.clone(),
        task: find_task(call, &arguments.task_id)?,
        output_limit: call.output_limit,
        seconds: seconds.min(MAX_WAIT_SECONDS),
        note: clamped.then(|| format!("`seconds` was taken as {MAX_WAIT_SECONDS}, not {seconds}")),
    };
    let most = Duration::from_secs(waiter.seconds) + CALL_MARGIN;
    Ok(PreparedCall::new(move |stop| waiter.run(stop)).taking_up_to(most))
}

#[derive(Clone)]
struct TaskWaiter {
    settings: TaskSettings,
    task: SessionTask,
    output_limit: OutputLimit,
    seconds: u64,
    note: Option<String>,
}

/// Why the wait for output ended.
enum WaitEvent {
    News,
    DeadlinePassed,
    Closed,
    Stopped,
}

impl TaskWaiter {
    async fn run(self, mut stop: StopSignal) -> ToolOutcome {
        let due = Instant::now() + Duration::from_secs(self.seconds);
        loop {
            let mut state = match self.look().await {
                Ok(state) => state,
                Err(trouble) => return trouble,
            };
            if state.has_ended() {
                return self.report_news(state, None).await;
            }
            let heard = match self.follow_output(state.task.take()).await {
                Some((connection, following)) => {
                    self.wait_for_news(connection, following, due, &mut stop).await
                }
                None => WaitEvent::Closed,
            };
            match heard {
                WaitEvent::News => return self.report_news(state, Some("it goes on")).await,
                WaitEvent::DeadlinePassed => {
                    return self.report_news(state, Some("the time is over, and it goes on")).await;
                }
                WaitEvent::Stopped => return ToolOutcome::error(STOPPED),
                WaitEvent::Closed => {}
            }
            // It has ended; or its keeper is busy or unreachable, and is asked again.
            match self.look().await {
                Ok(state) if state.has_ended() => return self.report_news(state, None).await,
                Ok(_) => {}
                Err(trouble) => return trouble,
            }
            match run_before(due, &mut stop, tokio::time::sleep(KEEPER_RETRY_DELAY)).await {
                WaitOutcome::Done(()) => {}
                WaitOutcome::DeadlinePassed => {
                    return self.report_news(state, Some("the time is over, and it goes on")).await;
                }
                WaitOutcome::Stopped => return ToolOutcome::error(STOPPED),
            }
        }
    }

    /// Loads the state of the task. An error if the model was told of its end before.
    async fn look(&self) -> Result<TaskState, ToolOutcome> {
        let waiting = self.clone();
        let state =
            run_to_completion(move || load_task_state(&waiting.settings.tasks, &waiting.task)).await?;
        if state.has_ended() && self.task.told.is_some_and(|told| told.ended) {
            let (id, how) = (self.task.started.task_id, state.status.word());
            return Err(ToolOutcome::error(format!(
                "there is nothing to wait for: {id} has ended ({how}), and you were told; task_output reads what it printed"
            )));
        }
        Ok(state)
    }

    async fn follow_output(&self, task: Option<Task>) -> Option<(UnixStream, Following)> {
        let task = task?;
        let followed = run_to_completion(move || {
            let failed = |error: &dyn std::fmt::Display| ToolOutcome::error(error.to_string());
            let (stream, following) = task.follow().map_err(|error| failed(&error))?;
            stream.set_nonblocking(true).map_err(|error| failed(&error))?;
            Ok((stream, following))
        });
        let (stream, following) = followed.await.ok()?;
        Some((UnixStream::from_std(stream).ok()?, following))
    }

    /// Waits for output until there is news. Output that can't be shown yet is no news, such as the first half of a
    /// character: the model would get nothing to read, and be told again and again.
    async fn wait_for_news(
        &self,
        mut connection: UnixStream,
        mut following: Following,
        due: Instant,
        stop: &mut StopSignal,
    ) -> WaitEvent {
        let quiet = self.settings.quiet;
        let settles_in = quiet.max(LINE_SETTLE_TIME);
        // Bytes that the model knows, or that can't be shown without what comes next.
        let mut known = self.task.told.map_or(0, |told| told.printed);
        let mut printed = following.printed();
        let mut last = self.last_printed().await;
        let mut news_at = None;
        let mut bytes = [0; 1024];
        loop {
            let untold = (printed > known).then_some(last + settles_in);
            let next = news_at.or(untold).map_or(due, |at: Instant| at.min(due));
            match run_before(next, stop, connection.read(&mut bytes)).await {
                WaitOutcome::Stopped => return WaitEvent::Stopped,
                WaitOutcome::DeadlinePassed if Instant::now() >= due => return WaitEvent::DeadlinePassed,
                WaitOutcome::DeadlinePassed if self.can_tell().await => return WaitEvent::News,
                WaitOutcome::DeadlinePassed => {
                    if last.elapsed() >= settles_in {
                        known = printed;
                    }
                    news_at = None;
                    continue;
                }
                WaitOutcome::Done(Ok(0) | Err(_)) => return WaitEvent::Closed,
                WaitOutcome::Done(Ok(count)) => following.hear(&bytes[..count]),
            }
            if following.printed() > printed {
                let is_after_silence = last.elapsed() >= quiet;
                (printed, last) = (following.printed(), Instant::now());
                if is_after_silence && news_at.is_none() {
                    news_at = Some(last + quiet / QUIET_FRACTION);
                }
            }
        }
    }

    /// Whether there is more to read than the model was told.
    async fn can_tell(&self) -> bool {
        let (settings, id) = (self.settings.clone(), self.task.started.task_id);
        let settled = run_to_completion(move || {
            let output = settings.tasks.output(id);
            let settled = output.and_then(|output| {
                OutputReader::new(&output, &settings.redact).readable_end(TaskStatus::Running)
            });
            settled.map_err(|error| ToolOutcome::error(error.to_string()))
        });
        let told = self.task.told.map_or(0, |told| told.printed);
        settled.await.is_ok_and(|settled| settled > told)
    }

    /// When the task printed last; long ago if it never did.
    async fn last_printed(&self) -> Instant {
        let (tasks, id) = (self.settings.tasks.clone(), self.task.started.task_id);
        let printed_at = run_to_completion(move || {
            Ok(tasks.output(id).and_then(|output| output.printed_at()).ok().flatten())
        });
        let since = match printed_at.await {
            Ok(Some(at)) => Duration::from_millis(u64::try_from(unix_millis_now() - at.0).unwrap_or(0)),
            _ => self.settings.quiet,
        };
        let now = Instant::now();
        now.checked_sub(since).unwrap_or(now)
    }

    /// The output that the model does not know yet.
    async fn report_news(&self, state: TaskState, how: Option<&'static str>) -> ToolOutcome {
        let waiting = self.clone();
        run_to_completion(move || Ok(waiting.build_report(&state, how)))
            .await
            .unwrap_or_else(|trouble| trouble)
    }

    fn build_report(&self, state: &TaskState, how: Option<&'static str>) -> ToolOutcome {
        let id = self.task.started.task_id;
        let told = self.task.told.map_or(0, |told| told.printed);
        let read = self.settings.tasks.output(id).and_then(|output| {
            let printed = OutputReader::new(&output, &self.settings.redact);
            let end = printed.readable_end(state.status)?.max(told);
            Ok((printed.read_head_and_tail(told..end, MAX_KEPT_OUTPUT_BYTES)?, end, output.printed()?))
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
                (OutputText::default(), told)
            }
        };
        report.set_message(said.into_iter().chain(self.note.clone()));
        let news = TaskNews { task_id: id, printed: end, ended: state.has_ended() };
        ToolOutcome { news: Some(news), ..report.fit_within(self.output_limit, &text, FullOutput::OfTask) }
    }
}
