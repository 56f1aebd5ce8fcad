//! The handle to one session.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `requests` | requests that wait for their outcome |
//! | `inbox` | inputs, orders and answers; cancelling |
//! | `view` | the state, records, events and questions |
//! | here | which session it is, the process that holds it, its model, tasks and memory |

mod inbox;
mod requests;
mod view;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use longhaul_journal::{Holder, Journal, SessionEntry, name_session};
use longhaul_memory::{Extraction, PageEdited};
use longhaul_protocol::{Seq, SessionId, StreamName, TaskId};
use tokio::task::spawn_blocking;

use super::creation::{SessionStart, create_session};
use super::local::LocalSession;
use super::remote::{RemoteSession, is_running};
use crate::Redactor;
use crate::memory;
use crate::worker::WorkerStop;
use crate::{Error, Result};

/// One session. The same handle works whether this process or another one runs the session. Requests go to the
/// process that runs it. If that process ends, the handle's own runtime continues the session.
///
/// A handle from [`Runtime::session`](crate::Runtime::session) can run its session. A handle from [`Client::session`](crate::Client::session)
/// can't, so another process has to.
#[derive(Clone)]
pub struct Session {
    journal: Arc<dyn Journal>,
    redactor: Arc<Redactor>,
    link: Link,
}

#[derive(Clone)]
enum Link {
    Local(LocalSession),
    Detached { key: String, id: Arc<OnceLock<SessionId>> },
}

impl Session {
    pub(crate) fn local(local: LocalSession) -> Self {
        let (journal, redactor) = (local.runtime.journal.clone(), local.runtime.redactor.clone());
        Self { journal, redactor, link: Link::Local(local) }
    }

    /// A handle without a runtime.
    pub(super) fn detached(
        journal: Arc<dyn Journal>,
        redactor: Arc<Redactor>,
        key: &str,
        id: OnceLock<SessionId>,
    ) -> Self {
        let link = Link::Detached { key: key.to_owned(), id: Arc::new(id) };
        Self { journal, redactor, link }
    }

    /// The key by which people find the session.
    pub fn key(&self) -> &str {
        match &self.link {
            Link::Local(local) => &local.slot.key,
            Link::Detached { key, .. } => key,
        }
    }

    /// The session's id, if the session was ever used.
    pub fn id(&self) -> Option<SessionId> {
        match &self.link {
            Link::Local(local) => local.slot.id.get().copied(),
            Link::Detached { id, .. } => id.get().copied(),
        }
    }

    /// The journal that holds the session.
    pub fn journal(&self) -> &Arc<dyn Journal> {
        &self.journal
    }

    /// The session's id, looked up in the journal if this handle does not know it yet.
    pub(super) async fn known_id(&self) -> Result<Option<SessionId>> {
        match &self.link {
            Link::Local(local) => local.known_id().await,
            Link::Detached { key, id } => {
                if id.get().is_none()
                    && let Some(entry) = self.journal.session(key).await?
                {
                    let _ = id.set(entry.id);
                }
                Ok(id.get().copied())
            }
        }
    }

    /// The session in the list of sessions, also if it has got another key since this handle was made.
    pub(super) async fn entry(&self) -> Result<Option<SessionEntry>> {
        match self.known_id().await? {
            Some(id) => Ok(self.journal.session_with_id(id).await?),
            None => Ok(None),
        }
    }

    fn remote(&self, id: SessionId) -> RemoteSession {
        let (journal, redactor) = (self.journal.clone(), self.redactor.clone());
        RemoteSession { journal, redactor, key: self.key().to_owned(), id }
    }

    /// Whether this handle has a runtime that can run the session.
    fn can_run(&self) -> bool {
        matches!(self.link, Link::Local(_))
    }

    /// The session's id. Registers the key if it is new.
    async fn named(&self) -> Result<SessionId> {
        match &self.link {
            Link::Local(local) => local.slot.ensure_id(&local.runtime).await,
            Link::Detached { key, id } => {
                let named = name_session(&*self.journal, key).await?;
                let _ = id.set(named);
                Ok(named)
            }
        }
    }

    /// Creates the session in this work folder, unless it has already begun: a session's work folder never changes. The
    /// path is canonical: the turns of a session whose folder lies behind a link are refused.
    pub async fn create_in(&self, work_dir: &Path) -> Result<SessionStart> {
        create_session(&*self.journal, self.key(), self.named().await?, Some(work_dir), None).await
    }

    /// Creates the session without a work folder, unless it has already begun. It has no file tools and no commands.
    pub async fn create_without_folder(&self) -> Result<SessionStart> {
        create_session(&*self.journal, self.key(), self.named().await?, None, None).await
    }

    /// The other process that holds the session, if one does.
    pub async fn other_holder(&self) -> Result<Option<Holder>> {
        let Some(id) = self.known_id().await? else { return Ok(None) };
        Ok(self.journal.live_holder(&StreamName::session(id)).await?.filter(Holder::is_another))
    }

    /// Whether a worker of this process runs the session right now.
    pub(super) fn has_worker_here(&self) -> bool {
        matches!(&self.link, Link::Local(local) if local.slot.has_worker())
    }

    /// Whether this process holds the session.
    pub async fn is_held_here(&self) -> Result<bool> {
        let Some(id) = self.known_id().await? else { return Ok(false) };
        let holder = self.journal.holder(&StreamName::session(id)).await?;
        Ok(holder.is_some_and(|holder| holder == Holder::this_process()))
    }

    /// Whether a process holds the session, or hosts its home and would take it.
    pub async fn is_running(&self) -> Result<bool> {
        match self.known_id().await? {
            Some(id) => is_running(&*self.journal, id).await,
            None => Ok(false),
        }
    }

    pub(super) fn runtime_handle(&self) -> Result<&LocalSession> {
        match &self.link {
            Link::Local(local) => Ok(local),
            Link::Detached { key, .. } => Err(Error::NotRunning { key: key.clone() }),
        }
    }

    /// Records that the user is active, so that the session does not count as idle.
    pub fn touch(&self) {
        if let (Link::Local(local), Some(id)) = (&self.link, self.id()) {
            local.runtime.activity.record_activity(id);
        }
    }

    /// Uses this model from the session's next request on, with the configured fallbacks. The choice is recorded with that
    /// request and belongs to the session from then on: a later runtime calls this model, unless `--model` names another.
    pub fn use_model(&self, name: &str) -> Result<()> {
        let local = self.runtime_handle()?;
        local.runtime.set_session_model(self.key(), name)?;
        local.slot.wake_notify.notify_one();
        Ok(())
    }

    /// Releases the session's lease as soon as nothing runs in it, and returns when this process no longer holds it.
    /// The next input acquires it again.
    pub async fn release(&self) {
        if let Link::Local(local) = &self.link {
            local.slot.release().await;
        }
    }

    /// Takes the session's lease: the worker records what became of tasks and watches those that run. An open turn goes on. An error
    /// if another process holds the lease.
    pub async fn wake(&self) -> Result<()> {
        self.runtime_handle()?.wake().await.map_err(WorkerStop::into_error)
    }

    /// Kills a task and returns when none of its processes runs any more.
    pub async fn kill_task(&self, task: TaskId) -> Result<()> {
        let state = self.state().await?;
        if state.tasks.get(task).is_none() {
            let ids: Vec<String> = state.tasks.all().iter().map(|task| task.id().to_string()).collect();
            let known = if ids.is_empty() {
                "there are none".to_owned()
            } else {
                format!("it has {}", ids.join(", "))
            };
            return Err(Error::NoSuchTask { key: self.key().to_owned(), task: task.to_string(), known });
        }
        let tasks = Arc::clone(&self.runtime_handle()?.runtime.tasks);
        let killed = spawn_blocking(move || tasks.kill(task)).await.unwrap_or(Ok(()));
        killed.map_err(|error| Error::Keeper(Arc::new(error)))
    }

    /// Extracts what is worth remembering since the last extract. `None` if memory is off or the session was never used.
    pub async fn extract(&self) -> Result<Option<Extraction>> {
        let Some(id) = self.known_id().await? else { return Ok(None) };
        let local = self.runtime_handle()?;
        memory::extract_session(&local.runtime, &local.slot, id).await
    }

    /// The last record that memory has read; 0 if none.
    pub async fn extracted_through(&self) -> Result<Seq> {
        match self.known_id().await? {
            Some(id) => Ok(longhaul_memory::extracted_through(&*self.journal, id).await?),
            None => Ok(0),
        }
    }

    /// Adds a text to the core page of the session's memory.
    pub async fn remember(&self, text: &str) -> Result<PageEdited> {
        let id = self.known_id().await?;
        memory::remember(&self.runtime_handle()?.runtime, self.key(), id, text).await
    }
}
