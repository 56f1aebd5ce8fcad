//! `/tasks`: the tasks of this conversation.

use std::sync::Arc;

use longhaul_agent::session::SessionTasks;
use tokio::task::spawn_blocking;

use crate::commands::status::running_tasks;
use crate::commands::tasks::output_filter::{Audience, OutputFilter};
use crate::commands::tasks::output_reader::{OutputChunk, OutputReader, follow};
use crate::commands::tasks::registry::TaskEntry;
use crate::commands::tasks::{describe_killed, table};
use crate::event_text;
use crate::one_shot::goes_on;
use crate::output::{format_number, task_text};
use crate::short_id::short;
use crate::signals::SIGINT;
use crate::tui::chat::Chat;

/// The end of an output that `/tasks output` prints; `longhaul tasks output` has all of it.
const MAX_OUTPUT_BYTES: u64 = 16 << 10;
const USAGE: &str = "/tasks [list|output ID|kill ID|follow ID]";

/// Whether a turn runs while the user enters a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnPhase {
    DuringTurn,
    BetweenTurns,
}

impl Chat<'_> {
    pub(crate) async fn tasks_command(&mut self, arguments: &str, phase: TurnPhase) -> anyhow::Result<()> {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        match (&words[..], phase) {
            ([] | ["list"], _) => self.list_tasks().await?,
            (["output", name], _) => self.show_output(name).await?,
            (["kill", name], _) => self.kill_task(name).await?,
            (["follow", name], TurnPhase::BetweenTurns) => self.follow_task(name).await?,
            (["follow", name], TurnPhase::DuringTurn) => self
                .printer
                .note(format!("a task is followed between turns; /tasks output {name} shows what is there")),
            _ => self.printer.note(format!("that is not how it is used: {USAGE}")),
        }
        Ok(())
    }

    async fn list_tasks(&mut self) -> anyhow::Result<()> {
        let listed = match self.session.id() {
            Some(id) => self.registry.of_session(self.session.key(), id).await?,
            None => vec![],
        };
        match listed.is_empty() {
            true => self.printer.note("this session has no tasks"),
            false => self.printer.page(&table(&listed).join("\n")),
        }
        Ok(())
    }

    async fn find_task(&self, name: &str) -> anyhow::Result<TaskEntry> {
        self.registry.find(Some(self.session.key()), name).await
    }

    async fn show_output(&mut self, name: &str) -> anyhow::Result<()> {
        let task = self.find_task(name).await?;
        let output = self.registry.tasks()?.output(task.id())?;
        let printed = output.printed()?;
        let from = printed.saturating_sub(MAX_OUTPUT_BYTES);
        let id = short(task.id());
        self.printer.note(match from {
            0 => format!("task {id} has printed {} bytes", format_number(printed)),
            _ => format!(
                "the last of {} bytes of task {id}; longhaul tasks output {id} has all",
                format_number(printed)
            ),
        });
        let filter = OutputFilter::new(self.runtime.redactor(), Audience::Person);
        let printer = &mut self.printer;
        let mut write = |chunk| {
            show_chunk(printer, chunk);
            Ok(())
        };
        let mut reader = OutputReader::new(output, from, filter, &mut write)?;
        reader.read_until(printed)?;
        reader.finish()?;
        self.printer.close_line();
        Ok(())
    }

    async fn kill_task(&mut self, name: &str) -> anyhow::Result<()> {
        let mut task = self.find_task(name).await?;
        let (was_running, had_left) = (task.is_running(), task.now.left > 0);
        let (tasks, id) = (Arc::clone(self.registry.tasks()?), task.id());
        spawn_blocking(move || tasks.kill(id)).await??;
        task.now = self.registry.condition(&task).await?;
        self.printer.note(describe_killed(&task, was_running, had_left));
        Ok(())
    }

    /// Prints the output of a task until it ends or the user presses Ctrl-C.
    async fn follow_task(&mut self, name: &str) -> anyhow::Result<()> {
        let task = self.find_task(name).await?;
        let output = self.registry.tasks()?.output(task.id())?;
        self.printer.note("Ctrl-C stops following; the task goes on");
        let filter = OutputFilter::new(self.runtime.redactor(), Audience::Person);
        let Self { printer, registry, signals, .. } = self;
        let mut write = |chunk| {
            show_chunk(printer, chunk);
            Ok(())
        };
        let mut reader = OutputReader::new(output, 0, filter, &mut write)?;
        tokio::select! {
            biased;
            number = signals.next() => {
                // Any other signal suspends the chat; the prompt loop sees it next.
                self.suspended = (number != SIGINT).then_some(number);
            }
            followed = follow(registry.tasks()?, task.id(), &mut reader) => {
                followed?;
                reader.finish()?;
                let now = registry.condition(&task).await?;
                self.printer.close_line();
                self.printer.note(task_text(task.id(), now.status, now.exit_code));
            }
        }
        self.printer.close_line();
        Ok(())
    }

    /// Starts the worker of a session with running tasks, so that their ends are recorded before the first turn.
    pub(crate) async fn watch_running_tasks(&self, tasks: &SessionTasks) {
        if !tasks.are_settled() && self.lines.is_interactive() {
            // Another process that runs the session does it instead.
            let _ = self.session.wake().await;
        }
    }

    /// K6: notes the tasks that keep running after this process ends.
    pub(crate) async fn note_running_tasks(&mut self) {
        let Some(id) = self.session.id() else { return };
        let tasks = running_tasks(&self.registry, self.session.key(), id).await.unwrap_or_default();
        tasks.iter().for_each(|task| self.printer.note(goes_on(task)));
    }
}

fn show_chunk(printer: &mut crate::event_printer::EventPrinter, chunk: OutputChunk) {
    match chunk {
        OutputChunk::Bytes(bytes) => printer.printed(&String::from_utf8_lossy(&bytes)),
        OutputChunk::Dropped(range) => printer.note(event_text::dropped(&range)),
    }
}
