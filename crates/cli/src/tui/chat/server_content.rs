//! What a line takes along: the files that it names, and resources and prompts of MCP servers. Only a line that a person types is looked
//! through, but for the name of a prompt, which a script may type as well.

use std::path::PathBuf;

use longhaul_agent::UserMessage;

use super::line_source::LineSource;
use super::{Chat, LineEvent, attachments};
use crate::signals::SIGINT;
use crate::tui::ScreenUpdate;

impl Chat<'_> {
    /// The message of a line. `None` if something that it names can't be sent along, which is noted.
    pub(super) async fn message_of(&mut self, text: String) -> anyhow::Result<Option<UserMessage>> {
        let message = match self.attach_files(text).await? {
            Ok(message) => self.attach_server_content(message).await?,
            Err(why) => Err(why),
        };
        Ok(match message {
            Ok(message) => Some(message),
            Err(why) => {
                self.printer.tell(ScreenUpdate::Unsent);
                self.printer.note(format!("{why}; nothing was sent, and ↑ brings the line back"));
                None
            }
        })
    }

    async fn attach_files(&mut self, text: String) -> anyhow::Result<Result<UserMessage, String>> {
        if !self.lines.is_interactive() || !attachments::may_name_files(&text) {
            return Ok(Ok(text.into()));
        }
        let created = self.session.state().await?.created;
        let work_dir = created.and_then(|created| created.work_dir).map(PathBuf::from);
        let scope = self.config.tool_scope(work_dir.as_deref().unwrap_or(&self.config.work_dir));
        Ok(tokio::task::spawn_blocking(move || attachments::message_of_line(text, &scope)).await?)
    }

    /// Waits for the servers that the message names. Esc and Ctrl-C end the wait.
    async fn attach_server_content(
        &mut self,
        message: UserMessage,
    ) -> anyhow::Result<Result<UserMessage, String>> {
        let is_searched = self.lines.is_interactive() || message.text.starts_with('/');
        if !is_searched || !self.config.has_servers() {
            return Ok(Ok(message));
        }
        let servers = self.runtime.session_servers(&self.session).await?;
        if !servers.are_named_in(&message.text) {
            return Ok(Ok(message));
        }
        let mut attached = std::pin::pin!(servers.attach(message));
        let stopped = || Ok(Err("stopped".to_owned()));
        loop {
            tokio::select! {
                biased;
                number = self.signals.next() => {
                    self.suspended = (number != SIGINT).then_some(number);
                    return stopped();
                }
                attached = &mut attached => return Ok(attached),
                event = self.lines.next_during_turn() => match event {
                    LineEvent::Line(line) => self.deferred.push_back(line),
                    LineEvent::Escape | LineEvent::Interrupt => return stopped(),
                    LineEvent::Lost => {
                        // It counts as SIGHUP.
                        self.suspended = Some(1);
                        return stopped();
                    }
                    LineEvent::End | LineEvent::GoBack | LineEvent::TakeBack => {}
                },
            }
        }
    }

    /// Lets the menu of the input field show what the servers of this session have, as soon as that is known.
    pub(super) fn refresh_server_menu(&self) {
        if !matches!(self.lines, LineSource::Screen(_)) || !self.config.has_servers() {
            return;
        }
        let (runtime, session, menu) = (self.runtime.clone(), self.session.clone(), self.server_menu.clone());
        tokio::spawn(async move {
            if let Ok(servers) = runtime.session_servers(&session).await {
                menu.show(servers);
            }
        });
    }
}
