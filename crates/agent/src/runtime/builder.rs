//! Builds and opens a runtime.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use longhaul_journal::{Home, Journal, ReadThread, SqliteJournal, SqliteOptions};
use longhaul_keeper::{Launcher, Tasks};
use longhaul_mcp::McpServers;
use longhaul_model::transport::Transport;
use longhaul_model::{Model, Models};
use longhaul_tools::{ApprovalAction, ApprovalPolicy, InvalidRule, Tool, ToolApprovalRule};
use tokio::sync::watch;

use super::{Runtime, RuntimeShared, preflight};
use crate::client::question_index::QuestionIndex;
use crate::config::Approval;
use crate::hosted_search;
use crate::housekeeping::activity::ActivityTracker;
use crate::housekeeping::backoff::WorkerBackoff;
use crate::housekeeping::idle::SchedulerHandle;
use crate::journal_place::JournalPlace;
use crate::memory::Memory;
use crate::prompt::git_status::GitStatusProbe;
use crate::prompt::prompt_text;
use crate::schedules::SharedCatalog;
use crate::schedules::runner::RunnerHandle;
use crate::secrets::{hidden_variables, redactor_for};
use crate::spend::{SpendLedger, SpendLimits};
use crate::turn::fallback::ModelChain;
use crate::web::{network_guard, web_tools};
use crate::work_folders::WorkFolders;
use crate::worker::task_monitor::TaskMonitor;
use crate::worker::toolset::FolderToolsCache;
use crate::{Config, Error, Result};

/// Builds a [`Runtime`]. Everything that is not set comes from the config.
pub struct RuntimeBuilder {
    source: ConfigSource,
    work_dir: Option<PathBuf>,
    model: Option<Arc<dyn Model>>,
    transport: Option<Arc<dyn Transport>>,
    journal: Option<Arc<dyn Journal>>,
    tools: Vec<Arc<dyn Tool>>,
    is_for_one_turn: bool,
}

enum ConfigSource {
    /// The config file in this home.
    Home(PathBuf),
    Given(Box<Config>),
}

impl ConfigSource {
    fn load(self) -> Result<Config> {
        match self {
            Self::Home(home) => Config::of_home(home),
            Self::Given(config) => Ok(*config),
        }
    }
}

impl RuntimeBuilder {
    /// A runtime with this config.
    pub fn new(config: Config) -> Self {
        Self::from_source(ConfigSource::Given(Box::new(config)))
    }

    pub(super) fn in_home(home: PathBuf) -> Self {
        Self::from_source(ConfigSource::Home(home))
    }

    fn from_source(source: ConfigSource) -> Self {
        Self {
            source,
            work_dir: None,
            model: None,
            transport: None,
            journal: None,
            tools: Vec::new(),
            is_for_one_turn: false,
        }
    }

    /// The work folder of new sessions. By default the current folder. [`crate::Session::create_in`] sets it for one
    /// session.
    #[must_use]
    pub fn work_dir(mut self, work_dir: impl Into<PathBuf>) -> Self {
        self.work_dir = Some(work_dir.into());
        self
    }

    /// The model that answers, instead of the configured one. It has no fallbacks.
    #[must_use]
    pub fn model(mut self, model: Arc<dyn Model>) -> Self {
        self.model = Some(model);
        self
    }

    /// The transport to the configured models, instead of HTTP.
    #[must_use]
    pub fn transport(mut self, transport: Arc<dyn Transport>) -> Self {
        self.transport = Some(transport);
        self
    }

    /// The journal, instead of the one in the home.
    #[must_use]
    pub fn journal(mut self, journal: Arc<dyn Journal>) -> Self {
        self.journal = Some(journal);
        self
    }

    /// For a program that runs one turn and ends: the model's server is asked about the model while the runtime opens, the tools of the
    /// work folder are made before a session needs them, and the journal is read on the thread that needs it.
    #[must_use]
    pub fn for_one_turn(mut self) -> Self {
        self.is_for_one_turn = true;
        self
    }

    /// Tools in addition to the built-in ones. [`Runtime::add_tool`] adds more later.
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Opens the runtime. It does not start any session: see [`Runtime::start`].
    #[allow(
        clippy::too_many_lines,
        reason = "each line makes one part of the runtime, in the order in which they need each other"
    )]
    pub async fn open(self) -> Result<Runtime> {
        let mut config = self.source.load()?;
        if let Some(work_dir) = self.work_dir {
            config = config.with_work_dir(&work_dir);
        }
        let reads_on = if self.is_for_one_turn { ReadThread::Caller } else { ReadThread::Pool };
        let place = JournalPlace::from_settings(&config.settings.journal, &config.settings.node)?;
        let is_early = self.journal.is_none() && place.is_file();
        let opening = if is_early { open_existing_journal(&config.home, reads_on) } else { None };
        let models = models_of(&config, self.transport)?;
        let model_chain = match self.model {
            Some(model) => ModelChain::single(model),
            None => ModelChain::from_config(&models, &config)?,
        };
        if self.is_for_one_turn {
            ask_early(model_chain.primary());
        }
        let redactor = redactor_for(&models, &config)?;
        let hidden = hidden_variables(&models, &config);
        let instructions = config.instructions()?;
        let prompt_text = prompt_text(&config)?;
        config.work_dir = resolve_work_dir(config.work_dir)?;
        let home = Home::create(&config.home)?;
        let journal: Arc<dyn Journal> = match (self.journal, opening) {
            (Some(journal), _) => journal,
            (None, Some(opening)) => Arc::new(opening.await?),
            (None, None) if !place.is_file() => place.open(&home).await?,
            (None, None) => Arc::new(SqliteJournal::open_with(&home, journal_options(reads_on)).await?),
        };
        WorkFolders::ensure(&*journal, home.folder()).await?;
        let launcher = launcher(&config, home.folder())?;
        let tasks = Tasks::at(&home.folder().join("tasks"), launcher.clone())?;
        let (guard, settings) = (network_guard(&config)?, config.settings.mcp.clone());
        let mcp = McpServers::new(home.folder(), launcher, settings, guard, redactor.clone());
        let approvals = approvals(&config)?;
        let mut web_tools = web_tools(&config)?;
        let searches = hosted_search::is_wanted(&config, &*model_chain.primary());
        let idle = SchedulerHandle::new(Duration::from_secs(config.settings.memory.check_interval_s));
        let config = Config { home: home.folder().to_owned(), ..config };
        let limits = SpendLimits::new(&config.settings.limits);
        let limits = limits.with_tree_limit(config.settings.agents.cost_per_tree);
        let spend = SpendLedger::open(journal.clone(), limits);
        let inner = Arc::new_cyclic(|inner| RuntimeShared {
            this: inner.clone(),
            web_tools: {
                web_tools.extend(searches.then(|| hosted_search::tool(inner)));
                web_tools
            },
            memory: Memory::new(&config, &journal, inner),
            config,
            instructions,
            prompt_text,
            git_status: GitStatusProbe::default(),
            journal,
            model_chain: Mutex::new(Arc::new(model_chain)),
            models,
            redactor: Arc::new(redactor),
            hidden: Mutex::new(hidden),
            tools: Mutex::new(self.tools),
            session_models: Mutex::default(),
            tasks: Arc::new(tasks),
            mcp,
            task_monitor: TaskMonitor::default(),
            approvals,
            folder_tools: FolderToolsCache::default(),
            worker_backoff: WorkerBackoff::default(),
            activity: ActivityTracker::default(),
            idle,
            schedules: RunnerHandle::default(),
            schedule_catalog: SharedCatalog::default(),
            spend,
            all_sessions_hub: Arc::default(),
            questions: QuestionIndex::default(),
            sessions: Mutex::default(),
            workers: Mutex::default(),
            hosting: AtomicBool::new(false),
            draining: watch::Sender::new(false),
            suspend: watch::Sender::new(false),
            ending: tokio::sync::Mutex::default(),
            listening: Mutex::default(),
        });
        preflight::check_prompt_fits(&inner).await?;
        inner.listen().await?;
        if self.is_for_one_turn {
            prepare_tools(inner.clone());
        }
        Ok(Runtime(inner))
    }
}

/// The real path of the work folder. Once: a link that takes its place later must not move new sessions.
fn resolve_work_dir(work_dir: PathBuf) -> Result<PathBuf> {
    let path = work_dir.canonicalize().unwrap_or(work_dir);
    match path.to_str() {
        Some(_) => Ok(path),
        None => Err(Error::Folder { path, reason: "a work folder needs a name that is UTF-8".to_owned() }),
    }
}

fn models_of(config: &Config, transport: Option<Arc<dyn Transport>>) -> Result<Models> {
    let models = Models::at(&config.home)?;
    Ok(match transport {
        Some(transport) => models.through(transport),
        None => models,
    })
}

/// Asks the model's server in the background. The model keeps the answer, and the first turn waits for it if need be.
fn ask_early(model: Arc<dyn Model>) {
    tokio::spawn(async move {
        model.capabilities().await;
    });
}

/// Makes the tools of the work folder while the first record is on its way to the disk.
fn prepare_tools(inner: Arc<RuntimeShared>) {
    tokio::spawn(async move { inner.folder_tools.prepare(&inner, &inner.config.work_dir) });
}

fn journal_options(reads_on: ReadThread) -> SqliteOptions {
    SqliteOptions { reads_on, ..SqliteOptions::default() }
}

/// Opens the journal in the background while the models and prompts are read. A journal that does not exist yet is
/// created later, because a mistake in these files must leave nothing behind.
fn open_existing_journal(
    home: &Path,
    reads_on: ReadThread,
) -> Option<impl Future<Output = longhaul_journal::Result<SqliteJournal>> + use<>> {
    let home = Home::existing(home).ok().filter(|home| home.has_journal().is_ok_and(|has| has))?;
    Some(SqliteJournal::open_with(&home, journal_options(reads_on)))
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
        host: rule.host.clone(),
        action: action(rule.action),
    });
    let wrong =
        |error: InvalidRule| Error::Config { origin: "[approval]".to_owned(), reason: error.to_string() };
    ApprovalPolicy::new(action(settings.default), rules.collect()).map_err(wrong)
}

/// How keepers are started.
pub(crate) fn launcher(config: &Config, home: &Path) -> Result<Launcher> {
    let failed =
        |error: std::io::Error| Error::Folder { path: home.join("tasks"), reason: error.to_string() };
    match &config.launcher {
        Some(launcher) => Ok(launcher.clone()),
        None => Launcher::this_program().map_err(failed),
    }
}
