//! Feeds the last rows of the screen: facts about the session, the size of its context, and its running tasks.

use std::sync::Arc;
use std::time::Duration;

use longhaul_agent::session::{State, catch_up};
use longhaul_agent::tasks::{
    Audience, OutputChunk, OutputFilter, OutputReader, TaskEntry, TaskOutput, TaskRegistry,
};
use longhaul_agent::{Redactor, Runtime, Session, Watched, Watcher};
use longhaul_memory::MemoryCalls;
use longhaul_protocol::{EventKind, PermissionMode, TaskId};
use longhaul_transcript::SessionCost;
use tokio::sync::Notify;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::MissedTickBehavior;

use super::output_feed::OutputFeed;
use crate::commands::status::running_tasks;
use crate::commands::tasks::lookup::description;
use crate::output::sanitize;
use crate::tui::{SaveState, ScreenHandle, ScreenUpdate, StatusFacts, TaskPill};

/// How often the output of running tasks is read. Nothing announces new output.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How long counting the context waits after an event: often several come together.
const COUNT_DELAY: Duration = Duration::from_millis(100);
/// The end of the output in which the last line is looked for.
const TAIL_BYTES: u64 = 4 << 10;

/// Where the permission mode of the status line comes from, beside the session.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModeSources {
    /// The mode that the first input will set.
    pub(super) wanted: Option<PermissionMode>,
    pub(super) configured: PermissionMode,
}

/// A background task that is aborted on drop.
pub(super) struct StatusFeed {
    task: JoinHandle<()>,
    context_changed: Arc<Notify>,
}

impl Drop for StatusFeed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl StatusFeed {
    /// Shows the facts of the session, and starts to feed its tasks and the output of its commands to the screen.
    pub(super) async fn start(
        screen: ScreenHandle,
        runtime: &Runtime,
        session: &Session,
        registry: &TaskRegistry,
        mode: ModeSources,
    ) -> anyhow::Result<Self> {
        let (output, state) = show_session(&screen, runtime, session, registry, mode).await?;
        let (runtime, session, registry) = (runtime.clone(), session.clone(), registry.clone());
        let context_changed = Arc::<Notify>::default();
        let context = ContextFeed::new(&runtime, &session, &screen, state);
        let (changes, watcher) = (context_changed.clone(), session.watch());
        let redactor = runtime.redactor().clone();
        let task = tokio::spawn(async move {
            let _output = output;
            let tasks = TaskFeed { registry, redactor, session, screen };
            tokio::join!(tasks.run(watcher), context.run(&changes));
        });
        Ok(Self { task, context_changed })
    }

    /// Like [`StatusFeed::start`], for a session that takes a while to load.
    pub(super) fn start_later(
        screen: ScreenHandle,
        runtime: Runtime,
        session: &Session,
        registry: TaskRegistry,
        mode: ModeSources,
    ) -> Self {
        let (session, watcher) = (session.clone(), session.watch());
        let context_changed = Arc::<Notify>::default();
        let changes = context_changed.clone();
        let task = tokio::spawn(async move {
            // The next event of the session shows what can't be read.
            let shown = show_session(&screen, &runtime, &session, &registry, mode).await.ok();
            let (_output, state) = shown.unzip();
            let context = ContextFeed::new(&runtime, &session, &screen, state.unwrap_or_default());
            let redactor = runtime.redactor().clone();
            let tasks = TaskFeed { registry, redactor, session, screen };
            tokio::join!(tasks.run(watcher), context.run(&changes));
        });
        Self { task, context_changed }
    }

    /// Counts the context again after an event that changes it, in whichever process.
    pub(super) fn apply_event(&self, kind: &EventKind) {
        let changes_context = matches!(
            kind,
            EventKind::InputTaken { .. }
                | EventKind::Usage { .. }
                | EventKind::ToolFinished { .. }
                | EventKind::CompactDone { .. }
                | EventKind::ModelChanged { .. }
                | EventKind::TurnEnded { .. }
        );
        if changes_context {
            self.context_changed.notify_one();
        }
    }
}

/// Shows the facts of the session and its todo list, and feeds the output of its commands. Returns the state that is
/// shown.
async fn show_session(
    screen: &ScreenHandle,
    runtime: &Runtime,
    session: &Session,
    registry: &TaskRegistry,
    mode: ModeSources,
) -> anyhow::Result<(OutputFeed, State)> {
    let state = session.state().await?;
    runtime.restore_model(session.key(), &state);
    let mode = mode.wanted.or(state.permission.mode).unwrap_or(mode.configured);
    let report = runtime.context_report(session.key(), &state).await;
    let saved = if state.head > 0 { SaveState::All } else { SaveState::Nothing };
    let used = (state.head > 0).then(|| report.tokens());
    let window = report.window.map(|window| window.tokens);
    let cost = SessionCost::default();
    let memory = MemoryCalls::default();
    let facts = StatusFacts { model: report.model, window, used, cost, saved, memory, mode: Some(mode) };
    screen.send(ScreenUpdate::StatusFacts(facts));
    screen.send(ScreenUpdate::Todo(state.todo.clone()));
    let output = OutputFeed::start(screen.clone(), session, &state, registry, runtime.redactor());
    Ok((output, state))
}

/// Shows the size of the context after each change of it.
struct ContextFeed {
    runtime: Runtime,
    session: Session,
    screen: ScreenHandle,
    /// The state that was counted last. Only the records since are read.
    state: State,
}

impl ContextFeed {
    fn new(runtime: &Runtime, session: &Session, screen: &ScreenHandle, state: State) -> Self {
        Self { runtime: runtime.clone(), session: session.clone(), screen: screen.clone(), state }
    }

    async fn run(mut self, changes: &Notify) {
        loop {
            changes.notified().await;
            tokio::time::sleep(COUNT_DELAY).await;
            // The next request reports what can't be read.
            let _ = self.show_context().await;
        }
    }

    /// Counts as `/status` does.
    async fn show_context(&mut self) -> anyhow::Result<()> {
        match self.session.id() {
            Some(id) => {
                catch_up(&*self.runtime.journal(), self.session.key(), id, &mut self.state).await?;
            }
            None => self.state = self.session.state().await?,
        }
        let report = self.runtime.context_report(self.session.key(), &self.state).await;
        self.screen.send(ScreenUpdate::ContextTokens(report.tokens()));
        Ok(())
    }
}

struct TaskFeed {
    registry: TaskRegistry,
    redactor: Redactor,
    session: Session,
    screen: ScreenHandle,
}

impl TaskFeed {
    async fn run(self, mut watcher: Watcher) {
        let mut some_run = self.show_tasks().await;
        self.show_memory_calls().await;
        let mut polls = tokio::time::interval(POLL_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                watched = watcher.next() => match watched {
                    Some(Watched::Event(event)) => {
                        let is_about_tasks =
                            event.kind.started_task().is_some() || event.kind.ended_task().is_some();
                        some_run |= is_about_tasks;
                        if matches!(event.kind, EventKind::ExtractDone { .. } | EventKind::MemoryChanged { .. }) {
                            self.show_memory_calls().await;
                        }
                    }
                    Some(Watched::Missed { .. }) => some_run = true,
                    None => return,
                },
                _ = polls.tick(), if some_run => some_run = self.show_tasks().await,
            }
        }
    }

    /// Shows what memory has cost. What can't be read now is shown after the next call.
    async fn show_memory_calls(&self) {
        if let Ok(status) = self.session.status().await {
            self.screen.send(ScreenUpdate::MemoryCalls(status.memory_calls));
        }
    }

    /// Shows the running tasks. Returns whether there are any.
    async fn show_tasks(&self) -> bool {
        let Some(id) = self.session.id() else { return false };
        let tasks = running_tasks(&self.registry, self.session.key(), id).await.unwrap_or_default();
        let mut pills = Vec::with_capacity(tasks.len());
        for task in &tasks {
            pills.push(TaskPill {
                id: task.id(),
                what: description(&task.started),
                last: self.last_line(task).await,
            });
        }
        let some_run = !pills.is_empty();
        self.screen.send(ScreenUpdate::Pills(pills));
        some_run
    }

    async fn last_line(&self, task: &TaskEntry) -> String {
        let Ok(tasks) = self.registry.tasks().cloned() else { return String::new() };
        let (id, redactor) = (task.id(), self.redactor.clone());
        let read = spawn_blocking(move || last_line(&tasks, id, &redactor)).await;
        read.ok().and_then(Result::ok).unwrap_or_default()
    }
}

fn last_line(
    tasks: &longhaul_agent::keeper::Tasks,
    id: TaskId,
    redactor: &Redactor,
) -> anyhow::Result<String> {
    let output = tasks.output(id)?;
    let printed = output.printed()?;
    let mut text = Vec::new();
    let filter = OutputFilter::new(redactor, Audience::Person(sanitize));
    let from = printed.saturating_sub(TAIL_BYTES);
    let reader = OutputReader::new(TaskOutput::Kept(output), from, filter)?;
    reader.read_through(printed, |chunk| {
        if let OutputChunk::Bytes(bytes) = chunk {
            text.extend_from_slice(&bytes);
        }
        anyhow::Ok(())
    })?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned())
}
