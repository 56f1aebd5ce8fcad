//! The task tools for subagents. A subagent is a task whose session says how it is doing; what it said last is its output.

use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::{SessionId, TaskNews, TaskStatus};
use tokio::time::Instant;

use super::TaskSettings;
use super::output_read::OutputRead;
use super::state::load_task_state;
use crate::blocking_run::{WaitOutcome, run_before};
use crate::output::{FullOutput, OutputText, fit_report, set_message};
use crate::{OutputLimit, PreparedCall, SessionTask, StopSignal, ToolOutcome};

const STOPPED: &str = "stopped before there was news; the subagent goes on";

/// The tasks that are subagents.
#[async_trait]
pub trait SubagentTasks: Send + Sync {
    /// How a subagent is doing. The error says why that can't be told now.
    async fn look(&self, session: SessionId) -> Result<SubagentStatus, String>;

    /// Returns when the subagent has ended.
    async fn wait_for_end(&self, session: SessionId);

    /// Stops a subagent with everything that it runs. Returns when it is over.
    async fn stop(&self, session: SessionId) -> Result<(), String>;
}

/// How a subagent is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubagentStatus {
    pub status: TaskStatus,
    /// Once it has ended.
    pub duration_ms: Option<u64>,
    /// What it is doing, or why it did not complete.
    pub message: Option<String>,
    /// What it said last.
    pub said: String,
}

/// For tools without a runtime.
#[derive(Debug)]
pub struct NoSubagents;

#[async_trait]
impl SubagentTasks for NoSubagents {
    async fn look(&self, session: SessionId) -> Result<SubagentStatus, String> {
        Err(format!("there is no runtime that knows the subagent {session}"))
    }

    async fn wait_for_end(&self, _: SessionId) {}

    async fn stop(&self, session: SessionId) -> Result<(), String> {
        self.look(session).await.map(drop)
    }
}

/// The same tasks, with the present state of the subagents among them that run.
pub(super) async fn with_subagents(
    subagents: &dyn SubagentTasks,
    mut tasks: Vec<SessionTask>,
) -> Vec<SessionTask> {
    for task in tasks.iter_mut().filter(|task| task.ended.is_none()) {
        if let Some(session) = task.started.session {
            task.subagent = subagents.look(session).await.ok();
        }
    }
    tasks
}

/// Reads what a subagent said last. With `wait`, waits for its end first.
pub(super) async fn read(mut read: OutputRead, wait: Option<Duration>, mut stop: StopSignal) -> ToolOutcome {
    let (id, told) = (read.task.started.task_id, read.task.told);
    let Some(session) = read.task.started.session else { return read.gone_subagent() };
    let subagents = read.settings.subagents.clone();
    let mut status = subagents.look(session).await;
    let is_running = |status: &Result<SubagentStatus, String>| {
        status.as_ref().is_ok_and(|status| status.status == TaskStatus::Running)
    };
    if let Some(wait) = wait {
        if !is_running(&status) && told.is_some_and(|told| told.ended) {
            return ToolOutcome::error(format!(
                "there is nothing to wait for: {id} has ended, and you were told; leave `wait` out to read what it said"
            ));
        }
        let due = Instant::now() + wait;
        if is_running(&status) {
            match run_before(due, &mut stop, subagents.wait_for_end(session)).await {
                WaitOutcome::Stopped => return ToolOutcome::error(STOPPED),
                WaitOutcome::DeadlinePassed => read.notes.push("the time is over, and it goes on".to_owned()),
                WaitOutcome::Done(()) => {}
            }
            status = subagents.look(session).await;
        }
    }
    match status {
        Ok(status) => read.report_subagent(&status),
        Err(_) if read.task.ended.is_some() => read.gone_subagent(),
        Err(error) => ToolOutcome::error(format!("the state of {id} can't be read now: {error}")),
    }
}

impl OutputRead {
    /// The result: how the subagent is doing, and the part of what it said that the call asks for.
    fn report_subagent(&self, status: &SubagentStatus) -> ToolOutcome {
        let mut task = self.task.clone();
        task.subagent = Some(status.clone());
        let state = match load_task_state(&self.settings.tasks, &task) {
            Ok(state) => state,
            Err(trouble) => return trouble,
        };
        let said = (self.settings.redact)(&status.said);
        let from = usize::try_from(self.offset.unwrap_or(0)).unwrap_or(usize::MAX).min(said.len());
        let from = said.ceil_char_boundary(from);
        let part = &said[from..said.floor_char_boundary(from.saturating_add(self.limit).min(said.len()))];
        let text = match &self.matcher {
            Some(matcher) => matching_lines(matcher, part),
            None => part.to_owned(),
        };
        let mut report = state.report(task.started.task_id);
        self.set_message(&mut report, state.message.clone());
        let news = TaskNews {
            task_id: task.started.task_id,
            printed: if state.has_ended() { said.len() as u64 } else { 0 },
            ended: state.has_ended(),
        };
        let text = OutputText { text, ..OutputText::default() };
        let fitting = fit_report(report, self.output_limit, &text, FullOutput::OfTask);
        ToolOutcome { news: Some(news), ..fitting }
    }

    /// The result where the session of the subagent can't be read any more: the recorded end counts.
    fn gone_subagent(&self) -> ToolOutcome {
        let said = self.task.ended.as_ref().map(|ended| ended.tail.clone()).unwrap_or_default();
        let (status, message) = match &self.task.ended {
            Some(ended) => (ended.status, ended.message.clone()),
            None => (TaskStatus::Lost, None),
        };
        self.report_subagent(&SubagentStatus { status, duration_ms: None, message, said })
    }
}

fn matching_lines(matcher: &grep_regex::RegexMatcher, text: &str) -> String {
    use grep_matcher::Matcher;
    let matches = |line: &&str| matcher.is_match(line.as_bytes()).unwrap_or(false);
    text.lines().filter(matches).map(|line| format!("{line}\n")).collect()
}

/// The call that stops a subagent.
pub(super) fn kill(settings: &TaskSettings, task: SessionTask, output_limit: OutputLimit) -> PreparedCall {
    let settings = settings.clone();
    PreparedCall::new(move |_| async move {
        let id = task.started.task_id;
        let Some(session) = task.started.session else {
            return ToolOutcome::error(format!("{id} is no subagent"));
        };
        let before = settings.subagents.look(session).await;
        let was_running =
            task.ended.is_none() && before.as_ref().is_ok_and(|status| status.status == TaskStatus::Running);
        if was_running && let Err(error) = settings.subagents.stop(session).await {
            return ToolOutcome::error(format!("{id} could not be stopped: {error}"));
        }
        let status = settings.subagents.look(session).await.ok();
        let known = SessionTask { subagent: status, ..task };
        let state = match load_task_state(&settings.tasks, &known) {
            Ok(state) => state,
            Err(trouble) => return trouble,
        };
        let said = match was_running {
            true => "it is over, with everything that it ran".to_owned(),
            false => format!("it had ended before ({})", state.status.word()),
        };
        let mut report = state.report(id);
        set_message(&mut report, [said]);
        let text = OutputText::default();
        let fitting = fit_report(report, output_limit, &text, FullOutput::OfTask);
        ToolOutcome { news: Some(TaskNews { task_id: id, printed: 0, ended: true }), ..fitting }
    })
}
