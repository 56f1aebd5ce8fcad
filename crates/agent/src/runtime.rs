//! Many sessions in one process.

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use longhaul_journal::{Home, Journal, Ring, SqliteJournal};
use longhaul_keeper::{Launcher, Tasks};
use longhaul_model::Model;
use longhaul_protocol::SessionId;
use longhaul_tools::Tool;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::equipment::Toolboxes;
use crate::session::{Session, Shared};
use crate::watch::{Hub, Watcher};
use crate::{Config, Error, Result, host};

/// Many sessions in one process. It begins nothing by itself until it is started.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

/// What a runtime is made of, where it is not made of the usual.
#[derive(Default)]
pub struct Parts {
    /// What answers.
    pub model: Option<Arc<dyn Model>>,
    /// Where everything is kept.
    pub journal: Option<Arc<dyn Journal>>,
    /// What the agent may do besides what it always may.
    pub tools: Vec<Arc<dyn Tool>>,
}

pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) instructions: String,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) toolboxes: Toolboxes,
    everybody: Arc<Hub>,
    sessions: Mutex<Sessions>,
    workers: Mutex<JoinSet<()>>,
    /// Says that everybody should stop at the next record.
    suspend: watch::Sender<bool>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

/// Those that somebody holds, or that a worker is at. The others cost nothing.
#[derive(Default)]
struct Sessions {
    by_key: HashMap<String, Arc<Shared>>,
    by_id: HashMap<SessionId, Arc<Shared>>,
}

impl Runtime {
    /// A runtime with the model that the config names.
    pub async fn open(config: Config) -> Result<Self> {
        Self::with_parts(config, Parts::default()).await
    }

    /// A runtime with this model.
    pub async fn with_model(config: Config, model: Arc<dyn Model>) -> Result<Self> {
        Self::with_parts(config, Parts { model: Some(model), ..Parts::default() }).await
    }

    /// A runtime that is made of these parts.
    pub async fn with_parts(config: Config, parts: Parts) -> Result<Self> {
        let model = match parts.model {
            Some(model) => model,
            None => longhaul_model::open(&config.settings.model.name)?,
        };
        let instructions = config.instructions()?;
        let home = Home::create(&config.home)?;
        let journal = match parts.journal {
            Some(journal) => journal,
            None => Arc::new(SqliteJournal::open(&home).await?),
        };
        let tasks = tasks(&config, home.folder())?;
        let inner = Arc::new(Inner {
            config: Config { home: home.folder().to_owned(), ..config },
            instructions,
            journal,
            model,
            tools: parts.tools,
            tasks: Arc::new(tasks),
            toolboxes: Toolboxes::default(),
            everybody: Arc::default(),
            sessions: Mutex::default(),
            workers: Mutex::default(),
            suspend: watch::Sender::new(false),
            listening: Mutex::default(),
        });
        inner.listen().await?;
        Ok(Self(inner))
    }

    /// Begins to look after the sessions that nobody holds: resumes what was open, takes what is put into their inboxes.
    pub async fn start(&self) -> Result<()> {
        self.0.spawn(host::run(self.0.clone()));
        Ok(())
    }

    /// The session with this key. Looking at it stores nothing; it begins with its first input.
    pub async fn session(&self, key: &str) -> Result<Session> {
        let known = self.0.journal.session(key).await?.map(|entry| entry.id);
        Ok(Session { runtime: self.0.clone(), shared: self.0.shared(key, known) })
    }

    /// Sees what happens in all sessions from now on.
    pub fn watch(&self) -> Watcher {
        self.0.everybody.watch()
    }

    /// Stops at the next record, leaves open turns and their commands open, and lets go of everything.
    pub async fn shutdown(&self) -> Result<()> {
        self.0.suspend.send_replace(true);
        let mut workers = std::mem::take(&mut *lock(&self.0.workers));
        while workers.join_next().await.is_some() {}
        if let Some(listening) = lock(&self.0.listening).take() {
            listening.abort();
        }
        for shared in lock(&self.0.sessions).by_key.drain().map(|(_, shared)| shared) {
            shared.hub.close();
        }
        lock(&self.0.sessions).by_id.clear();
        self.0.everybody.close();
        self.0.journal.close().await;
        Ok(())
    }
}

fn tasks(config: &Config, home: &Path) -> Result<Tasks> {
    let folder = home.join("tasks");
    let said = |reason: String| Error::Folder { path: folder.clone(), reason };
    let launcher = match &config.launcher {
        Some(launcher) => launcher.clone(),
        None => Launcher::this_program().map_err(|error| said(error.to_string()))?,
    };
    Tasks::at(&folder, launcher).map_err(|error| said(error.to_string()))
}

impl Inner {
    /// Passes rings on to the sessions that they are for.
    async fn listen(self: &Arc<Self>) -> Result<()> {
        let mut rings = self.journal.rings().await?;
        let inner = Arc::downgrade(self);
        let listening = tokio::spawn(async move {
            loop {
                let ring = rings.next().await;
                let Some(inner) = inner.upgrade() else { return };
                match ring {
                    Ring::For(stream) => inner.rung(stream.session_id()),
                    Ring::Many => inner.wake_all(),
                    Ring::Closed => return,
                }
            }
        });
        *lock(&self.listening) = Some(listening);
        Ok(())
    }

    fn rung(self: &Arc<Self>, id: Option<SessionId>) {
        let Some(id) = id else { return };
        let shared = lock(&self.sessions).by_id.get(&id).cloned();
        match shared {
            Some(shared) => shared.wake(self),
            // Only a host is rung for a session that it does not have.
            None => drop(self.spawn(host::take_in(self.clone(), id))),
        }
    }

    fn wake_all(self: &Arc<Self>) {
        let all: Vec<_> = lock(&self.sessions).by_id.values().cloned().collect();
        for shared in all {
            shared.wake(self);
        }
    }

    /// The one thing that all holders of a session share.
    pub(crate) fn shared(self: &Arc<Self>, key: &str, id: Option<SessionId>) -> Arc<Shared> {
        let mut sessions = lock(&self.sessions);
        let made = || Arc::new(Shared::new(key, id, self.everybody.clone()));
        let shared = sessions.by_key.entry(key.to_owned()).or_insert_with(made).clone();
        if let Some(id) = id {
            sessions.by_id.insert(id, shared.clone());
        }
        shared
    }

    pub(crate) fn remember(&self, id: SessionId, shared: &Arc<Shared>) {
        lock(&self.sessions).by_id.insert(id, shared.clone());
    }

    /// Whether a worker is at a session.
    pub(crate) fn works_at(&self, id: SessionId) -> bool {
        lock(&self.sessions).by_id.get(&id).is_some_and(|shared| shared.has_worker())
    }

    /// Forgets a session that nobody holds and no worker is at.
    pub(crate) fn forget(&self, shared: &Arc<Shared>) {
        // Ours, the two in the tables, and the caller's.
        const UNUSED: usize = 3;
        let mut sessions = lock(&self.sessions);
        if Arc::strong_count(shared) <= UNUSED {
            sessions.by_key.remove(&shared.key);
            if let Some(id) = shared.id.get() {
                sessions.by_id.remove(id);
            }
        }
    }

    /// Starts a task that is waited for at the end; not any more, once the end has begun.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut workers = lock(&self.workers);
        if *self.suspend.borrow() {
            return false;
        }
        while workers.try_join_next().is_some() {}
        workers.spawn(task);
        true
    }

    /// Becomes true when everybody should stop.
    pub(crate) fn suspension(&self) -> watch::Receiver<bool> {
        self.suspend.subscribe()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole at every moment, also after a panic elsewhere.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
