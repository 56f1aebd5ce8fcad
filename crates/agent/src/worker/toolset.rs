//! What a turn of a session works with: its folder, its tools, its system prompt.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use longhaul_context::{Prompt, estimate, estimate_bytes, system_prompt};
use longhaul_journal::Blob;
use longhaul_keeper::Tasks;
use longhaul_model::Facts;
use longhaul_protocol::{BlobRef, Effect, PrintablePath, SessionId, ToolSchema, Warning};
use longhaul_tools::{
    Cap, ExecSettings, ExecTool, Repositories, RepositoryNews, Sandbox, Scope, SmallFile, TaskSettings, Tool,
    Unavailable, command_environment, file_tools, task_tools,
};

use crate::Config;
use crate::clock::now;
use crate::compaction::plan::ContextLimits;
use crate::config::WithoutSandbox;
use crate::history::history_tools;
use crate::memory::{NoteHooks, memory_tools};
use crate::runtime::{Inner, lock};
use crate::session::apply::{HOME_EXPOSED, RULES_SKIPPED, nano};
use crate::session::decide::{Policy, TurnLimits};
use crate::session::state::State;

/// The rules of a project.
const RULES_FILE: &str = "AGENTS.md";
/// More of an AGENTS.md than this is not used: it stands in every request.
const MAX_RULES_BYTES: u64 = 64 << 10;
/// The share of the context that the output of one tool may take.
const OUTPUT_SHARE: u64 = 20;
/// How many bytes of text a token is, roughly.
const BYTES_PER_TOKEN: u64 = 4;

/// What a turn of a session works with.
pub(crate) struct Equipment {
    pub(crate) work_dir: PathBuf,
    /// What the user should know about the work folder.
    pub(crate) warnings: Vec<Warning>,
    pub(crate) system: Content,
    pub(crate) tools: Arc<Toolbox>,
}

/// The tools for one work folder. All sessions that work there share them.
pub(crate) struct Toolbox {
    pub(crate) content: Content,
    pub(crate) schemas: Arc<[ToolSchema]>,
    /// What they take in a request, before anything is learnt.
    pub(crate) tokens: u64,
    by_name: BTreeMap<&'static str, Arc<dyn Tool>>,
    repositories: Arc<Repositories>,
    scope: Arc<Scope>,
}

/// The toolboxes that some session uses.
#[derive(Default)]
pub(crate) struct Toolboxes(Mutex<HashMap<PathBuf, Weak<Toolbox>>>);

impl Toolboxes {
    fn of(&self, runtime: &Inner, work_dir: &Path) -> Arc<Toolbox> {
        let mut boxes = lock(&self.0);
        if let Some(known) = boxes.get(work_dir).and_then(Weak::upgrade) {
            return known;
        }
        boxes.retain(|_, toolbox| toolbox.strong_count() > 0);
        let made = Arc::new(Toolbox::new(runtime, work_dir));
        boxes.insert(work_dir.to_owned(), Arc::downgrade(&made));
        made
    }
}

/// Text that is kept as a blob.
pub(crate) struct Content {
    pub(crate) text: Arc<str>,
    pub(crate) reference: BlobRef,
}

impl Content {
    fn new(text: String, media: &str) -> Self {
        Self { reference: BlobRef::to(text.as_bytes(), media), text: text.into() }
    }

    pub(crate) fn blob(&self) -> Blob {
        Blob::new(self.text.as_bytes())
    }
}

impl Equipment {
    pub(crate) fn new(runtime: &Inner, state: &State) -> Self {
        let config = &runtime.config;
        let created = state.created.as_ref();
        let work_dir = match created.and_then(|created| created.work_dir.as_deref()) {
            Some(folder) => PathBuf::from(folder),
            // A folder that is gone is named by every tool that would need it.
            None => config.work_dir.canonicalize().unwrap_or_else(|_| config.work_dir.clone()),
        };
        let tools = runtime.toolboxes.of(runtime, &work_dir);
        let mut warnings = Vec::new();
        let (rules, skipped) = match project_rules(&tools.scope) {
            Ok(Some(rules)) => (Some(rules.text), rules.skipped),
            Ok(None) => (None, None),
            Err(why) => (None, Some(why)),
        };
        warnings.extend(skipped.map(|why| Warning::new(RULES_SKIPPED, why)));
        if let Some(home) = tools.scope.exposed_home() {
            warnings.push(Warning::new(HOME_EXPOSED, exposed_home_in_words(&work_dir, home)));
        }
        let system = system_prompt(&Prompt {
            name: &config.settings.agent.name,
            instructions: &runtime.instructions,
            project_instructions: config.project_instructions.as_ref().map(|added| added.text.as_str()),
            work_dir: work_dir.to_str(),
            project_rules: rules.as_deref(),
            sandbox: &config.settings.sandbox.in_words(),
            started_at: created.map_or_else(now, |created| created.at),
        });
        Self {
            work_dir,
            warnings,
            system: Content::new(runtime.redactor.redact(&system).into_owned(), "text/plain"),
            tools,
        }
    }

    /// What system prompt and tools take in a request, before anything is learnt.
    pub(crate) fn fixed(&self, facts: &Facts) -> u64 {
        let system = estimate_bytes(self.system.text.len() as u64);
        if facts.tools { system + self.tools.tokens } else { system }
    }

    pub(crate) fn policy(&self, runtime: &Inner) -> Policy {
        let looks = |tool: &&Arc<dyn Tool>| tool.about().effect == Effect::Read;
        let reads = self.tools.by_name.values().filter(looks).map(|tool| tool.about().name.to_owned());
        let limits = &runtime.config.settings.limits;
        Policy {
            system: self.system.reference.hash,
            tools: self.tools.content.reference.hash,
            read_only_tools: reads.collect(),
            limits: TurnLimits {
                steps: if limits.steps == 0 { u64::MAX } else { limits.steps },
                tokens: Some(limits.tokens_per_turn).filter(|tokens| *tokens > 0),
                cost_nano: (limits.cost_per_turn > 0.0).then(|| nano(limits.cost_per_turn)),
                left_today_nano: None,
            },
            context: ContextLimits::default(),
            wake: runtime.config.settings.exec.wake,
            is_batching_task_ends: false,
            is_out_of_time: false,
            forced_end: None,
        }
    }
}

impl Toolbox {
    fn new(runtime: &Inner, work_dir: &Path) -> Self {
        let scope = Arc::new(scope(&runtime.config, work_dir));
        let (tools, repositories) = all_tools(runtime, &scope);
        let schemas: Arc<[ToolSchema]> = tools.iter().map(|tool| schema_of(&**tool)).collect();
        let text = serde_json::to_string(&*schemas).expect("a list of schemas is always JSON");
        Self {
            tokens: estimate("", &schemas, &[]),
            content: Content::new(text, "application/json"),
            schemas,
            by_name: tools.into_iter().map(|tool| (tool.about().name, tool)).collect(),
            repositories,
            scope,
        }
    }

    /// What the user should know about git repositories that commands of a session have made or changed since they were last told.
    pub(crate) async fn repository_news(
        self: &Arc<Self>,
        session: SessionId,
        tasks: Arc<Tasks>,
    ) -> Option<RepositoryNews> {
        let tools = Arc::clone(self);
        let goes_on = move |id| tasks.is_kept(id).unwrap_or(true);
        let look = move || tools.repositories.news(&tools.scope, session, goes_on);
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }

    /// The user has been told, on record.
    pub(crate) async fn acknowledge(self: &Arc<Self>, session: SessionId, news: RepositoryNews) {
        let tools = Arc::clone(self);
        let _ = tokio::task::spawn_blocking(move || tools.repositories.acknowledge(session, news)).await;
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.by_name.get(name)
    }

    pub(crate) fn names(&self) -> String {
        self.by_name.keys().copied().collect::<Vec<_>>().join(", ")
    }
}

/// All tools, and the repositories that commands among them may make.
fn all_tools(runtime: &Inner, scope: &Arc<Scope>) -> (Vec<Arc<dyn Tool>>, Arc<Repositories>) {
    let Config { home, settings, .. } = &runtime.config;
    let environment = command_environment(&runtime.hidden);
    let mode = settings.sandbox.mode.of_tools();
    let network = settings.sandbox.network().unwrap_or(mode.default_network());
    // Where a person has to be asked, the worker has done so before.
    let unavailable = match settings.sandbox.unavailable {
        WithoutSandbox::Refuse => Unavailable::Refuse,
        WithoutSandbox::Ask | WithoutSandbox::Allow => Unavailable::Run,
    };
    let sandbox = Sandbox::new(mode, home, &environment).with_network(network).or_else(unavailable);
    let repositories = Arc::clone(sandbox.repositories());
    let exec = ExecTool::new(ExecSettings {
        tasks: runtime.tasks.clone(),
        scope: scope.clone(),
        sandbox,
        environment,
        output_cap: settings.exec.output_cap_bytes,
        token_file: "../../run/token".to_owned(),
        timeout: Duration::from_secs(settings.exec.timeout_s),
        max_tasks: usize::try_from(settings.exec.max_tasks).unwrap_or(usize::MAX),
        redact: runtime.redact(),
    });
    let mut tools = file_tools(scope.clone());
    tools.push(Arc::new(exec));
    tools.extend(task_tools(&TaskSettings::new(runtime.tasks.clone(), runtime.redact())));
    tools.extend(history_tools(&runtime.journal));
    let noting = NoteHooks { redact: runtime.redact(), pages_changed: runtime.memory.pages_changed_hook() };
    tools.extend(memory_tools(&runtime.journal, &runtime.memory.scopes, noting));
    tools.extend(runtime.tools.iter().cloned());
    (tools, repositories)
}

/// What the tools may touch. The config in use is not theirs to write, wherever it lies.
pub(crate) fn scope(config: &Config, work_dir: &Path) -> Scope {
    let scope = Scope::new(work_dir, &config.settings.scope, &config.home);
    match &config.file {
        Some(file) => scope.without_writing(file),
        None => scope,
    }
}

fn schema_of(tool: &dyn Tool) -> ToolSchema {
    let about = tool.about();
    ToolSchema {
        name: about.name.to_owned(),
        description: about.description.to_owned(),
        parameters: about.schema.clone(),
    }
}

/// What an AGENTS.md says.
struct ProjectRules {
    text: String,
    /// That a part of it is left out, in words for the user.
    skipped: Option<String>,
}

/// The rules of the project, from the AGENTS.md of the work folder; or why it is not used. The agent can write in that folder, so the file
/// is read as the tools read files: it may be a link to another file in the folder, and leads nowhere else.
fn project_rules(scope: &Scope) -> Result<Option<ProjectRules>, String> {
    if scope.work_dir().join(RULES_FILE).symlink_metadata().is_err() {
        return Ok(None);
    }
    let skipped = |why: &dyn std::fmt::Display| format!("{RULES_FILE} of the work folder is not used: {why}");
    let file = scope.read_in_work_dir(RULES_FILE, MAX_RULES_BYTES).map_err(|error| skipped(&error))?;
    match file {
        Some(SmallFile { foreign: Some(why), .. }) => Err(skipped(&why)),
        Some(SmallFile { bytes, is_cut, .. }) => {
            let kib = MAX_RULES_BYTES >> 10;
            let cut = format!(
                "{RULES_FILE} of the work folder is longer than {kib} KiB; what is behind that is not used"
            );
            Ok(Some(ProjectRules {
                text: String::from_utf8_lossy(&bytes).into_owned(),
                skipped: is_cut.then_some(cut),
            }))
        }
        None => Ok(None),
    }
}

/// What is said where the agent works in the user's home folder.
pub(crate) fn exposed_home_in_words(work_dir: &Path, home: &Path) -> String {
    let folder = match work_dir == home {
        true => "is your home folder".to_owned(),
        false => format!("{} contains your home folder", work_dir.printable()),
    };
    format!(
        "the work folder {folder}: the agent can change everything in it but keys and startup files. Work in a project's folder, or name \
         the folder in [[scope.allow]] of your config to settle this"
    )
}

/// 2,000 lines and 32 KiB, or a twentieth of the context, whatever is less.
pub(crate) fn cap_for(window: Option<u64>) -> Cap {
    let usual = Cap::default();
    let share = window.map(|tokens| tokens.saturating_mul(BYTES_PER_TOKEN) / OUTPUT_SHARE);
    let bytes = share
        .and_then(|share| usize::try_from(share).ok())
        .map_or(usual.bytes, |share| share.min(usual.bytes));
    Cap { bytes, ..usual }
}

#[cfg(test)]
#[path = "toolset_tests.rs"]
mod tests;
