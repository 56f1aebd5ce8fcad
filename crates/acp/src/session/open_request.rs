//! How the editor opens a session: a new one, or one whose past it shows.

use longhaul_protocol::StreamName;
use serde_json::{Value, json};

use super::slash::available_commands;
use super::{Replay, SessionTask};
use crate::error::{Error, Result};
use crate::update::fold::UpdateFold;
use crate::wire::reply::OpenedSession;
use crate::wire::update::meta;
use crate::wire::{ProtocolVersion, version2};

/// How the editor opens a session. `id` is the request to answer.
pub(crate) enum OpenRequest {
    /// `session/new`. Nothing is stored before the first prompt.
    New { id: Value, ignored: Vec<String> },
    /// `session/load`: the whole past is shown before the answer.
    Load { id: Value, ignored: Vec<String> },
    /// `session/resume`: the editor has the past.
    Resume { id: Value, ignored: Vec<String> },
}

impl SessionTask {
    /// Opens the session and answers the request. False if it can't be opened.
    pub(super) async fn open(&mut self, request: OpenRequest) -> bool {
        let (id, ignored, replay) = match request {
            OpenRequest::New { id, ignored } => (id, ignored, Replay::Over),
            OpenRequest::Load { id, ignored } => (id, ignored, Replay::Shown),
            OpenRequest::Resume { id, ignored } => (id, ignored, Replay::Silent),
        };
        if replay != Replay::Over
            && let Err(error) = self.replay(replay).await
        {
            self.setup.outbox.reply::<Value>(&id, Err(error)).await;
            return false;
        }
        let opened = OpenedSession {
            session_id: (replay == Replay::Over).then(|| self.setup.editor_id.clone()),
            modes: self.options.modes(),
            config_options: self.options.config_options(),
            meta: (!ignored.is_empty()).then(|| meta(json!({"warnings": ignored}))),
        };
        match self.version() {
            ProtocolVersion::V1 => self.setup.outbox.reply(&id, Ok(opened)).await,
            ProtocolVersion::V2 => {
                let opened = version2::opened_session(&opened, &available_commands());
                self.setup.outbox.reply(&id, Ok(opened)).await;
            }
        }
        self.skills = self.find_skill_commands().await;
        self.show_commands().await;
        self.list_prompts().await;
        if replay != Replay::Over
            && let Err(error) = self.resume_open_work().await
        {
            self.remark(&error.to_string(), "error").await;
        }
        true
    }

    /// Folds the past of the session.
    async fn replay(&mut self, replay: Replay) -> Result<()> {
        let session = &self.setup.session;
        let id = session.id().ok_or(Error::SessionEnded)?;
        self.fold = Some(UpdateFold::new(id, self.setup.work_dir.clone(), self.setup.features));
        self.replay = replay;
        self.start_editor_servers(id);
        let head = session.journal().head(&StreamName::session(id)).await?.seq;
        let mut follower = session.follow(0).await?;
        while self.seen < head {
            let followed = follower.step().await;
            if matches!(followed, Ok(None)) {
                return Err(Error::SessionEnded);
            }
            self.handle_followed(followed).await?;
        }
        self.follower = Some(follower);
        self.replay = Replay::Over;
        Ok(())
    }

    /// Asks open questions again, and lets a turn that no process runs go on.
    async fn resume_open_work(&mut self) -> Result<()> {
        self.show_open_state().await;
        let session = self.setup.session.clone();
        for question in session.open_questions().await? {
            self.ask(question).await;
        }
        let has_tasks = session.state().await?.tasks.running().next().is_some();
        if session.is_unfinished().await? || has_tasks {
            self.follow_closely().await?;
        }
        self.show_usage().await
    }
}
