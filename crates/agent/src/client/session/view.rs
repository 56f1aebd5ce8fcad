//! What a client sees of a session: its state, its records and events, its questions.

use longhaul_protocol::{EndedTask, Question, Seq};

use super::{Link, Session};
use crate::Result;
use crate::client::events::{EventSources, SessionEvents};
use crate::client::follow::{FollowSources, Follower};
use crate::client::overview::{SessionActivity, session_overview};
use crate::client::questions::open_questions;
use crate::client::recorded_events::RecordedEvents;
use crate::client::status::{SessionStatus, session_status};
use crate::client::turn_steps::{TurnFollower, TurnLocator};
use crate::client::watch::Watcher;
use crate::replay::{load, load_through};
use crate::session::state::State;

impl Session {
    /// The questions that wait for an answer.
    pub async fn open_questions(&self) -> Result<Vec<Question>> {
        self.open_questions_of(&self.state().await?).await
    }

    /// The questions of this state that wait for an answer.
    pub(in crate::client) async fn open_questions_of(&self, state: &State) -> Result<Vec<Question>> {
        match self.known_id().await? {
            Some(id) => open_questions(&*self.journal, id, state).await,
            None => Ok(vec![]),
        }
    }

    /// The events of the session from now on: those of this process, and during requests those of the process that
    /// works on them.
    pub fn events(&self, sources: EventSources) -> SessionEvents {
        SessionEvents::new(self, sources)
    }

    /// Everything that happens after this record, without a gap and wherever the session runs. 0 means from the
    /// beginning.
    pub async fn follow(&self, after: Seq) -> Result<Follower> {
        let missing = || longhaul_journal::Error::NoSuchSession { key: self.key().to_owned() };
        let id = self.known_id().await?.ok_or_else(missing)?;
        let state = load_through(&*self.journal, self.key(), id, after).await?;
        let sources = match &self.link {
            Link::Local(local) => FollowSources::with_runtime(self.journal.clone(), &local.runtime),
            Link::Detached { .. } => FollowSources::journal(self.journal.clone()),
        };
        Ok(Follower::start(sources, self.key(), id, state))
    }

    /// The steps of one turn, wherever the session runs.
    pub async fn follow_turn(&self, turn: TurnLocator) -> Result<TurnFollower> {
        TurnFollower::start(self.clone(), turn).await
    }

    /// The events of the records after `after`, up to the record `through`. 0 means from the beginning.
    pub async fn recorded_events(&self, after: Seq, through: Seq) -> Result<RecordedEvents> {
        let missing = || longhaul_journal::Error::NoSuchSession { key: self.key().to_owned() };
        let id = self.known_id().await?.ok_or_else(missing)?;
        let state = load_through(&*self.journal, self.key(), id, after).await?;
        Ok(RecordedEvents::new(self.journal.clone(), self.key(), id, state, through))
    }

    /// The events of the session in this process from now on. A detached handle sees nothing.
    pub fn watch(&self) -> Watcher {
        self.watcher().unwrap_or_else(Watcher::closed)
    }

    pub(in crate::client) fn watcher(&self) -> Option<Watcher> {
        match &self.link {
            Link::Local(local) => Some(local.watch()),
            Link::Detached { .. } => None,
        }
    }

    /// The session's state, folded from its records.
    pub async fn state(&self) -> Result<State> {
        match self.known_id().await? {
            Some(id) => load(&*self.journal, self.key(), id).await,
            None => Ok(State::default()),
        }
    }

    /// What the session is doing and how far it has come.
    pub async fn status(&self) -> Result<SessionStatus> {
        session_status(self).await
    }

    /// What the session is doing, in short.
    pub async fn activity(&self) -> Result<SessionActivity> {
        match self.entry().await? {
            Some(entry) => Ok(session_overview(&*self.journal, &entry).await?.activity),
            None => Ok(SessionActivity::Idle),
        }
    }

    /// Whether a turn is open, or an accepted input waits for its turn.
    pub async fn is_unfinished(&self) -> Result<bool> {
        let Some(entry) = self.entry().await? else { return Ok(false) };
        let state = self.state().await?;
        let wake = match &self.link {
            Link::Local(local) => local.runtime.wake(),
            Link::Detached { .. } => crate::config::Wake::Never,
        };
        Ok(crate::session::Work::of(&state, entry.inbox_head, wake).is_unfinished())
    }

    /// Ended tasks whose end the model does not know yet.
    pub async fn notifications(&self) -> Result<Vec<EndedTask>> {
        let state = self.state().await?;
        let unannounced = state.tasks.unannounced_ends();
        Ok(unannounced
            .map(|(task, end)| EndedTask { task: task.clone(), end: end.clone(), told: false })
            .collect())
    }
}
