//! Many sessions in one process.

mod builder;
pub(crate) mod host;
mod node;
mod preflight;
pub(crate) mod slot;
mod wake_signals;

use std::borrow::Cow;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use longhaul_journal::{Holder, Journal, SessionEntry};
use longhaul_keeper::Tasks;
use longhaul_mcp::McpServers;
use longhaul_model::{Capabilities, EmbeddingModel, Model, Models};
use longhaul_protocol::{ClientRequest, Event, EventKind, SessionId};
use longhaul_tools::{ApprovalPolicy, Redact, Tool};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::client::context_report::{ContextReport, PromptOverhead};
use crate::client::local::LocalSession;
use crate::client::question_index::{QuestionIndex, SessionQuestion};
use crate::client::session::Session;
use crate::client::watch::{EventHub, Watcher};
use crate::clock::now;
use crate::housekeeping::activity::ActivityTracker;
use crate::housekeeping::backoff::WorkerBackoff;
use crate::housekeeping::idle::{IdleStatus, SchedulerHandle};
use crate::housekeeping::retention::{self, PruneMode, Pruning};
use crate::housekeeping::{cleanup, scheduler};
use crate::memory::Memory;
use crate::prompt::git_status::GitStatusProbe;
use crate::runtime::slot::SessionSlot;
use crate::schedules::runner::{self, RunnerHandle};
use crate::schedules::{Schedules, SharedCatalog};
use crate::secrets::key_variables;
use crate::session::state::State;
use crate::spend::SpendLedger;
use crate::tasks::TaskRegistry;
use crate::turn::fallback::{ModelChain, model_spec, open_model};
use crate::worker::WorkerStop;
use crate::worker::task_monitor::TaskMonitor;
use crate::worker::toolset::{FolderToolsCache, Toolset};
use crate::{Config, Error, Result};
use longhaul_redact::Redactor;

/// Unused session entries are not collected below this number of entries.
const MIN_ENTRIES_TO_COLLECT: usize = 64;
/// How long all workers together may take to stop. The next runtime does the rest.
const SHUTDOWN_GRACE: Duration = Duration::from_millis(3_500);
/// How long the journal may take to close after that.
const CLOSE_GRACE: Duration = Duration::from_millis(500);

/// Many sessions in one process. It runs only the sessions that the program uses, until [`Runtime::start`] makes it
/// the host of all.
#[derive(Clone)]
pub struct Runtime(pub(crate) Arc<RuntimeShared>);

/// The state that all handles and tasks of a runtime share.
pub(crate) struct RuntimeShared {
    /// This runtime, for tools that start sessions.
    pub(crate) this: Weak<RuntimeShared>,
    pub(crate) config: Config,
    pub(crate) instructions: String,
    /// The text that the system prompt begins with.
    pub(crate) prompt_text: Cow<'static, str>,
    /// Whether the work folder of new sessions is clean.
    pub(crate) git_status: GitStatusProbe,
    pub(crate) journal: Arc<dyn Journal>,
    models: Models,
    /// The model that answers, and its fallbacks.
    model_chain: Mutex<Arc<ModelChain>>,
    pub(crate) redactor: Arc<Redactor>,
    /// Environment variables that are hidden from commands. A model that is chosen later adds those of its provider.
    pub(crate) hidden: Mutex<Vec<String>>,
    /// Tools of the embedding program.
    pub(crate) tools: Mutex<Vec<Arc<dyn Tool>>>,
    /// Models that single sessions use instead of the runtime's, by session key.
    session_models: Mutex<HashMap<String, Arc<ModelChain>>>,
    pub(crate) tasks: Arc<Tasks>,
    /// The MCP servers of this process.
    pub(crate) mcp: McpServers,
    pub(crate) task_monitor: TaskMonitor,
    /// Which calls need the user's approval.
    pub(crate) approvals: ApprovalPolicy,
    /// `web_fetch` and, with a searcher, `web_search`. Shared by all sessions, because they keep connections and pages.
    pub(crate) web_tools: Vec<Arc<dyn Tool>>,
    pub(crate) folder_tools: FolderToolsCache,
    pub(crate) worker_backoff: WorkerBackoff,
    pub(crate) activity: ActivityTracker,
    pub(crate) idle: SchedulerHandle,
    /// Wakes the runner of the schedules.
    pub(crate) schedules: RunnerHandle,
    pub(crate) schedule_catalog: SharedCatalog,
    pub(crate) spend: SpendLedger,
    pub(crate) memory: Memory,
    /// Watchers of all sessions.
    pub(crate) all_sessions_hub: Arc<EventHub>,
    questions: QuestionIndex,
    sessions: Mutex<Sessions>,
    workers: Mutex<JoinSet<()>>,
    /// Whether this runtime runs sessions that no process holds.
    hosting: AtomicBool,
    /// Whether this node hands its sessions over to other nodes.
    draining: watch::Sender<bool>,
    /// True once the workers should stop at their next record.
    suspend: watch::Sender<bool>,
    /// Held during shutdown, so that it happens only once.
    ending: tokio::sync::Mutex<()>,
    listening: Mutex<Vec<JoinHandle<()>>>,
}

/// Sessions that a handle or a worker uses. Others take no memory.
#[derive(Default)]
struct Sessions {
    by_key: HashMap<String, Weak<SessionSlot>>,
    by_id: HashMap<SessionId, Weak<SessionSlot>>,
    /// The watchers of each session, whatever its key is.
    hubs: HashMap<SessionId, Weak<EventHub>>,
    /// Unused entries are collected once there are this many.
    collect_at: usize,
}

impl Sessions {
    fn collect_unused(&mut self) {
        if self.by_key.len().max(self.by_id.len()) < self.collect_at {
            return;
        }
        self.by_key.retain(|_, slot| slot.strong_count() > 0);
        self.by_id.retain(|_, slot| slot.strong_count() > 0);
        self.hubs.retain(|_, hub| hub.strong_count() > 0);
        self.collect_at = MIN_ENTRIES_TO_COLLECT.max(2 * self.by_key.len());
    }

    /// Makes this the slot of a session.
    fn index(&mut self, id: SessionId, slot: &Arc<SessionSlot>) {
        self.by_id.insert(id, Arc::downgrade(slot));
        self.hubs.insert(id, Arc::downgrade(&slot.hub));
    }
}

pub use builder::RuntimeBuilder;
pub(crate) use builder::launcher;

impl Runtime {
    /// Builds a runtime on this home folder, which is created if it is missing.
    pub fn builder(home: impl Into<PathBuf>) -> RuntimeBuilder {
        RuntimeBuilder::in_home(home.into())
    }

    /// Opens a runtime with the configured model.
    pub async fn open(config: Config) -> Result<Self> {
        RuntimeBuilder::new(config).open().await
    }

    /// Opens a runtime with this model.
    pub async fn with_model(config: Config, model: Arc<dyn Model>) -> Result<Self> {
        RuntimeBuilder::new(config).model(model).open().await
    }

    /// Offers the agent another tool, in all sessions, from their next turn on. It replaces a tool with the same
    /// name.
    pub fn add_tool(&self, tool: Arc<dyn Tool>) {
        let name = tool.definition().name.clone();
        let mut tools = lock(&self.0.tools);
        tools.retain(|other| other.definition().name != name);
        tools.push(tool);
        drop(tools);
        self.0.folder_tools.clear();
    }

    /// Removes an added tool, from the next turn of each session on. Returns whether there was one with this name.
    pub fn remove_tool(&self, name: &str) -> bool {
        let mut tools = lock(&self.0.tools);
        let count = tools.len();
        tools.retain(|tool| tool.definition().name != name);
        let is_removed = tools.len() < count;
        drop(tools);
        self.0.folder_tools.clear();
        is_removed
    }

    /// Hosts the home: resumes open turns, processes the inboxes of sessions that no process holds, runs the schedules, and
    /// starts the idle jobs. Calling it again does nothing.
    pub async fn start(&self) -> Result<()> {
        if !self.0.hosting.load(Ordering::SeqCst) {
            self.0.join_cluster().await?;
        }
        if !self.0.hosting.swap(true, Ordering::SeqCst) {
            let is_started =
                self.0.spawn(host::run(self.0.clone())) && self.0.spawn(runner::run(self.0.clone()));
            if !is_started {
                return Err(Error::Suspended);
            }
        }
        self.start_idle().await
    }

    /// Starts the idle jobs (compaction, memory, retention, cleanup) without hosting the home. Calling it again does nothing.
    pub async fn start_idle(&self) -> Result<()> {
        self.0.idle.start(&self.0, &scheduler::session_jobs()).await
    }

    /// Stops the idle jobs at once, even in the middle of one, until they are started again.
    pub async fn stop_idle(&self) {
        self.0.idle.stop().await;
    }

    /// The status of the idle jobs.
    pub fn idle_status(&self) -> IdleStatus {
        self.0.idle.status()
    }

    /// Sets how often sessions are checked for idleness. A session is idle after twice this time without activity.
    /// The change also applies to the current wait.
    pub fn set_check_interval(&self, interval: Duration) {
        self.0.idle.set_interval(interval);
    }

    /// Removes the leftovers of commands, unless a process did so recently. A host does this regularly.
    pub async fn tidy(&self) {
        cleanup::remove_leftovers(&self.0).await;
    }

    /// Moves sessions over the configured limits to the trash, and deletes those that have been there long enough.
    /// Never touches a session that is open here.
    pub async fn prune(&self, mode: PruneMode) -> Result<Pruning> {
        retention::prune_closed(&self.0, mode).await
    }

    /// Uses another model from the next request on, in all sessions. [`Session::use_model`] sets it for one.
    pub fn use_model(&self, name: &str) -> Result<()> {
        let chain = ModelChain::named(&self.0.models, &self.0.config, name)?;
        *lock(&self.0.model_chain) = Arc::new(chain);
        // A worker that waits before a retry calls the new model at once.
        self.0
            .all_sessions()
            .iter()
            .filter(|slot| slot.has_worker())
            .for_each(|slot| slot.wake_notify.notify_one());
        Ok(())
    }

    /// Why this system can't enforce the configured sandbox. `None` if it can. Takes a few milliseconds the first
    /// time.
    pub async fn not_enforced(&self) -> Option<String> {
        self.0.not_enforced().await
    }

    /// Removes secrets from text that is written or shown.
    pub fn redactor(&self) -> &Redactor {
        &self.0.redactor
    }

    /// The providers of this home and their models.
    pub fn models(&self) -> &Models {
        &self.0.models
    }

    /// The name of the current model, and its capabilities.
    pub async fn model(&self) -> (String, Capabilities) {
        let model = self.0.model_chain().primary();
        (model.name().to_owned(), model.capabilities().await)
    }

    /// The name of the model that a session calls, and its capabilities.
    pub async fn model_of(&self, key: &str) -> (String, Capabilities) {
        let model = self.0.model_chain_of(key).primary();
        (model.name().to_owned(), model.capabilities().await)
    }

    /// Checks that there is a model with this name.
    pub fn check_model(&self, name: &str) -> Result<()> {
        self.0.check_model(name)
    }

    /// Goes on with the model that a session's records say was chosen for it, as its worker does when it starts.
    pub fn restore_model(&self, key: &str, state: &State) {
        self.0.restore_session_model(key, state);
    }

    /// How full the context of a session is for its model.
    pub async fn context_report(&self, key: &str, state: &State) -> ContextReport {
        let (model, facts) = self.model_of(key).await;
        let overhead = PromptOverhead::of_epoch(&*self.0.journal, state)
            .await
            .unwrap_or_else(|| PromptOverhead::of_toolset(&Toolset::new(&self.0, state, &model, None)));
        ContextReport::new(state, &model, &facts, overhead, &self.0.config.settings)
    }

    /// The session with this key. Looking at it stores nothing; it begins with its first input.
    pub async fn session(&self, key: &str) -> Result<Session> {
        let mut known = self.0.journal.session(key).await?.map(|entry| entry.id);
        // The session may have got its key meanwhile.
        if self.0.in_memory_as(key).is_some_and(|id| Some(id) != known) {
            known = self.0.journal.session(key).await?.map(|entry| entry.id);
        }
        if known.is_none() {
            let Config { home, work_dir, .. } = &self.0.config;
            self.0.git_status.start(work_dir, home.join("cache/git-status"));
        }
        Ok(Session::local(LocalSession { runtime: self.0.clone(), slot: self.0.session_slot(key, known) }))
    }

    /// The session of an entry that the journal has just shown: [`session`](Self::session) without another look at the journal.
    pub fn session_of(&self, entry: &SessionEntry) -> Session {
        let slot = self.0.session_slot(&entry.key, Some(entry.id));
        Session::local(LocalSession { runtime: self.0.clone(), slot })
    }

    /// The journal of the home.
    pub fn journal(&self) -> Arc<dyn Journal> {
        self.0.journal.clone()
    }

    /// The config that the runtime was opened with.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// The questions of all sessions that wait for a person, in the order of the sessions' keys.
    pub async fn open_questions(&self) -> Result<Vec<SessionQuestion>> {
        self.0.questions.list(&*self.0.journal).await
    }

    /// Whether this runtime hosts the home, or waits to do so until another process has ended.
    pub fn is_hosting(&self) -> bool {
        self.0.is_hosting()
    }

    /// The schedules of the home. They run while this runtime, or another one, hosts it.
    pub fn schedules(&self) -> Schedules {
        let config = &self.0.config.settings.schedule;
        Schedules::new(self.0.journal.clone(), self.0.redactor.clone(), config)
            .with_catalog(self.0.schedule_catalog.clone())
    }

    /// The tasks of all sessions.
    pub fn task_registry(&self) -> TaskRegistry {
        TaskRegistry::of_runtime(self.0.journal.clone(), self.0.tasks.clone(), &self.0.config.home)
    }

    /// The other process that hosts this home, if there is one. A started runtime waits until that process has ended.
    pub async fn other_host(&self) -> Result<Option<Holder>> {
        let holder = self.0.journal.holder(&self.0.own_host_stream()).await?;
        Ok(holder.filter(Holder::is_another))
    }

    /// Events of all sessions that this process runs, from now on.
    pub fn watch(&self) -> Watcher {
        self.0.all_sessions_hub.watch(self.0.all_sessions_hub.clone(), self.0.journal.clone())
    }

    /// Suspends every session, as on SIGTERM. Sessions stop at their next record and leave open turns and their
    /// commands open, and all leases are released. It takes at most five seconds, whatever hangs. Every runtime must
    /// be ended this way, because its tasks keep it alive.
    pub async fn shutdown(&self) -> Result<()> {
        self.0.suspend.send_replace(true);
        let _ending = self.0.ending.lock().await;
        // A caller that stops waiting can call shutdown again.
        let all_ended = || poll_fn(|context| lock(&self.0.workers).poll_join_next(context));
        let ended = async { while all_ended().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_GRACE, ended).await.is_err() {
            lock(&self.0.workers).abort_all();
        }
        // Their keepers end the programs.
        self.0.mcp.stop_all();
        for listening in lock(&self.0.listening).drain(..) {
            listening.abort();
        }
        for slot in self.0.all_sessions() {
            // Callers that wait for an aborted worker get an error.
            slot.remove_worker(&WorkerStop::Suspended);
            slot.hub.close();
        }
        self.0.all_sessions_hub.close();
        // The reservations of the workers are settled now.
        self.0.spend.close().await;
        // If another process has locked the journal, the next process that opens it cleans up.
        let _ = tokio::time::timeout(CLOSE_GRACE, self.0.journal.close()).await;
        Ok(())
    }
}

impl RuntimeShared {
    /// Which task ends start a turn.
    pub(crate) fn wake(&self) -> crate::config::Wake {
        self.config.settings.exec.wake
    }

    pub(crate) fn all_sessions(&self) -> Vec<Arc<SessionSlot>> {
        lock(&self.sessions).by_key.values().filter_map(Weak::upgrade).collect()
    }

    pub(crate) fn session_in_memory(&self, id: SessionId) -> Option<Arc<SessionSlot>> {
        lock(&self.sessions).by_id.get(&id).and_then(Weak::upgrade)
    }

    /// The slot that all handles of a session share with its worker.
    pub(crate) fn session_slot(self: &Arc<Self>, key: &str, id: Option<SessionId>) -> Arc<SessionSlot> {
        let mut sessions = lock(&self.sessions);
        sessions.collect_unused();
        // The key may belong to another session by now, and the session may have another key. A worker keeps the key
        // that it started with.
        let is_meant = |slot: &Arc<SessionSlot>| slot.id.get().is_none_or(|known| Some(*known) == id);
        let by_id = id.and_then(|id| sessions.by_id.get(&id)).and_then(Weak::upgrade);
        let by_key = sessions.by_key.get(key).and_then(Weak::upgrade).filter(is_meant);
        let slot = match by_key.or(by_id.filter(|slot| slot.has_worker())) {
            Some(slot) => slot,
            None => {
                let hub = id.and_then(|id| sessions.hubs.get(&id)).and_then(Weak::upgrade);
                let all = self.all_sessions_hub.clone();
                let made = Arc::new(SessionSlot::new(key, id, hub.unwrap_or_default(), all));
                sessions.by_key.insert(key.to_owned(), Arc::downgrade(&made));
                made
            }
        };
        if let Some(id) = id {
            sessions.index(id, &slot);
        }
        slot
    }

    /// The session that this key belonged to when it was last opened here.
    fn in_memory_as(&self, key: &str) -> Option<SessionId> {
        let slot = lock(&self.sessions).by_key.get(key).and_then(Weak::upgrade)?;
        slot.id.get().copied()
    }

    pub(crate) fn index_slot(&self, id: SessionId, slot: &Arc<SessionSlot>) {
        lock(&self.sessions).index(id, slot);
    }

    /// Whether a worker of this process runs a session.
    pub(crate) fn works_at(&self, id: SessionId) -> bool {
        self.session_in_memory(id).is_some_and(|slot| slot.has_worker())
    }

    /// Spawns a task that shutdown waits for. False once shutdown has begun.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> bool {
        let mut workers = lock(&self.workers);
        if *self.suspend.borrow() {
            return false;
        }
        while workers.try_join_next().is_some() {}
        workers.spawn(task);
        true
    }

    /// The models of a session: its own, or those of the runtime.
    pub(crate) fn model_chain_of(&self, key: &str) -> Arc<ModelChain> {
        lock(&self.session_models).get(key).cloned().unwrap_or_else(|| self.model_chain())
    }

    /// Makes a session use this model, with the configured fallbacks, from its next request on.
    pub(crate) fn set_session_model(&self, key: &str, name: &str) -> Result<()> {
        let chain = ModelChain::named(&self.models, &self.config, name)?.to_chosen();
        self.hide_keys_of(name);
        lock(&self.session_models).insert(key.to_owned(), Arc::new(chain));
        Ok(())
    }

    /// Checks that there is a model with this name.
    pub(crate) fn check_model(&self, name: &str) -> Result<()> {
        ModelChain::named(&self.models, &self.config, name).map(drop)
    }

    /// Checks that an agent may choose this model. A scripted one reads a file wherever it is, so only a runtime that plays scripts itself
    /// takes another.
    pub(crate) fn check_model_of_agent(&self, name: &str) -> Result<()> {
        let is_scripted = |name: &str| name.starts_with("scripted/");
        if is_scripted(name) && !is_scripted(self.model_chain().primary().name()) {
            let reason = "an agent can't choose a scripted model";
            return Err(Error::Config { origin: name.to_owned(), reason: reason.to_owned() });
        }
        self.check_model(name)
    }

    /// Hides the keys of a model's provider from commands, from the next turn of each session on.
    fn hide_keys_of(&self, model: &str) {
        let mut hidden = lock(&self.hidden);
        let variables = key_variables(&self.models, model);
        if variables.iter().any(|variable| !hidden.contains(variable)) {
            hidden.extend_from_slice(variables);
            drop(hidden);
            self.folder_tools.clear();
        }
    }

    /// Makes a session use the model that a client named, unless it does. A model that can't be opened is not called.
    pub(crate) fn use_requested_model(&self, key: &str, name: &str) {
        let configured = self.model_chain();
        let is_configured = name == ClientRequest::CONFIGURED_MODEL || name == configured.primary().name();
        let name = if is_configured { configured.primary().name().to_owned() } else { name.to_owned() };
        if self.model_chain_of(key).primary().name() == name {
            return;
        }
        if is_configured {
            lock(&self.session_models).insert(key.to_owned(), Arc::new(configured.to_chosen()));
        } else {
            let _ = self.set_session_model(key, &name);
        }
    }

    /// Goes on with the model that was chosen for a session before this runtime began. One that can't be opened any more is not called:
    /// the configured model answers.
    pub(crate) fn restore_session_model(&self, key: &str, state: &State) {
        let of_subagent = state.parent().and_then(|parent| parent.model.as_deref());
        if let Some(name) = self.config.chosen_model(state).or(of_subagent)
            && !lock(&self.session_models).contains_key(key)
            && name != self.model_chain().primary().name()
        {
            let _ = self.set_session_model(key, name);
        }
    }

    /// The models of sessions without a model of their own.
    pub(crate) fn model_chain(&self) -> Arc<ModelChain> {
        lock(&self.model_chain).clone()
    }

    /// Whether this runtime runs sessions that no process holds.
    pub(crate) fn is_hosting(&self) -> bool {
        self.hosting.load(Ordering::SeqCst)
    }

    /// The model for summaries, if the config names one.
    pub(crate) fn summary_model(&self) -> Option<Result<Arc<dyn Model>>> {
        let name = self.config.settings.context.summary_model.as_deref()?;
        Some(open_model(&self.models, &self.config, name))
    }

    /// The model for memory: the one that the config names, otherwise the session's own. A model that can't be opened
    /// is reported once, and the session's own stands in.
    pub(crate) fn memory_model(&self, key: &str) -> Arc<dyn Model> {
        let own = self.memory.own_model.get_or_init(|| {
            let name = self.config.settings.memory.model.as_deref()?;
            let opened = open_model(&self.models, &self.config, name);
            let text = "memory.model can't be used, and the session's own model is asked instead";
            opened.inspect_err(|error| self.warn("", "memory_model", &format!("{text}: {error}"))).ok()
        });
        own.clone().unwrap_or_else(|| self.model_chain_of(key).primary())
    }

    /// The embedding model that the config names, if it names one.
    pub(crate) fn embedding_model(&self) -> Option<Result<EmbeddingModel>> {
        let name = self.config.settings.memory.embedding_model.as_deref()?;
        let spec = model_spec(&self.models, &self.config, name);
        Some(self.models.open_embedding(&spec).map_err(Error::from))
    }

    /// Why the sandbox can't be enforced, if it can't.
    pub(crate) async fn not_enforced(&self) -> Option<String> {
        let sandbox = self.config.settings.sandbox.clone();
        sandbox.network()?;
        let tasks = self.tasks.clone();
        let looking = tokio::task::spawn_blocking(move || sandbox.unenforceable(tasks.enforcement()));
        looking.await.unwrap_or_else(|error| Some(error.to_string()))
    }

    /// Removes secrets from command output.
    pub(crate) fn redact(&self) -> Redact {
        let redactor = self.redactor.clone();
        Arc::new(move |text| redactor.redact(text).into_owned())
    }

    /// Warns the watchers of all sessions about one session, or about all of them if the key is empty.
    pub(crate) fn warn(&self, key: &str, code: &str, text: &str) {
        let text = self.redactor.redact(text).into_owned();
        self.tell(key, EventKind::Warning { code: code.to_owned(), text });
    }

    /// Shows an event of one session to the watchers of all sessions. If the key is empty, the event concerns all
    /// sessions.
    pub(crate) fn tell(&self, key: &str, kind: EventKind) {
        let event = Event { seq: None, at: now(), session: key.to_owned(), turn: None, kind };
        self.all_sessions_hub.show(&event, None);
    }

    /// Becomes true when workers should stop.
    pub(crate) fn suspension(&self) -> watch::Receiver<bool> {
        self.suspend.subscribe()
    }
}

/// The values in these locks are complete at every moment, even after a panic elsewhere.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
