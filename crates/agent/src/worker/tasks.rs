//! Commands that go on in the background, as their session sees them.
//!
//! A keeper has the command; nothing here runs it. Somebody in the process watches each task ([`watching`]) and wakes the
//! session's worker when it is over. Only the worker records that, as it records everything.
//!
//! | a crash after | is on disk | on resume |
//! | --- | --- | --- |
//! | the keeper has started the command | `tool_started` | the call is found running: `task_started` and its result are recorded |
//! | `task_started`, with the result of its call | the task | it is watched again |
//! | the task's end | the keeper's status, or that the keeper is gone | `task_ended` is recorded, once: a task that has one is not looked at again |
//! | `task_ended` | the end, with what there is of the output | the model is told at the next boundary between two steps; an idle session wakes for it, by policy |
//! | `notification`, with `step_started` | that the model was told | nothing: it is part of the context from here on |
//! | the order to end it | `order_taken` | it is ended again, which changes nothing if it has |
//!
//! Never: an end that is told twice or not at all, a task that somebody ended on purpose and that is told as if it had ended by
//! itself, a second start.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::Blob;
use longhaul_protocol::{BlobRef, SessionRecord, TaskEnded, TaskId, TaskNews, Warning};
use longhaul_tools::{Ended, KnownTask, task_end};
use tokio::task::spawn_blocking;
use tokio::time::Instant;

use crate::session::tasks::TaskState;
use crate::worker::task_monitor;
use crate::worker::{Step, Worker};

/// Ends that come so soon after the first one are told in the same turn.
pub(crate) const GATHERING: Duration = Duration::from_millis(300);

impl Worker {
    /// Watches the tasks that run, and has each of them looked at once: one may have ended while nobody was there.
    pub(crate) fn adopt_tasks(&self) {
        self.let_go_of_tasks();
        for task in self.state.tasks.running() {
            self.shared.task_is_over(task.id());
            task_monitor::watch(&self.runtime, &self.shared, task.id());
        }
    }

    /// What doesn't run any more need not be watched, whoever has recorded that.
    pub(crate) fn let_go_of_tasks(&self) {
        let runs = |id| self.state.tasks.get(id).is_some_and(TaskState::is_running);
        self.runtime.watching.keep(&self.shared.key, runs);
    }

    /// Records the ends of the tasks that are said to be over, and what else is known of tasks.
    pub(crate) async fn take_ends(&mut self) -> Step<()> {
        let (over, stalled) = self.shared.news_of_tasks();
        self.record_ends(over).await?;
        self.record_stalls(stalled).await?;
        self.end_tasks();
        self.look_at_the_ends();
        Ok(())
    }

    /// Before a step: an end that is there is told with it, also if nobody has said yet that it is.
    pub(crate) async fn look_at_tasks(&mut self) -> Step<()> {
        let running: Vec<TaskId> = self.state.tasks.running().map(TaskState::id).collect();
        if running.is_empty() {
            return Ok(());
        }
        let tasks = Arc::clone(&self.runtime.tasks);
        let looking = spawn_blocking(move || {
            let is_over = |id: &TaskId| matches!(tasks.status(*id), Ok(Some(_)));
            running.into_iter().filter(is_over).collect::<Vec<_>>()
        });
        let over = looking.await.unwrap_or_default();
        self.record_ends(over).await
    }

    async fn record_ends(&mut self, over: Vec<TaskId>) -> Step<()> {
        let (mut facts, mut blobs) = (Vec::new(), Vec::new());
        for id in over {
            if self.state.tasks.get(id).is_none_or(|task| !task.is_running()) {
                continue;
            }
            let (tasks, redact) = (Arc::clone(&self.runtime.tasks), self.runtime.redact());
            let Ok(Ok(Some(end))) = spawn_blocking(move || task_end(&tasks, id, &redact)).await else {
                // It runs after all, or can't be looked at now: whoever watches it says so again.
                continue;
            };
            let Ended { status, exit_code, duration_ms, message, output, tail, unasked, .. } = end;
            let reference = output.as_deref().map(|output| BlobRef::to(output, "text/plain"));
            blobs.extend(output.map(Blob::new));
            facts.push(SessionRecord::TaskEnded(TaskEnded {
                task_id: id,
                status,
                exit_code,
                duration_ms,
                output: reference,
                tail,
                message,
                unasked,
            }));
        }
        // Whoever has just heard something stays for a while.
        self.rests_since = if facts.is_empty() { self.rests_since } else { Instant::now() };
        self.commit(facts, blobs).await
    }

    async fn record_stalls(&mut self, stalled: Vec<(TaskNews, String)>) -> Step<()> {
        let is_news = |(news, _): &(TaskNews, String)| {
            let known = self.state.tasks.get(news.task_id).filter(|task| task.is_running());
            known.is_some_and(|task| {
                task.stall.as_ref().is_none_or(|stall| stall.printed_bytes != news.printed)
            })
        };
        let facts = stalled.into_iter().filter(is_news).map(|(news, line)| {
            let text = longhaul_context::waits_for_input(news.task_id, &line);
            SessionRecord::Warning(Warning { task: Some(news), ..Warning::new("task_waiting", text) })
        });
        let facts = facts.collect();
        self.commit(facts, vec![]).await
    }

    /// Ends the tasks that somebody wants to end. Whoever watches them says when that is done.
    fn end_tasks(&self) {
        for task in self.state.tasks.running().filter(|task| task.kill_requested) {
            task_monitor::end(&self.runtime, task.id());
        }
    }

    /// When the ends that are not told yet begin a turn, if they do.
    pub(crate) fn look_at_the_ends(&mut self) {
        let waits = self.state.turn.is_none() && self.state.tasks.should_wake(self.policy.wake);
        if !waits {
            self.gathers_until = None;
        } else if self.gathers_until.is_none() {
            self.gathers_until = Some(Instant::now() + GATHERING);
        }
        self.policy.is_batching_task_ends = self.gathers_until.is_some_and(|until| Instant::now() < until);
    }

    /// What tools know of the session's tasks.
    pub(crate) fn known_tasks(&self) -> Arc<[KnownTask]> {
        self.state.tasks.known_tasks(|id| self.runtime.watching.printed(id)).collect()
    }
}
