//! What slash commands show and do that is the same whether or not a turn runs.

use crate::commands::{Action, help};
use crate::output::{grouped, shortened};
use crate::questions::unanswered;
use crate::status::{Status, holder, running};

use super::Talk;

impl Talk {
    pub(super) async fn answer(&mut self, action: Action, arguments: &str) -> anyhow::Result<()> {
        match action {
            Action::Help => self.teller.aside(&help()),
            Action::Status => {
                let status = self.status().await?;
                status.lines().iter().for_each(|line| self.teller.aside(line));
            }
            Action::Model if arguments.is_empty() => {
                let (name, facts) = self.runtime.model().await;
                let window = facts.window.map(|window| {
                    format!(": {} tokens of context, {}", grouped(window.tokens), window.source)
                });
                self.teller.note(format!("{name}{}", window.unwrap_or_default()));
            }
            Action::Model => match self.runtime.use_model(arguments) {
                Ok(()) => {
                    let name = shortened(arguments, 100);
                    self.teller.note(format!("{name} answers from the next request on"));
                }
                Err(error) => self.teller.note(error),
            },
            Action::Retry
            | Action::Continue
            | Action::Cancel
            | Action::Tasks
            | Action::Answer
            | Action::Exit => {}
        }
        Ok(())
    }

    async fn status(&self) -> anyhow::Result<Status> {
        let (key, journal) = (self.session.key().to_owned(), self.runtime.journal());
        let state = self.session.state().await?;
        let entry = journal.session(&key).await?;
        let (model, facts) = self.runtime.model().await;
        let untaken = entry.as_ref().map_or(0, |entry| entry.inbox_head.saturating_sub(state.inbox_through));
        let holder = match &entry {
            Some(entry) => holder(&*journal, entry.id).await?,
            None => None,
        };
        let id = entry.map(|entry| entry.id);
        let (questions, tasks) = match id {
            Some(id) => (unanswered(&*journal, id, &state).await?, running(&self.board, &key, id).await?),
            None => (vec![], vec![]),
        };
        Ok(Status {
            key,
            id,
            questions,
            tasks,
            waiting: untaken + state.waiting.len() as u64,
            window: facts.window.map(|window| (window.tokens, window.source.to_string())),
            state,
            model,
            holder,
            is_running: true,
        })
    }
}
