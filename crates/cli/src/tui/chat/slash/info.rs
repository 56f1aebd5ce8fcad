//! Slash commands that do the same during and between turns: `/help`, `/status`, `/context`, `/model`, `/save`, `/doctor`.

use longhaul_agent::last_compaction;
use longhaul_journal::{ImportMark, import_mark, put};
use longhaul_protocol::{InboxRecord, Order, OrderId, OrderKind};

use crate::commands::compact::focus_of;
use crate::commands::context::ContextUsage;
use crate::commands::doctor;
use crate::commands::status::{MemoryProgress, SessionStatus, running_tasks};
use crate::output::{format_number, truncate};
use crate::questions::open_questions;
use crate::tui::chat::slash::{SlashAction, help};

use crate::tui::chat::Chat;

impl Chat<'_> {
    /// Runs the command and notes its error.
    pub(crate) async fn info_command(&mut self, action: SlashAction, arguments: &str) {
        if let Err(error) = self.show_or_do(action, arguments).await {
            self.printer.note(format!("{error:#}"));
        }
    }

    async fn show_or_do(&mut self, action: SlashAction, arguments: &str) -> anyhow::Result<()> {
        match action {
            SlashAction::Help => self.printer.page(&help()),
            SlashAction::Status => {
                let status = self.status().await?;
                self.printer.page(&status.lines().join("\n"));
            }
            SlashAction::Context => {
                let context = self.context().await?;
                self.printer.page(&context.lines().join("\n"));
            }
            SlashAction::Compact => self.compact_later(arguments).await?,
            SlashAction::Model if arguments.is_empty() => {
                let (name, facts) = self.runtime.model().await;
                let window = facts.window.map(|window| {
                    format!(": {} tokens of context, {}", format_number(window.tokens), window.source)
                });
                self.printer.note(format!("{name}{}", window.unwrap_or_default()));
            }
            SlashAction::Model => match self.runtime.use_model(arguments) {
                Ok(()) => {
                    let name = truncate(arguments, 100);
                    self.printer.note(format!("{name} answers from the next request on"));
                }
                Err(error) => self.printer.note(error),
            },
            SlashAction::Retry
            | SlashAction::Continue
            | SlashAction::Cancel
            | SlashAction::Tasks
            | SlashAction::Memory
            | SlashAction::Remember
            | SlashAction::Answer
            | SlashAction::Session
            | SlashAction::Fork
            | SlashAction::Clear
            | SlashAction::Exit => {}
            SlashAction::Save => self.save_command().await?,
            SlashAction::Doctor => self.doctor().await?,
        }
        Ok(())
    }

    /// Orders a compaction before the next step of the running turn, in whichever process.
    pub(crate) async fn compact_later(&mut self, focus: &str) -> anyhow::Result<()> {
        let Some(id) = self.session.id() else { return Ok(()) };
        let order = Order { id: OrderId::generate(), kind: OrderKind::Compact { focus: focus_of(focus) } };
        let record = self.runtime.redactor().redact_record(InboxRecord::Order(order).encode());
        put(&*self.runtime.journal(), id, record).await?;
        self.printer.note("the context will be made smaller before the next step");
        Ok(())
    }

    /// The same as `longhaul doctor`.
    async fn doctor(&mut self) -> anyhow::Result<()> {
        let findings = doctor::run_checks(self.globals).await?;
        let lines: Vec<String> = findings.iter().map(doctor::Finding::line).collect();
        self.printer.page(&lines.join("\n"));
        Ok(())
    }

    async fn context(&self) -> anyhow::Result<ContextUsage> {
        let state = self.session.state().await?;
        let last = match self.session.id() {
            Some(id) => last_compaction(&*self.runtime.journal(), id, &state).await?,
            None => None,
        };
        let report = self.runtime.context_report(&state).await;
        Ok(ContextUsage { key: self.session.key().to_owned(), report, last })
    }

    pub(crate) async fn status(&self) -> anyhow::Result<SessionStatus> {
        let (key, journal) = (self.session.key().to_owned(), self.runtime.journal());
        let state = self.session.state().await?;
        let entry = journal.session(&key).await?;
        let report = self.runtime.context_report(&state).await;
        let untaken = entry.as_ref().map_or(0, |entry| entry.inbox_head.saturating_sub(state.inbox_through));
        let holder = self.session.other_holder().await?;
        let id = entry.map(|entry| entry.id);
        let last_compaction = match id {
            Some(id) => last_compaction(&*journal, id, &state).await?,
            None => None,
        };
        let (questions, tasks) = match id {
            Some(id) => (open_questions(&self.session).await?, running_tasks(&self.board, &key, id).await?),
            None => (vec![], vec![]),
        };
        let memory = MemoryProgress::of(&self.config, &*journal, &key, id).await?;
        let import = match id {
            Some(id) => import_mark(&*journal, id).await?,
            None => ImportMark::default(),
        };
        Ok(SessionStatus {
            key,
            id,
            questions,
            tasks,
            waiting: untaken + state.pending_inputs.len() as u64,
            last_compaction,
            model: report.model.clone(),
            report,
            state,
            holder,
            is_running: true,
            memory,
            import,
        })
    }
}
