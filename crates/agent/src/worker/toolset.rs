//! The toolset of a session: its work folder, its tools, and its system prompt.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use longhaul_context::{
    InstructionAuthor, InstructionText, SystemPromptParts, estimate, estimate_bytes, system_prompt,
};
use longhaul_journal::Blob;
use longhaul_keeper::Tasks;
use longhaul_mcp::{FolderServers, ServerPlace, ToolOffer};
use longhaul_model::Capabilities;
use longhaul_protocol::{BlobRef, Effect, Environment, Hash, PrintablePath, SessionId, ToolSchema, Warning};
use longhaul_tools::{
    ExecSettings, ExecTool, RepositoryTracker, RepositoryWarning, Sandbox, SandboxFallback, Scope,
    TaskSettings, Tool, ask_user_tool, command_environment, file_tools, task_tools,
};

use crate::Config;
use crate::compaction::plan::ContextLimits;
use crate::config::{ProjectInstructions, WithoutSandbox};
use crate::journal_place::password_file;
use crate::memory::{NoteHooks, memory_note_tool};
use crate::prompt::environment::SessionSetup;
use crate::prompt::instruction_files::{InstructionFile, Instructions, read_instructions};
use crate::recall::recall_tools;
use crate::runtime::{RuntimeShared, lock};
use crate::schedules::Schedules;
use crate::schedules::tool::ScheduleTool;
use crate::session::apply::{HOME_EXPOSED, RULES_SKIPPED};
use crate::session::decide::{BudgetCheck, Policy, TurnLimits};
use crate::session::state::State;
use crate::subagents::kinds::usable_kinds;
use crate::subagents::{AGENT_TOOL, AgentTool, RuntimeSubagents, subagent_instructions};
use crate::work_folders::WorkFolders;
use crate::worker::tool_profile::ToolProfile;

/// The work folder, the tools and the system prompt for the turns of a session.
pub(crate) struct Toolset {
    /// `None` if the session has no work folder, and so no file tools and no commands.
    work_dir: Option<PathBuf>,
    /// Why no turn may run in the work folder.
    refusal: Option<String>,
    warnings: Vec<Warning>,
    /// The surroundings that the system prompt names.
    environment: Environment,
    system: BlobText,
    folder: Arc<FolderTools>,
    tools: Arc<OfferedTools>,
}

/// The tools for one work folder, or for sessions without one, shared by all sessions that work there.
pub(crate) struct FolderTools {
    /// The tools without those of MCP servers.
    own: Arc<OfferedTools>,
    servers: FolderServers,
    /// `None` without a work folder.
    access: Option<FolderAccess>,
    profile: ToolProfile,
}

/// The tools that a request offers.
pub(crate) struct OfferedTools {
    /// The schemas in the form that is stored with an epoch.
    json: BlobText,
    schemas: Arc<[ToolSchema]>,
    /// The estimated size of the schemas in a request.
    tokens: u64,
    tools: Vec<Arc<dyn Tool>>,
    by_name: BTreeMap<String, Arc<dyn Tool>>,
    /// The schemas of MCP tools among them.
    of_servers: Vec<ToolSchema>,
}

impl OfferedTools {
    fn new(tools: Vec<Arc<dyn Tool>>, of_servers: Vec<ToolSchema>) -> Self {
        let schemas: Arc<[ToolSchema]> = tools.iter().map(|tool| tool.definition().to_schema()).collect();
        let json = serde_json::to_string(&*schemas).expect("a list of schemas is always JSON");
        Self {
            tokens: estimate("", &schemas, &[]),
            json: BlobText::new(json, "application/json"),
            schemas,
            by_name: tools
                .iter()
                .map(|tool| (tool.definition().name.to_string(), Arc::clone(tool)))
                .collect(),
            tools,
            of_servers,
        }
    }

    /// The hash of the schemas, as an epoch records it.
    pub(crate) fn hash(&self) -> Hash {
        self.json.reference.hash
    }

    /// The schemas of MCP tools among them.
    pub(crate) fn of_servers(&self) -> &[ToolSchema] {
        &self.of_servers
    }
}

/// What the tools may do in a work folder, and the git repositories that their commands create.
struct FolderAccess {
    repositories: Arc<RepositoryTracker>,
    scope: Arc<Scope>,
}

/// The tools of each work folder that a session uses.
#[derive(Default)]
pub(crate) struct FolderToolsCache(Mutex<CachedFolderTools>);

#[derive(Default)]
struct CachedFolderTools {
    by_profile: HashMap<ToolProfile, Weak<FolderTools>>,
    /// Tools that no session uses yet.
    prepared: Option<Arc<FolderTools>>,
}

impl FolderToolsCache {
    /// Makes the next turn of each session load its tools again.
    pub(crate) fn clear(&self) {
        *lock(&self.0) = CachedFolderTools::default();
    }

    /// Makes the tools of a work folder for the next session that uses them.
    pub(crate) fn prepare(&self, runtime: &RuntimeShared, work_dir: &Path) {
        let tools = self.get_or_create(runtime, &ToolProfile::of_folder(Some(work_dir)));
        lock(&self.0).prepared = Some(tools);
    }

    pub(crate) fn get_or_create(&self, runtime: &RuntimeShared, profile: &ToolProfile) -> Arc<FolderTools> {
        let mut cache = lock(&self.0);
        let cached = cache.by_profile.get(profile).and_then(Weak::upgrade);
        cache.prepared = None;
        if let Some(cached) = cached {
            return cached;
        }
        cache.by_profile.retain(|_, tools| tools.strong_count() > 0);
        let tools = Arc::new(FolderTools::new(runtime, profile));
        cache.by_profile.insert(profile.clone(), Arc::downgrade(&tools));
        tools
    }
}

/// Text that is stored as a blob.
struct BlobText {
    text: Arc<str>,
    reference: BlobRef,
}

impl BlobText {
    fn new(text: String, media: &str) -> Self {
        Self { reference: BlobRef::to(text.as_bytes(), media), text: text.into() }
    }

    fn blob(&self) -> Blob {
        Blob::new(self.text.as_bytes())
    }
}

impl Toolset {
    /// The toolset for a turn of this session that begins now, with this model. `tools` are those of its epoch; `None` for the
    /// tools without MCP servers.
    pub(crate) fn new(
        runtime: &RuntimeShared,
        state: &State,
        model: &str,
        tools: Option<Arc<OfferedTools>>,
    ) -> Self {
        let config = &runtime.config;
        let profile = ToolProfile::of_session(runtime, state);
        let folder_tools = runtime.folder_tools.get_or_create(runtime, &profile);
        let work_dir = profile.work_dir;
        let tools = tools.unwrap_or_else(|| Arc::clone(&folder_tools.own));
        let scope = folder_tools.access.as_ref().map(|folder| &*folder.scope);
        let refusal =
            scope.and_then(|scope| Some(moved_folder_refusal(scope.work_dir(), &scope.work_dir_leads_to()?)));
        // Nothing is read through the link.
        let scope = scope.filter(|_| refusal.is_none());
        let Instructions { files, skipped } = read_instructions(&config.home, scope);
        let mut warnings: Vec<Warning> =
            skipped.into_iter().map(|reason| Warning::new(RULES_SKIPPED, reason)).collect();
        if let Some(scope) = scope
            && let Some(home) = scope.exposed_home()
        {
            warnings.push(Warning::new(HOME_EXPOSED, exposed_home_warning(scope.work_dir(), home)));
        }
        let environment = match &state.environment {
            Some(environment) => (**environment).clone(),
            None => {
                let sandbox = &config.settings.sandbox.in_words();
                let folder = work_dir.as_deref().filter(|_| refusal.is_none());
                let setup = SessionSetup { work_dir: folder, sandbox, model };
                setup.capture(folder.and_then(|folder| runtime.git_status.answer(folder)))
            }
        };
        // A stranger's project has no say in another folder.
        let project_instructions = config
            .project_instructions
            .as_ref()
            .filter(|added| work_dir.as_deref().is_some_and(|work_dir| added.are_for(work_dir)));
        let instructions = match state.parent() {
            Some(parent) => Cow::Owned(subagent_instructions(&runtime.instructions, parent)),
            None => Cow::Borrowed(runtime.instructions.as_str()),
        };
        let system = system_prompt(&SystemPromptParts {
            text: &runtime.prompt_text,
            name: &config.settings.agent.name,
            instructions: &instructions,
            files: &instruction_texts(project_instructions, files),
            work_dir: work_dir.as_deref().and_then(Path::to_str),
            environment: &environment,
        });
        let system = BlobText::new(runtime.redactor.redact(&system).into_owned(), "text/plain");
        Self { work_dir, refusal, warnings, environment, system, folder: folder_tools, tools }
    }

    pub(crate) fn work_dir(&self) -> Option<&Path> {
        self.work_dir.as_deref()
    }

    /// The work folder, if the session has one and nothing keeps turns from running in it.
    pub(crate) fn usable_work_dir(&self) -> Option<&Path> {
        self.work_dir.as_deref().filter(|_| self.refusal.is_none())
    }

    /// Warnings about the work folder, for the user.
    pub(crate) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    pub(crate) fn system_prompt(&self) -> Arc<str> {
        self.system.text.clone()
    }

    pub(crate) fn schemas(&self) -> Arc<[ToolSchema]> {
        self.tools.schemas.clone()
    }

    /// A tool by its name. MCP tools are found even if their schemas are not sent.
    pub(crate) fn tool(&self, session: SessionId, name: &str) -> Option<Arc<dyn Tool>> {
        let of_server = || self.folder.servers.find_tool(session, name);
        self.tools
            .by_name
            .get(name)
            .cloned()
            .or_else(of_server)
            .filter(|tool| self.folder.profile.allows_tool(&**tool))
    }

    /// The MCP servers of the folder.
    pub(crate) fn servers(&self) -> &FolderServers {
        &self.folder.servers
    }

    /// The tools that requests offer.
    pub(crate) fn offered(&self) -> &Arc<OfferedTools> {
        &self.tools
    }

    /// The names of all tools, separated by commas.
    pub(crate) fn tool_names(&self) -> String {
        self.tools.by_name.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
    }

    /// The blobs that an epoch with this toolset begins with: the system prompt, then the schemas.
    pub(crate) fn references(&self) -> (BlobRef, BlobRef) {
        (self.system.reference.clone(), self.tools.json.reference.clone())
    }

    /// The blobs that these references name.
    pub(crate) fn blobs(&self, references: [&BlobRef; 2]) -> Vec<Blob> {
        let texts = [&self.system, &self.tools.json];
        texts.into_iter().filter(|text| references.contains(&&text.reference)).map(BlobText::blob).collect()
    }

    /// The estimated tokens of the system prompt in a request.
    pub(crate) fn system_tokens(&self) -> u64 {
        estimate_bytes(self.system.text.len() as u64)
    }

    /// The estimated tokens of the tools in a request.
    pub(crate) fn tools_tokens(&self) -> u64 {
        self.tools.tokens
    }

    /// The estimated tokens of system prompt and tools in a request to a model.
    pub(crate) fn fixed_tokens(&self, facts: &Capabilities) -> u64 {
        let system = self.system_tokens();
        if facts.tools { system + self.tools.tokens } else { system }
    }

    /// The policy of a turn that begins with this toolset.
    pub(crate) fn policy(&self, runtime: &RuntimeShared) -> Policy {
        let is_parallel = |tool: &&Arc<dyn Tool>| {
            tool.definition().effect == Effect::Read || tool.definition().name == AGENT_TOOL
        };
        let parallel = self.tools.by_name.values().filter(is_parallel);
        let parallel = parallel.map(|tool| tool.definition().name.to_string());
        let limits = &runtime.config.settings.limits;
        Policy {
            system: self.system.reference.hash,
            tools: self.tools.json.reference.hash,
            parallel_tools: parallel.collect(),
            limits: TurnLimits {
                steps: if limits.steps == 0 { u64::MAX } else { limits.steps },
                budget: BudgetCheck::Fits,
            },
            context: ContextLimits::default(),
            wake: runtime.config.settings.exec.wake,
            is_batching_task_ends: false,
            is_out_of_time: false,
            forced_end: None,
            refusal: self.refusal.clone(),
        }
    }

    /// Git repositories that the session's commands have created or changed since the user was last warned.
    pub(crate) async fn repository_news(
        &self,
        session: SessionId,
        tasks: Arc<Tasks>,
    ) -> Option<RepositoryWarning> {
        let tools = Arc::clone(&self.folder);
        let is_running = move |id| tasks.is_kept(id).unwrap_or(true);
        let check = move || {
            let folder = tools.access.as_ref()?;
            folder.repositories.news(&folder.scope, session, is_running)
        };
        tokio::task::spawn_blocking(check).await.ok().flatten()
    }

    /// Records that the user was warned about these repositories.
    pub(crate) async fn acknowledge_repositories(&self, session: SessionId, news: RepositoryWarning) {
        let tools = Arc::clone(&self.folder);
        let acknowledge = move || {
            tools.access.iter().for_each(|folder| folder.repositories.acknowledge(session, news.clone()));
        };
        let _ = tokio::task::spawn_blocking(acknowledge).await;
    }
}

impl FolderTools {
    fn new(runtime: &RuntimeShared, profile: &ToolProfile) -> Self {
        let work_dir = profile.work_dir.as_deref();
        let scope = profile.scope(&runtime.config).map(Arc::new);
        let agent_tool = profile.may_start_subagents(&runtime.config).then(|| {
            let kinds = usable_kinds(&runtime.config, work_dir);
            AgentTool::new(runtime, &kinds, profile.work_dir.clone(), scope.clone())
        });
        let (mut tools, access, place) = match scope {
            Some(scope) => {
                // Before anything can be changed there. A home that can't be written runs no session.
                let _ = WorkFolders::add(&runtime.config.home, scope.work_dir());
                let (tools, sandbox) = folder_tools(runtime, &scope);
                let repositories = Arc::clone(sandbox.repositories());
                let sandbox = server_sandbox(&runtime.config, sandbox);
                let place = ServerPlace { scope: scope.clone(), sandbox };
                (tools, Some(FolderAccess { repositories, scope }), Some(place))
            }
            None => (vec![], None, None),
        };
        tools.extend(agent_tool.map(|tool| Arc::new(tool) as Arc<dyn Tool>));
        tools.extend(other_tools(runtime));
        tools.retain(|tool| profile.allows_tool(&**tool));
        // They belong to the folder of the runtime.
        let is_of_project = work_dir == Some(runtime.config.work_dir.as_path());
        let project = if is_of_project { runtime.config.project_servers.clone() } else { BTreeMap::new() };
        // A server works in the whole scope of its folder.
        let servers = match profile.has_own_scope() {
            true => runtime.mcp.none(),
            false => runtime.mcp.for_folder(place, project),
        };
        Self { own: Arc::new(OfferedTools::new(tools, vec![])), servers, access, profile: profile.clone() }
    }

    pub(crate) fn servers(&self) -> &FolderServers {
        &self.servers
    }

    /// The tools with these of MCP servers.
    pub(crate) fn with_servers(&self, offer: ToolOffer) -> Arc<OfferedTools> {
        if offer.tools.is_empty() {
            return Arc::clone(&self.own);
        }
        let offered = offer.tools.into_iter().filter(|tool| self.profile.allows_tool(&**tool));
        let tools = self.own.tools.iter().cloned().chain(offered).collect();
        Arc::new(OfferedTools::new(tools, offer.schemas))
    }

    /// Whether a tool is one without a server.
    pub(crate) fn has_own(&self, name: &str) -> bool {
        self.own.by_name.contains_key(name)
    }
}

/// The folder that a session works in.
pub(crate) fn session_work_dir(runtime: &RuntimeShared, state: &State) -> Option<PathBuf> {
    match &state.created {
        Some(created) => created.work_dir.as_deref().map(PathBuf::from),
        // If the folder is gone, every tool that needs it reports that.
        None => Some(runtime.config.work_dir.clone()),
    }
}

/// The tools that work in a folder, and the sandbox of their commands.
fn folder_tools(runtime: &RuntimeShared, scope: &Arc<Scope>) -> (Vec<Arc<dyn Tool>>, Sandbox) {
    let Config { settings, .. } = &runtime.config;
    let environment = command_environment(&lock(&runtime.hidden));
    let sandbox = command_sandbox(&runtime.config, &environment);
    let exec = ExecTool::new(ExecSettings {
        tasks: runtime.tasks.clone(),
        scope: scope.clone(),
        sandbox: sandbox.clone(),
        environment,
        output_cap: settings.exec.output_cap_bytes,
        token_file: "../../run/token".to_owned(),
        timeout: Duration::from_secs(settings.exec.timeout_s),
        max_tasks: usize::try_from(settings.exec.max_tasks).unwrap_or(usize::MAX),
        redact: runtime.redact(),
    });
    let mut tools = file_tools(scope.clone());
    tools.push(Arc::new(exec));
    let subagents = Arc::new(RuntimeSubagents(runtime.this.clone()));
    let tasks = TaskSettings::new(runtime.tasks.clone(), runtime.redact()).with_subagents(subagents);
    tools.extend(task_tools(&tasks));
    (tools, sandbox)
}

/// The sandbox of the programs of MCP servers. No user can be asked when one is started, so `ask` refuses.
pub(crate) fn server_sandbox(config: &Config, commands: Sandbox) -> Sandbox {
    match config.settings.sandbox.unavailable {
        WithoutSandbox::Allow => commands,
        WithoutSandbox::Ask | WithoutSandbox::Refuse => commands.with_fallback(SandboxFallback::Refuse),
    }
}

/// The sandbox of commands.
pub(crate) fn command_sandbox(config: &Config, environment: &BTreeMap<String, String>) -> Sandbox {
    let settings = &config.settings.sandbox;
    let mode = settings.mode.of_tools();
    let network = settings.network().unwrap_or(mode.default_network());
    // With `Ask`, the worker asks the user before the tool runs.
    let unavailable = match settings.unavailable {
        WithoutSandbox::Refuse => SandboxFallback::Refuse,
        WithoutSandbox::Ask | WithoutSandbox::Allow => SandboxFallback::Run,
    };
    Sandbox::new(mode, &config.home, environment).with_network(network).with_fallback(unavailable)
}

/// The tools that need no work folder.
fn other_tools(runtime: &RuntimeShared) -> Vec<Arc<dyn Tool>> {
    let mut tools = vec![ask_user_tool()];
    tools.extend(runtime.web_tools.iter().cloned());
    tools.extend(recall_tools(&runtime.journal, &runtime.memory.scopes, runtime.memory.finders()));
    let noting = NoteHooks { redact: runtime.redact(), pages_changed: runtime.memory.pages_changed_hook() };
    tools.push(memory_note_tool(&runtime.journal, &runtime.memory.scopes, noting));
    let schedules =
        Schedules::new(runtime.journal.clone(), runtime.redactor.clone(), &runtime.config.settings.schedule)
            .with_catalog(runtime.schedule_catalog.clone());
    tools.push(Arc::new(ScheduleTool::new(schedules)));
    tools.extend(lock(&runtime.tools).iter().cloned());
    tools
}

/// The scope of the tools. It never includes writing the config file in use, nor the file with the password of the journal's database,
/// wherever they are: who can read that one can write to every session.
pub(crate) fn tool_scope(config: &Config, work_dir: &Path) -> Scope {
    let scope = Scope::new(work_dir, &config.settings.scope, &config.home);
    let scope = match &config.file {
        Some(file) => scope.without_writing(file),
        None => scope,
    };
    match password_file(&config.settings.journal, std::env::var_os("PGPASSFILE")) {
        Some(file) => scope.without_file(&file),
        None => scope,
    }
}

/// The texts of all files with instructions: the user's, then those that the project's config names, then the project's.
fn instruction_texts(
    configured: Option<&ProjectInstructions>,
    files: Vec<InstructionFile>,
) -> Vec<InstructionText> {
    let is_users = |file: &InstructionText| file.author == InstructionAuthor::User;
    let (mut texts, of_project): (Vec<_>, Vec<_>) =
        files.into_iter().map(InstructionFile::into_text).partition(is_users);
    texts.extend(configured.filter(|added| !added.text.trim().is_empty()).map(|added| InstructionText {
        path: added.file.printable().to_string(),
        author: InstructionAuthor::Project,
        text: added.text.clone(),
    }));
    texts.extend(of_project);
    texts
}

/// The error of a turn whose work folder was replaced by a link, or lies behind one.
fn moved_folder_refusal(work_dir: &Path, leads_to: &Path) -> String {
    format!(
        "the work folder {} leads to {} now, and a link in its place is not followed; put the folder back, or go on in another \
         one: `longhaul sessions export`, then `longhaul sessions import FILE --mine --work-dir DIR`",
        work_dir.printable(),
        leads_to.printable()
    )
}

/// The warning that the work folder is, or contains, the user's home folder.
pub(crate) fn exposed_home_warning(work_dir: &Path, home: &Path) -> String {
    let folder = match work_dir == home {
        true => "is your home folder".to_owned(),
        false => format!("{} contains your home folder", work_dir.printable()),
    };
    format!(
        "the work folder {folder}, so the agent can change everything in it except keys and startup files; \
         work in a project's folder, or add this one to [[scope.allow]] in your config"
    )
}

#[cfg(test)]
#[path = "toolset_tests.rs"]
mod tests;
