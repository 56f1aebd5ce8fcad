//! K11: waiting for a task, which returns when there is news.
//!
//! The keeper announces output and closes its connection at the end, so there is no polling. News is counted from what
//! the model was told last; each result says how far that is now.

use std::time::Duration;

use longhaul_keeper::{Following, Task};
use longhaul_protocol::{TaskNews, TaskStatus};
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::TaskSettings;
use super::output_read::{OutputRead, position};
use super::state::{TaskState, load_task_state};
use crate::blocking_run::{CancelFlag, WaitOutcome, run_before, run_to_completion};
use crate::exec::KEEPER_RETRY_DELAY;
use crate::output::{FullOutput, fit_report};
use crate::output::{LINE_SETTLE_TIME, MAX_KEPT_OUTPUT_BYTES, OutputReader, OutputText, unix_millis_now};
use crate::{SessionTask, StopSignal, ToolOutcome};

/// After the first new output, the wait goes on for this fraction of the quiet time, to collect more.
const QUIET_FRACTION: u32 = 10;
const STOPPED: &str = "stopped before there was news; the task goes on";

/// Waits for news of a task.
#[derive(Clone)]
pub(super) struct TaskWaiter {
    /// What to read then. Without an offset or an expression, the output that the model does not know yet.
    pub(super) read: OutputRead,
    pub(super) seconds: u64,
}

/// Why the wait for output ended.
enum WaitEvent {
    News,
    DeadlinePassed,
    Closed,
    Stopped,
}

impl TaskWaiter {
    fn settings(&self) -> &TaskSettings {
        &self.read.settings
    }

    fn task(&self) -> &SessionTask {
        &self.read.task
    }

    /// Whether the call says which part of the output to read.
    fn has_own_place(&self) -> bool {
        self.read.offset.is_some() || self.read.matcher.is_some()
    }

    pub(super) async fn run(self, mut stop: StopSignal) -> ToolOutcome {
        let due = Instant::now() + Duration::from_secs(self.seconds);
        loop {
            let mut state = match self.look().await {
                Ok(state) => state,
                Err(trouble) => return trouble,
            };
            // Of a task on another node, nothing more would be heard here.
            if state.has_ended() || state.is_elsewhere {
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
            run_to_completion(move || load_task_state(&waiting.settings().tasks, waiting.task())).await?;
        if state.has_ended() && !self.has_own_place() && self.task().told.is_some_and(|told| told.ended) {
            let (id, how) = (self.task().started.task_id, state.status.word());
            return Err(ToolOutcome::error(format!(
                "there is nothing to wait for: {id} has ended ({how}), and you were told; leave `wait` out to read what it printed"
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
        let quiet = self.settings().quiet;
        let settles_in = quiet.max(LINE_SETTLE_TIME);
        // Bytes that the model knows, or that can't be shown without what comes next.
        let mut known = self.task().told.map_or(0, |told| told.printed);
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
        let (settings, id) = (self.settings().clone(), self.task().started.task_id);
        let settled = run_to_completion(move || {
            let output = settings.tasks.output(id);
            let settled = output.and_then(|output| {
                OutputReader::new(&output, &settings.redact).readable_end(TaskStatus::Running)
            });
            settled.map_err(|error| ToolOutcome::error(error.to_string()))
        });
        let told = self.task().told.map_or(0, |told| told.printed);
        settled.await.is_ok_and(|settled| settled > told)
    }

    /// When the task printed last; long ago if it never did.
    async fn last_printed(&self) -> Instant {
        let (tasks, id) = (self.settings().tasks.clone(), self.task().started.task_id);
        let printed_at = run_to_completion(move || {
            Ok(tasks.output(id).and_then(|output| output.printed_at()).ok().flatten())
        });
        let since = match printed_at.await {
            Ok(Some(at)) => Duration::from_millis(u64::try_from(unix_millis_now() - at.0).unwrap_or(0)),
            _ => self.settings().quiet,
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
        if self.has_own_place() {
            let mut read = self.read.clone();
            read.notes.extend(how.map(str::to_owned));
            return read.run(&CancelFlag::default());
        }
        if state.is_elsewhere {
            return self.read.elsewhere(state);
        }
        let id = self.task().started.task_id;
        let told = self.task().told.map_or(0, |told| told.printed);
        let read = self.settings().tasks.output(id).and_then(|output| {
            let printed = OutputReader::new(&output, &self.settings().redact);
            let end = printed.readable_end(state.status)?.max(told);
            Ok((printed.read_head_and_tail(told..end, MAX_KEPT_OUTPUT_BYTES)?, end, output.printed()?))
        });
        let mut said: Vec<String> = how.map(str::to_owned).into_iter().chain(state.message.clone()).collect();
        let (text, end) = match read {
            Ok((text, end, printed)) => {
                said.extend(position(end, printed, state));
                (text, end)
            }
            Err(error) => {
                said.push(format!("its output can't be read: {error}"));
                (OutputText::default(), told)
            }
        };
        let mut report = state.report(id);
        self.read.set_message(&mut report, said);
        let news = TaskNews { task_id: id, printed: end, ended: state.has_ended() };
        let finished = fit_report(report, self.read.output_limit, &text, FullOutput::OfTask);
        ToolOutcome { news: Some(news), ..finished }
    }
}
