//! Slash commands that do the same during and between turns. `/help`, `/status`, `/context`, `/model` and `/doctor` are here, the
//! others in modules of their own.

use longhaul_agent::last_compaction;
use longhaul_protocol::OrderKind;

use super::tasks::TurnPhase;
use crate::commands::compact::focus_of;
use crate::commands::context::ContextUsage;
use crate::commands::doctor;
use crate::commands::status::SessionStatus;
use crate::output::{format_number, truncate};
use crate::tui::chat::Chat;
use crate::tui::chat::slash::{SlashAction, help};

impl Chat<'_> {
    /// Runs a command that does the same during and between turns, and notes its error.
    pub(crate) async fn run_command(&mut self, action: SlashAction, arguments: &str, phase: TurnPhase) {
        if let Err(error) = self.try_command(action, arguments, phase).await {
            self.printer.note(format!("{error:#}"));
        }
    }

    async fn try_command(
        &mut self,
        action: SlashAction,
        arguments: &str,
        phase: TurnPhase,
    ) -> anyhow::Result<()> {
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
            SlashAction::Save => self.save_command().await?,
            SlashAction::Doctor => self.doctor().await?,
            SlashAction::Tasks => self.tasks_command(arguments, phase).await?,
            SlashAction::Memory => self.memory_command(arguments).await?,
            SlashAction::Remember => self.remember_command(arguments, phase).await,
            // These differ: the prompt loop and the loop of a turn run them.
            SlashAction::Retry
            | SlashAction::Continue
            | SlashAction::Cancel
            | SlashAction::Answer
            | SlashAction::Session
            | SlashAction::Fork
            | SlashAction::Clear
            | SlashAction::Exit => {}
        }
        Ok(())
    }

    /// Orders a compaction before the next step of the running turn, in whichever process.
    async fn compact_later(&mut self, focus: &str) -> anyhow::Result<()> {
        if self.session.id().is_none() {
            return Ok(());
        }
        self.session.order(OrderKind::Compact { focus: focus_of(focus) }).await?;
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
        let state = self.session.state().await?;
        let report = self.runtime.context_report(&state).await;
        SessionStatus::of(&self.session, state, report, &self.registry, &self.config).await
    }
}
