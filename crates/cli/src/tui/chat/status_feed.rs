//! What the last rows of a screen tell: of the session, and of the tasks that go on.

use std::time::Duration;

use longhaul_agent::{Redactor, Session, Watched, Watcher};
use longhaul_protocol::{EventKind, TaskId};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::MissedTickBehavior;

use super::Chat;
use super::line_source::LineSource;
use crate::commands::status::running;
use crate::commands::tasks::output_filter::{Audience, OutputFilter};
use crate::commands::tasks::output_reader::{OutputChunk, OutputReader};
use crate::commands::tasks::registry::{TaskEntry, TaskRegistry};
use crate::tui::{SaveState, ScreenHandle, ScreenUpdate, StatusFacts, TaskPill};

/// How often it is looked what a task has printed, while one runs. Whoever prints tells nobody.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// So much of its output may hold its last line.
const TAIL_BYTES: u64 = 4 << 10;

/// Ends with whoever has it.
pub(super) struct StatusFeed(JoinHandle<()>);

impl Drop for StatusFeed {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Chat<'_> {
    /// Tells the screen what the session is, and goes on to tell it of tasks.
    pub(super) async fn look(&mut self) -> anyhow::Result<()> {
        let LineSource::Screen(screen) = &self.lines else { return Ok(()) };
        let telling = screen.telling();
        let state = self.session.state().await?;
        let report = self.runtime.context_report(&state).await;
        let saved = if state.head > 0 { SaveState::All } else { SaveState::Nothing };
        let used = (state.head > 0).then(|| report.tokens());
        let window = report.window.map(|window| window.tokens);
        self.teller.facts(StatusFacts { model: report.model, window, used, cost: 0.0, saved });
        let tasks = Tasks {
            board: self.board.clone(),
            redactor: self.runtime.redactor().clone(),
            session: self.session.clone(),
            telling,
        };
        self.looking = Some(StatusFeed(tokio::spawn(tasks.tell(self.session.watch()))));
        Ok(())
    }
}

/// The tasks of a session, and who wants to know of them.
struct Tasks {
    board: TaskRegistry,
    redactor: Redactor,
    session: Session,
    telling: ScreenHandle,
}

impl Tasks {
    async fn tell(self, mut watcher: Watcher) {
        let mut some_run = self.tell_now().await;
        let mut looks = tokio::time::interval(POLL_INTERVAL);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                watched = watcher.next() => match watched {
                    Some(Watched::Event(event)) => {
                        let is_about_tasks =
                            matches!(event.kind, EventKind::TaskStarted { .. } | EventKind::TaskEnded { .. });
                        some_run |= is_about_tasks;
                    }
                    Some(Watched::Missed { .. }) => some_run = true,
                    None => return,
                },
                _ = looks.tick(), if some_run => some_run = self.tell_now().await,
            }
        }
    }

    /// Whether any task goes on.
    async fn tell_now(&self) -> bool {
        let Some(id) = self.session.id() else { return false };
        let tasks = running(&self.board, self.session.key(), id).await.unwrap_or_default();
        let mut pills = Vec::with_capacity(tasks.len());
        for task in &tasks {
            pills.push(TaskPill { id: task.id(), what: task.what(), last: self.last_line(task).await });
        }
        let some_run = !pills.is_empty();
        self.telling.tell(ScreenUpdate::Pills(pills));
        some_run
    }

    async fn last_line(&self, task: &TaskEntry) -> String {
        let Ok(tasks) = self.board.tasks().cloned() else { return String::new() };
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
    let mut write = |piece| {
        if let OutputChunk::Bytes(bytes) = piece {
            text.extend_from_slice(&bytes);
        }
        Ok(())
    };
    let shown = OutputFilter::new(redactor, Audience::Person);
    let mut reading = OutputReader::new(output, printed.saturating_sub(TAIL_BYTES), shown, &mut write)?;
    reading.read_until(printed)?;
    reading.finish()?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned())
}
