//! One call of the tool `agent`, from its start or from where a crash left it, to its result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::{
    At, CallId, ChildAdmitted, ChildSession, CommandReport, ParentLink, SessionId, TaskEnded, TaskId,
    TaskNews, TaskStarted, TaskStatus,
};
use longhaul_tools::{StopSignal, ToolOutcome};
use tokio::time::Instant;

use super::admission::{Admission, admit, release};
use super::child::{
    ChildEnd, ChildStart, ChildState, GONE, NewChild, end_child_tasks, read_child, start_child, stop_child,
    task_ended_without_turn,
};
use super::watch::ChildWatch;
use crate::clock::now;
use crate::runtime::RuntimeShared;
use crate::{Error, Result};

/// How often a call that waits for a place in its tree tries again.
const ADMISSION_CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// The pause after the journal could not be read or written.
pub(super) const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Reads of the session that may fail one after the other.
const MAX_READ_FAILURES: u32 = 60;
pub(crate) const LOCAL_TARGET: &str = "local";
const NOT_BEGUN: &str = "stopped before the subagent began";
const STARTED: &str = "it works in the background, and you are told when it ends; task_output reads what it said or, with `wait`, waits \
                       for it; task_kill stops it";

/// How a call waits for its subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunMode {
    /// Up to this time after its start; then it goes on in the background.
    Foreground(Duration),
    Background,
}

/// One call.
#[derive(Clone)]
pub(super) struct SubagentRun {
    pub(super) runtime: Arc<RuntimeShared>,
    pub(super) call: CallId,
    pub(super) child: ChildSession,
    pub(super) mode: RunMode,
    /// When the subagent was recorded as started, if it was.
    pub(super) started_at: Option<At>,
    /// `None` if the subagent has its prompt already.
    pub(super) new: Option<Arc<NewSubagent>>,
}

/// A subagent that has to be started.
pub(super) struct NewSubagent {
    pub(super) parent: ParentLink,
    pub(super) work_dir: Option<PathBuf>,
    pub(super) prompt: String,
    pub(super) description: String,
}

impl SubagentRun {
    fn task_id(&self) -> TaskId {
        TaskId::from(self.call)
    }

    /// Starts the subagent and waits for it. Dropping this future changes nothing for the subagent.
    pub(super) async fn run(mut self, mut stop: StopSignal) -> ToolOutcome {
        if let Some(new) = self.new.take()
            && let Some(outcome) = self.start(&new, &mut stop).await
        {
            return outcome;
        }
        self.wait(&mut stop).await
    }

    /// Starts the subagent once its tree has room for it. The outcome of the call, if it does not start.
    async fn start(&mut self, new: &NewSubagent, stop: &mut StopSignal) -> Option<ToolOutcome> {
        let root = new.parent.root();
        loop {
            if is_stop_requested(stop).await {
                return Some(self.cancel_start(root).await);
            }
            match self.try_start(new, stop).await {
                Ok(Some(Admission::Granted)) => return None,
                Ok(Some(Admission::Full)) => pause(ADMISSION_CHECK_INTERVAL, stop).await,
                Ok(Some(Admission::Exhausted)) => return Some(self.exhausted()),
                // The worker is gone. The process that resumes the call starts the subagent.
                Ok(None) => std::future::pending().await,
                Err(error) if may_pass(&error) => pause(RETRY_DELAY, stop).await,
                Err(error) => {
                    let _ = release(&*self.runtime.journal, root, self.child.session).await;
                    let refused = format!("the subagent could not be started: {error}");
                    return Some(self.unstarted(ToolOutcome::error(refused)));
                }
            }
        }
    }

    /// `None` if the start could not be recorded.
    async fn try_start(&mut self, new: &NewSubagent, stop: &StopSignal) -> Result<Option<Admission>> {
        let journal = &*self.runtime.journal;
        let admitted = ChildAdmitted {
            session: self.child.session,
            parent: new.parent.session,
            call: self.call,
            name: new.parent.name.clone(),
            description: new.description.clone(),
        };
        let ancestors: Vec<SessionId> =
            new.parent.ancestors.iter().map(|ancestor| ancestor.session).collect();
        let limits = &self.runtime.config.settings.agents;
        let admission = admit(journal, new.parent.root(), &admitted, &ancestors, limits).await?;
        if admission != Admission::Granted {
            return Ok(Some(admission));
        }
        let started_at = *self.started_at.get_or_insert_with(now);
        let task = TaskStarted {
            task_id: self.task_id(),
            command: format!("agent {}", new.parent.name),
            description: new.description.clone(),
            target: LOCAL_TARGET.to_owned(),
            started_at: Some(started_at),
            session: Some(self.child.session),
        };
        if !stop.line().start_task(task).await {
            return Ok(None);
        }
        let work_dir = new.work_dir.as_deref();
        let child = NewChild { child: &self.child, parent: &new.parent, work_dir, prompt: &new.prompt };
        Ok(Some(match start_child(journal, &self.runtime.redactor, child).await? {
            ChildStart::Started => Admission::Granted,
            // Admission counts it once, so trying again soon does no harm.
            ChildStart::Held => Admission::Full,
        }))
    }

    /// The outcome of a call that was stopped before its subagent began. Its place in the tree is free again.
    async fn cancel_start(&self, root: SessionId) -> ToolOutcome {
        if let Err(error) = release(&*self.runtime.journal, root, self.child.session).await {
            return ToolOutcome::error(format!(
                "{NOT_BEGUN}; its place in the tree is not free yet: {error}"
            ));
        }
        self.unstarted(ToolOutcome::error(NOT_BEGUN))
    }

    /// The outcome of a call whose subagent can't be started after a crash. Its place in the tree is free again.
    pub(super) async fn refuse(self, root: SessionId, refused: ToolOutcome) -> ToolOutcome {
        let _ = release(&*self.runtime.journal, root, self.child.session).await;
        self.unstarted(refused)
    }

    /// The outcome with the end of the subagent, which may be on record as started although it has no prompt.
    fn unstarted(&self, outcome: ToolOutcome) -> ToolOutcome {
        let ended = self.started_at.map(|_| {
            task_ended_without_turn(self.task_id(), self.child.session, TaskStatus::Killed, &outcome.content)
        });
        ToolOutcome { ended, news: self.ended_news(), ..outcome }
    }

    fn exhausted(&self) -> ToolOutcome {
        let most = self.runtime.config.settings.agents.per_tree;
        ToolOutcome::error(format!(
            "agent was not run: this conversation has had {most} subagents, the most that it may ever have (agents.per_tree, which the user can raise; a new session has its own); do the rest yourself"
        ))
    }

    /// Waits for the end, or lets the subagent go on in the background.
    async fn wait(self, stop: &mut StopSignal) -> ToolOutcome {
        let mut watch = ChildWatch::new(&self.runtime, self.child.session).await;
        watch.wake().await;
        if self.mode == RunMode::Background {
            return self.report("background_started", STARTED.to_owned());
        }
        let (mut failures, mut asked_for) = (0, Duration::ZERO);
        loop {
            let is_asking = match read_child(&*self.runtime.journal, self.child.session).await {
                Ok(ChildState::Ended(end)) => return self.ended(end).await,
                Ok(ChildState::Gone) => return self.lost(),
                Ok(ChildState::NotStarted) => false,
                Ok(ChildState::Running(running)) => !running.questions.is_empty(),
                Err(error) if may_pass(&error) && failures < MAX_READ_FAILURES => {
                    failures += 1;
                    // The event that led here is consumed, so the session is read again soon.
                    pause(RETRY_DELAY, stop).await;
                    if is_stop_requested(stop).await {
                        return self.stop().await;
                    }
                    continue;
                }
                Err(error) => {
                    return ToolOutcome::error(format!("can't read the subagent's session: {error}"));
                }
            };
            // Time in which it waits for a person does not count.
            let deadline = self.deadline(asked_for).filter(|_| !is_asking);
            let since = Instant::now();
            tokio::select! {
                biased;
                () = stop.asked() => return self.stop().await,
                () = sleep_until(deadline) => return self.goes_on(),
                () = watch.wait_for_news() => {}
            }
            if is_asking {
                asked_for += since.elapsed();
            }
        }
    }

    /// When the call goes to the background, if questions took this long so far.
    fn deadline(&self, asked_for: Duration) -> Option<Instant> {
        let RunMode::Foreground(timeout) = self.mode else { return None };
        let since = self.started_at.map_or(0, |at| u64::try_from(now().0.saturating_sub(at.0)).unwrap_or(0));
        Some(Instant::now() + (timeout + asked_for).saturating_sub(Duration::from_millis(since)))
    }

    async fn stop(&self) -> ToolOutcome {
        loop {
            match stop_child(&self.runtime, self.child.session).await {
                Ok(()) => break,
                Err(error) if may_pass(&error) => tokio::time::sleep(RETRY_DELAY).await,
                Err(error) => {
                    return ToolOutcome::error(format!("the subagent could not be stopped: {error}"));
                }
            }
        }
        match read_child(&*self.runtime.journal, self.child.session).await {
            Ok(ChildState::Ended(end)) => self.ended(end).await,
            _ => self.lost(),
        }
    }

    /// The result of a subagent that has ended. Its own tasks end with it.
    async fn ended(&self, end: ChildEnd) -> ToolOutcome {
        let leftovers = end_child_tasks(&self.runtime, self.child.session).await.unwrap_or_default();
        let end = ChildEnd { leftovers, ..end };
        let (ended, _) = end.task_ended(self.task_id(), self.child.session);
        let report = CommandReport {
            status: Some(end.status().word().to_owned()),
            exit_code: None,
            duration_ms: Some(end.duration_ms),
            task_id: Some(self.task_id()),
            message: end.message(),
        };
        // The result of the call has the whole text.
        let ended = TaskEnded { output: None, ..ended };
        ToolOutcome {
            content: report.with_output(&end.ended.text),
            report,
            ended: Some(ended),
            news: self.ended_news(),
            ..ToolOutcome::default()
        }
    }

    fn lost(&self) -> ToolOutcome {
        let ended = task_ended_without_turn(self.task_id(), self.child.session, TaskStatus::Lost, GONE);
        ToolOutcome { ended: Some(ended), news: self.ended_news(), ..self.report("lost", GONE.to_owned()) }
    }

    fn goes_on(&self) -> ToolOutcome {
        let RunMode::Foreground(timeout) = self.mode else {
            return self.report("background_started", String::new());
        };
        let message = format!(
            "it still works after {} s and goes on in the background; no work was lost. You are told when it ends; task_output reads \
             what it said or, with `wait`, waits for it; task_kill stops it",
            timeout.as_secs_f64()
        );
        self.report("auto_backgrounded", message)
    }

    fn ended_news(&self) -> Option<TaskNews> {
        Some(TaskNews { task_id: self.task_id(), printed: 0, ended: true })
    }

    fn report(&self, status: &str, message: String) -> ToolOutcome {
        let report = CommandReport {
            status: Some(status.to_owned()),
            task_id: Some(self.task_id()),
            message: Some(message),
            ..CommandReport::default()
        };
        ToolOutcome { content: report.with_output(""), report, ..ToolOutcome::default() }
    }
}

/// Whether the call was asked to stop before now.
async fn is_stop_requested(stop: &mut StopSignal) -> bool {
    tokio::select! {
        biased;
        () = stop.asked() => true,
        () = std::future::ready(()) => false,
    }
}

async fn pause(time: Duration, stop: &mut StopSignal) {
    tokio::select! {
        () = stop.asked() => {}
        () = tokio::time::sleep(time) => {}
    }
}

async fn sleep_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn may_pass(error: &Error) -> bool {
    matches!(error, Error::Journal(error) if error.may_pass())
}
