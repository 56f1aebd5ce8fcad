//! `/clear`, and switching the chat to another session.

use longhaul_agent::Session;

use crate::args::ChatOptions;
use crate::panics;
use crate::session_lookup::refuse_trashed;
use crate::tui::ScreenUpdate;
use crate::tui::chat::{Chat, ChatStep, event_sources, free_key, key_of};

impl Chat<'_> {
    /// `/clear`: a new session for the folder.
    pub(crate) async fn clear(&mut self) -> anyhow::Result<ChatStep> {
        if self.session.id().is_none() {
            self.printer.note("this session is new already");
            return Ok(ChatStep::Line);
        }
        let before = self.session.key().to_owned();
        self.printer.note(format!("{before} is saved; /session resume {before} goes back to it"));
        self.switch_to_new().await
    }

    /// Switches the chat to a new session for the folder.
    pub(crate) async fn switch_to_new(&mut self) -> anyhow::Result<ChatStep> {
        let key = free_key(&*self.runtime.journal(), key_of(&self.config.work_dir)).await?;
        self.switch_to(&key).await
    }

    /// Switches the chat to the session with this key.
    pub(crate) async fn switch_to(&mut self, key: &str) -> anyhow::Result<ChatStep> {
        refuse_trashed(&*self.runtime.journal(), key).await?;
        let session: Session = self.runtime.session(key).await?;
        self.events = session.events(event_sources(&self.lines));
        self.session = session;
        panics::register_runtime(&self.runtime, self.resume_command());
        self.questions.clear();
        self.printer.tell(ScreenUpdate::SessionChanged);
        self.note_session().await?;
        // Boxed, since opening may switch again.
        Box::pin(self.open_session(&ChatOptions::default())).await
    }
}
