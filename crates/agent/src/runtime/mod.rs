//! Many sessions in one process.

pub(crate) mod host;
mod preflight;
pub(crate) mod slot;

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use longhaul_journal::{Holder, Home, Journal, SqliteJournal, WakeSignal};
use longhaul_keeper::{Launcher, Tasks};
use longhaul_model::transport::Transport;
use longhaul_model::{Capabilities, Model, Models};
use longhaul_protocol::{Event, EventKind, SessionId, StreamName};
use longhaul_tools::{ApprovalAction, ApprovalPolicy, InvalidRule, Redact, Tool, ToolApprovalRule};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::client::follow::serve_followers;
use crate::client::local::LocalSession;
use crate::client::session::Session;
use crate::client::watch::{EventHub, Watcher};
use crate::clock::now;
use crate::housekeeping::activity::ActivityTracker;
use crate::housekeeping::backoff::WorkerBackoff;
use crate::housekeeping::idle::{IdleStatus, IdleWorker};
use crate::housekeeping::retention::{self, Mode, Pruning};
use crate::housekeeping::{cleanup, scheduler};
use crate::memory::Memory;
use crate::runtime::slot::SessionSlot;
use crate::secrets::{hidden_variables, redactor_for};
use crate::turn::budget::SpendLedger;
use crate::turn::fallback::{ModelChain, open_model};
use crate::worker::task_monitor::TaskMonitor;
use crate::worker::toolset::FolderToolsCache;
use crate::{Approval, Config, Error, Result};
use longhaul_redact::Redactor;

/// How many entries of sessions may be there before it is looked which of them nobody needs.
const CROWDED: usize = 64;
/// How long everything together may take to end; what is not done by then is done by whoever comes next.
const ENDS_WITHIN: Duration = Duration::from_millis(3_500);
/// How long the journal may take after that.
const CLOSES_WITHIN: Duration = Duration::from_millis(500);

/// Many sessions in one process. It begins nothing by itself until it is started.
#[derive(Clone)]
pub struct Runtime(pub(crate) Arc<Inner>);

/// What a runtime is made of, where it is not made of the usual.
#[derive(Default)]
pub struct Parts {
    /// What answers.
    pub model: Option<Arc<dyn Model>>,
    /// How models are reached that the config names.
    pub transport: Option<Arc<dyn Transport>>,
    /// Where everything is kept.
    pub journal: Option<Arc<dyn Journal>>,
    /// What the agent may do besides what it always may.
    pub tools: Vec<Arc<dyn Tool>>,
}

pub(crate) struct Inner {
    pub(crate) config: Config,
    pub(crate) instructions: String,
    pub(crate) journal: Arc<dyn Journal>,
    models: Models,
    /// Who is asked.
    model_chain: Mutex<Arc<ModelChain>>,
    pub(crate) redactor: Arc<Redactor>,
    /// The variables that no command sees.
    pub(crate) hidden: Vec<String>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) task_monitor: TaskMonitor,
    /// What is done only after asking.
    pub(crate) approvals: ApprovalPolicy,
    pub(crate) folder_tools: FolderToolsCache,
    pub(crate) worker_backoff: WorkerBackoff,
    pub(crate) activity: ActivityTracker,
    pub(crate) idle: IdleWorker,
    pub(crate) ledger: SpendLedger,
    pub(crate) memory: Memory,
    pub(crate) all_sessions_hub: Arc<EventHub>,
    sessions: Mutex<Sessions>,
    workers: Mutex<JoinSet<()>>,
    /// Whether it looks after sessions that nobody holds.
    hosting: AtomicBool,
    /// Says that everybody should stop at the next record.
    suspend: watch::Sender<bool>,
    /// Held by whoever ends the runtime, so that it is ended once.
    ending: tokio::sync::Mutex<()>,
    listening: Mutex<Vec<JoinHandle<()>>>,
}

/// Those that somebody holds, or that a worker is at. The others cost nothing.
#[derive(Default)]
struct Sessions {
    by_key: HashMap<String, Weak<SessionSlot>>,
    by_id: HashMap<SessionId, Weak<SessionSlot>>,
    /// When there are so many entries, those that nobody holds any more are dropped.
    crowded_at: usize,
}

impl Sessions {
    fn clear_out(&mut self) {
        if self.by_key.len().max(self.by_id.len()) < self.crowded_at {
            return;
        }
        self.by_key.retain(|_, slot| slot.strong_count() > 0);
        self.by_id.retain(|_, slot| slot.strong_count() > 0);
        self.crowded_at = CROWDED.max(2 * self.by_key.len());
    }
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
        let models = Models::at(&config.home)?;
        let models = match parts.transport {
            Some(transport) => models.through(transport),
            None => models,
        };
        let model_chain = match parts.model {
            Some(model) => ModelChain::single(model),
            None => ModelChain::from_config(&models, &config)?,
        };
        let redactor = redactor_for(&models, &config)?;
        let hidden = hidden_variables(&models, &config);
        let instructions = config.instructions()?;
        if config.work_dir.to_str().is_none() {
            let reason = "a work folder needs a name that is UTF-8".to_owned();
            return Err(Error::Folder { path: config.work_dir, reason });
        }
        let home = Home::create(&config.home)?;
        let journal = match parts.journal {
            Some(journal) => journal,
            None => Arc::new(SqliteJournal::open(&home).await?),
        };
        let tasks = tasks(&config, home.folder())?;
        let approvals = approvals(&config)?;
        let idle = IdleWorker::new(Duration::from_secs(config.settings.memory.check_interval_s));
        let config = Config { home: home.folder().to_owned(), ..config };
        let inner = Arc::new_cyclic(|inner| Inner {
            memory: Memory::new(&config, &journal, inner),
            config,
            instructions,
            journal,
            model_chain: Mutex::new(Arc::new(model_chain)),
            models,
            redactor: Arc::new(redactor),
            hidden,
            tools: parts.tools,
            tasks: Arc::new(tasks),
            task_monitor: TaskMonitor::default(),
            approvals,
            folder_tools: FolderToolsCache::default(),
            worker_backoff: WorkerBackoff::default(),
            activity: ActivityTracker::default(),
            idle,
            ledger: SpendLedger::default(),
            all_sessions_hub: Arc::default(),
            sessions: Mutex::default(),
            workers: Mutex::default(),
            hosting: AtomicBool::new(false),
            suspend: watch::Sender::new(false),
            ending: tokio::sync::Mutex::default(),
            listening: Mutex::default(),
        });
        preflight::check_prompt_fits(&inner).await?;
        inner.listen().await?;
        Ok(Self(inner))
    }

    /// Begins to look after the sessions that nobody holds: resumes what was open, takes what is put into their inboxes, and does
    /// what is done while sessions are idle. Once is enough.
    pub async fn start(&self) -> Result<()> {
        if !self.0.hosting.swap(true, Ordering::SeqCst) && !self.0.spawn(host::run(self.0.clone())) {
            return Err(Error::Suspended);
        }
        self.start_idle().await
    }

    /// Begins to do what is done while sessions are idle, and nothing else: for whoever has a session of their own and leaves the
    /// turns of others to others. Once is enough.
    pub async fn start_idle(&self) -> Result<()> {
        self.0.idle.start(&self.0, &scheduler::session_jobs()).await
    }

    /// Stops that at once, also in the middle of a job, until it is started again.
    pub async fn stop_idle(&self) {
        self.0.idle.stop().await;
    }

    /// How that is doing.
    pub fn idle_status(&self) -> IdleStatus {
        self.0.idle.status()
    }

    /// How often it is looked which sessions are idle: those that were not active for more than twice as long. It holds for the wait
    /// that is under way, too.
    pub fn set_check_interval(&self, interval: Duration) {
        self.0.idle.set_interval(interval);
    }

    /// Removes what commands have left behind and nobody needs any more, unless somebody has just done so. A runtime that looks
    /// after sessions does this by itself.
    pub async fn tidy(&self) {
        cleanup::remove_leftovers(&self.0).await;
    }

    /// Puts away what is beyond the limits of the config, and removes what goes for good; never a session that is open here.
    pub async fn prune(&self, mode: Mode) -> Result<Pruning> {
        retention::prune_closed(&self.0, mode).await
    }

    /// Asks another model from the next request on, in all sessions.
    pub fn use_model(&self, name: &str) -> Result<()> {
        let chain = ModelChain::named(&self.0.models, &self.0.config, name)?;
        *lock(&self.0.model_chain) = Arc::new(chain);
        // Those that wait before a retry ask it now; the others find it when they ask next.
        self.0
            .all_sessions()
            .iter()
            .filter(|slot| slot.has_worker())
            .for_each(|slot| slot.wake_notify.notify_one());
        Ok(())
    }

    /// Why commands can't be held to the scope here, if the config wants that and the system can't. Takes a few milliseconds the
    /// first time.
    pub async fn not_enforced(&self) -> Option<String> {
        self.0.not_enforced().await
    }

    /// What takes secrets out of whatever is written or shown.
    pub fn redactor(&self) -> &Redactor {
        &self.0.redactor
    }

    /// The model that is set, and what is known about it.
    pub async fn model(&self) -> (String, Capabilities) {
        let model = self.0.model_chain().primary();
        (model.name().to_owned(), model.capabilities().await)
    }

    /// The session with this key. Looking at it stores nothing; it begins with its first input.
    pub async fn session(&self, key: &str) -> Result<Session> {
        let mut known = self.0.journal.session(key).await?.map(|entry| entry.id);
        // One that was named meanwhile is no other one.
        if self.0.in_memory_as(key).is_some_and(|id| Some(id) != known) {
            known = self.0.journal.session(key).await?.map(|entry| entry.id);
        }
        Ok(Session::local(LocalSession { runtime: self.0.clone(), slot: self.0.session_slot(key, known) }))
    }

    /// Where everything is kept: for whoever follows a session that another process runs.
    pub fn journal(&self) -> Arc<dyn Journal> {
        self.0.journal.clone()
    }

    /// The other process that looks after the sessions of this home, if there is one: a runtime that is started stands by
    /// until that one has gone.
    pub async fn other_host(&self) -> Result<Option<Holder>> {
        let holder = self.0.journal.holder(&StreamName::host()).await?;
        Ok(holder.filter(Holder::is_another))
    }

    /// Sees what happens in all sessions from now on.
    pub fn watch(&self) -> Watcher {
        self.0.all_sessions_hub.watch(self.0.all_sessions_hub.clone(), self.0.journal.clone())
    }

    /// Stops at the next record, leaves open turns and their commands open, and lets go of everything; within five seconds,
    /// whatever hangs. A runtime must be ended by this: what it has begun keeps it alive.
    pub async fn shutdown(&self) -> Result<()> {
        self.0.suspend.send_replace(true);
        let _ending = self.0.ending.lock().await;
        // They stay where they are until they have ended: whoever gives up on this can ask again.
        let all_ended = || poll_fn(|context| lock(&self.0.workers).poll_join_next(context));
        let ended = async { while all_ended().await.is_some() {} };
        if tokio::time::timeout(ENDS_WITHIN, ended).await.is_err() {
            lock(&self.0.workers).abort_all();
        }
        for listening in lock(&self.0.listening).drain(..) {
            listening.abort();
        }
        for slot in self.0.all_sessions() {
            // Whoever waits for one that was cut short is told, too.
            slot.remove_worker(&Error::Suspended);
            slot.hub.close();
        }
        self.0.all_sessions_hub.close();
        // A journal that another process has locked can't be tidied up now; the next one to open it does.
        let _ = tokio::time::timeout(CLOSES_WITHIN, self.0.journal.close()).await;
        Ok(())
    }
}

fn approvals(config: &Config) -> Result<ApprovalPolicy> {
    let action = |approval: Approval| match approval {
        Approval::Auto => ApprovalAction::Auto,
        Approval::Ask => ApprovalAction::Ask,
        Approval::Deny => ApprovalAction::Deny,
    };
    let settings = &config.settings.approval;
    let rules = settings.rule.iter().map(|rule| ToolApprovalRule {
        tool: rule.tool.clone(),
        command: rule.command.clone(),
        action: action(rule.action),
    });
    let wrong =
        |error: InvalidRule| Error::Config { origin: "[approval]".to_owned(), reason: error.to_string() };
    ApprovalPolicy::new(action(settings.default), rules.collect()).map_err(wrong)
}

fn tasks(config: &Config, home: &Path) -> Result<Tasks> {
    let folder = home.join("tasks");
    let said = |reason: String| Error::Folder { path: folder.clone(), reason };
    let launcher = match &config.launcher {
        Some(launcher) => launcher.clone(),
        None => Launcher::this_program().map_err(|error| said(error.to_string()))?,
    };
    Tasks::at(&folder, launcher).map_err(|error| Error::Keeper(Arc::new(error)))
}

impl Inner {
    /// Which ends of tasks begin a turn by themselves.
    pub(crate) fn wake(&self) -> crate::Wake {
        self.config.settings.exec.wake
    }

    /// Passes rings on to the sessions that they are for, and tells whoever calls what happens in theirs.
    async fn listen(self: &Arc<Self>) -> Result<()> {
        let mut rings = self.journal.wake_signals().await?;
        let inner = Arc::downgrade(self);
        let listening = tokio::spawn(async move {
            loop {
                let ring = rings.next().await;
                let Some(inner) = inner.upgrade() else { return };
                match ring {
                    WakeSignal::Stream(stream) => inner.rung(stream.session_id()),
                    WakeSignal::Lagged => inner.wake_all(),
                    WakeSignal::Closed => return,
                }
            }
        });
        let telling = tokio::spawn(serve_followers(self.journal.subscribers().await?, Arc::downgrade(self)));
        *lock(&self.listening) = [listening, telling].into();
        Ok(())
    }

    fn rung(self: &Arc<Self>, id: Option<SessionId>) {
        let Some(id) = id else { return };
        match self.session_in_memory(id) {
            Some(slot) => slot.wake(self),
            None if self.hosting.load(Ordering::SeqCst) => {
                self.spawn(host::wake_stored_session(self.clone(), id));
            }
            None => {}
        }
    }

    fn wake_all(self: &Arc<Self>) {
        for slot in self.all_sessions() {
            slot.wake(self);
        }
    }

    pub(crate) fn all_sessions(&self) -> Vec<Arc<SessionSlot>> {
        lock(&self.sessions).by_key.values().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn session_in_memory(&self, id: SessionId) -> Option<Arc<SessionSlot>> {
        lock(&self.sessions).by_id.get(&id).and_then(Weak::upgrade)
    }

    /// The one thing that all holders of a session share.
    pub(crate) fn session_slot(self: &Arc<Self>, key: &str, id: Option<SessionId>) -> Arc<SessionSlot> {
        let mut sessions = lock(&self.sessions);
        sessions.clear_out();
        // A key may lead elsewhere by now, and a session may have another one; while a worker is at it, it keeps the one that it had.
        let is_meant = |slot: &Arc<SessionSlot>| slot.id.get().is_none_or(|known| Some(*known) == id);
        let by_id = id.and_then(|id| sessions.by_id.get(&id)).and_then(Weak::upgrade);
        let by_key = sessions.by_key.get(key).and_then(Weak::upgrade).filter(is_meant);
        let slot = match by_key.or(by_id.filter(|slot| slot.has_worker())) {
            Some(slot) => slot,
            None => {
                let made = Arc::new(SessionSlot::new(key, id, self.all_sessions_hub.clone()));
                sessions.by_key.insert(key.to_owned(), Arc::downgrade(&made));
                made
            }
        };
        if let Some(id) = id {
            sessions.by_id.insert(id, Arc::downgrade(&slot));
        }
        slot
    }

    /// The session that this key led to when it was last opened here.
    fn in_memory_as(&self, key: &str) -> Option<SessionId> {
        let slot = lock(&self.sessions).by_key.get(key).and_then(Weak::upgrade)?;
        slot.id.get().copied()
    }

    pub(crate) fn remember(&self, id: SessionId, slot: &Arc<SessionSlot>) {
        lock(&self.sessions).by_id.insert(id, Arc::downgrade(slot));
    }

    /// Whether a worker is at a session.
    pub(crate) fn works_at(&self, id: SessionId) -> bool {
        self.session_in_memory(id).is_some_and(|slot| slot.has_worker())
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

    /// Who is asked, as things are now.
    pub(crate) fn model_chain(&self) -> Arc<ModelChain> {
        lock(&self.model_chain).clone()
    }

    /// Whether it looks after sessions that nobody holds.
    pub(crate) fn is_hosting(&self) -> bool {
        self.hosting.load(Ordering::SeqCst)
    }

    /// The model that is set for summaries, if one is.
    pub(crate) fn summary_model(&self) -> Option<Result<Arc<dyn Model>>> {
        let name = self.config.settings.context.summary_model.as_deref()?;
        Some(open_model(&self.models, &self.config, name))
    }

    /// Why commands can't be held to the scope here, if they can't.
    pub(crate) async fn not_enforced(&self) -> Option<String> {
        let sandbox = self.config.settings.sandbox.clone();
        sandbox.network()?;
        let tasks = self.tasks.clone();
        let looking = tokio::task::spawn_blocking(move || sandbox.unenforceable(tasks.enforcement()));
        looking.await.unwrap_or_else(|error| Some(error.to_string()))
    }

    /// What takes secrets out of what commands print.
    pub(crate) fn redact(&self) -> Redact {
        let redactor = self.redactor.clone();
        Arc::new(move |text| redactor.redact(text).into_owned())
    }

    /// Tells everybody who watches all sessions of trouble with one; under no key, with all of them.
    pub(crate) fn warn(&self, key: &str, code: &str, text: &str) {
        let text = self.redactor.redact(text).into_owned();
        self.tell(key, EventKind::Warning { code: code.to_owned(), text });
    }

    /// Tells everybody who watches all sessions of something that concerns one; under no key, all of them.
    pub(crate) fn tell(&self, key: &str, kind: EventKind) {
        let event = Event { seq: None, at: now(), session: key.to_owned(), turn: None, kind };
        self.all_sessions_hub.show(&event, None);
    }

    /// Becomes true when everybody should stop.
    pub(crate) fn suspension(&self) -> watch::Receiver<bool> {
        self.suspend.subscribe()
    }
}

/// What is behind the locks of this crate is whole at every moment, also after a panic elsewhere.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
