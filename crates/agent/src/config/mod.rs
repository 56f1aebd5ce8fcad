//! The configuration of a runtime: its home, its agent, and what the agent may do.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `settings` | every section and key, with its type, its default and its meaning |
//! | `format` | the format of the files: schema, checks, paths, and which settings are listed |
//! | `sources` | which files, variables and flags a config is loaded from |
//! | `project_servers` | the MCP servers in a project's `.mcp.json` |
//! | `project`, `trust` | what a project's file may set, and which of these files the user trusts |
//! | `files` | reading files of the user and of projects |
//!
//! Layers, origins and the suggestions for unknown keys are the crate `longhaul-config`.

pub(crate) mod files;
mod format;
mod project;
mod project_servers;
mod settings;
mod sources;
mod trust;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use format::config_schema;
use format::{default_layers, list_settings, parse_layer, put_project_layer, resolve_file_paths};
use longhaul_config::{ConfigError, Layer, Layers, Origin};
pub use longhaul_config::{Origins, ResolvedSetting, TrustList, TrustState, TrustedFile, hide_url_password};
use longhaul_keeper::Launcher;
use longhaul_memory::{ScopeKind, scope_of};
use longhaul_protocol::{At, PrintablePath, ScheduleSpec};
use longhaul_schedule::Timing;
pub use project::{DisallowedKey, ProjectFile, ProjectInstructions};
pub use project_servers::ProjectServersFile;
pub use settings::*;
pub use sources::Sources;
pub(crate) use trust::save_trust_list;
pub use trust::{
    distrust_kinds, distrust_project, load_trust_list, trust_kind, trust_project, trust_project_servers,
    trust_state,
};

use crate::session::state::State;
use crate::{Error, Result, RetryMode};

/// The configuration of a runtime.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder with all data.
    pub home: PathBuf,
    /// The work folder of new sessions.
    pub work_dir: PathBuf,
    /// The user's home folder, whose skills sessions may use. `None` if the user has none, or none of it should count.
    pub user_home: Option<PathBuf>,
    /// The merged settings.
    pub settings: Settings,
    /// The source of each setting.
    pub origins: Origins,
    /// The file that replaces the home's own (`--config`). No session may write it, because the next run would obey
    /// it.
    pub file: Option<PathBuf>,
    /// What the user should know about the config files.
    pub warnings: Vec<String>,
    /// The MCP servers of the project: of its `longhaul.toml`, then of its `.mcp.json`, each if the user trusts the file. They are for
    /// sessions in the work folder alone, and the user's own server of the same name is used instead.
    pub project_servers: BTreeMap<String, longhaul_mcp::ServerSettings>,
    /// The instructions of the project's file, in addition to the user's.
    pub project_instructions: Option<ProjectInstructions>,
    /// How keepers are started. By default this program is started, and must call `keeper::main_if_asked` first.
    pub launcher: Option<Launcher>,
    /// The timeout of a tool other than a command.
    pub tool_time: Duration,
    /// How long an idle session stays in memory.
    pub rest_time: Duration,
    /// How long a task may be silent after what looks like a question before it counts as waiting for input.
    pub stall_time: Duration,
    /// How long failing model calls may be retried. That depends on whether a user waits.
    pub retry_mode: RetryMode,
    /// Whether a person is at this process. Then the runtime also asks what a turn can do without, such as whether to run a command
    /// outside of the sandbox that refused it. False by default.
    pub is_attended: bool,
    /// The model that the files name. A flag or a variable may name another one, but the server settings of the files
    /// belong to this one.
    pub model_in_files: Option<String>,
}

const DEFAULT_TOOL_TIME: Duration = Duration::from_secs(120);
const DEFAULT_REST_TIME: Duration = Duration::from_secs(10);
const DEFAULT_STALL_TIME: Duration = Duration::from_secs(45);

/// A file that config may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// The path of the file, even if it does not exist.
    pub path: PathBuf,
    /// Whether it is there.
    pub exists: bool,
    /// Whether it is a project's, which may not set everything.
    pub is_project: bool,
    /// Why an existing file is not used.
    pub skipped: Option<String>,
}

impl ConfigFile {
    /// Whether the config is loaded from it.
    pub fn is_used(&self) -> bool {
        self.exists && self.skipped.is_none()
    }
}

impl Config {
    /// The defaults, with this home.
    pub fn at(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            work_dir: Sources::default().work_dir(),
            user_home: std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
            settings: Settings::default(),
            origins: Origins::default(),
            file: None,
            warnings: Vec::new(),
            project_servers: BTreeMap::new(),
            project_instructions: None,
            launcher: None,
            tool_time: DEFAULT_TOOL_TIME,
            rest_time: DEFAULT_REST_TIME,
            stall_time: DEFAULT_STALL_TIME,
            retry_mode: RetryMode::default(),
            is_attended: false,
            model_in_files: None,
        }
    }

    /// Parses a text of `config.toml`, with the default home (`LONGHAUL_HOME`, otherwise `~/.longhaul`).
    pub fn from_toml(text: &str) -> Result<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = variable("LONGHAUL_HOME").or_else(|| Some(variable("HOME")?.join(".longhaul")));
        let missing =
            || config_error("the environment", "neither LONGHAUL_HOME nor HOME is set; use Config::at");
        let mut layers = default_layers();
        layers.put(parse_layer(text, "the config")?);
        Self::at(home.ok_or_else(missing)?).with_layers(layers)
    }

    /// Loads the `config.toml` of this home, if there is one.
    pub fn of_home(home: impl Into<PathBuf>) -> Result<Self> {
        let config = Self::at(home);
        let mut layers = default_layers();
        if let Some(layer) = base_layer(&config.home, &Sources::default())? {
            layers.put(layer);
        }
        config.with_layers(layers)
    }

    /// The model that the user chose for a session. `--model` wins over it, other sources don't.
    pub(crate) fn chosen_model<'a>(&self, state: &'a State) -> Option<&'a str> {
        state.chosen_model.as_deref().filter(|_| !self.origins.is_flag("model.name"))
    }

    /// Loads all sources: the home's `config.toml` or the file that replaces it, then the allowed part of the
    /// project's `longhaul.toml`, then the environment, then the flags. Later sources win.
    pub fn load(home: impl Into<PathBuf>, sources: &Sources) -> Result<Self> {
        let mut config = Self::at(home).with_work_dir(&sources.work_dir());
        config.file = sources.config_file.is_some().then(|| sources.base_file(&config.home));
        let mut layers = default_layers();
        if let Some(layer) = base_layer(&config.home, sources)? {
            layers.put(layer);
        }
        let project = ProjectFile::search(&config.home, sources, &layers.settings()?)?;
        config.warnings = project.skipped;
        match project.file {
            Some(Ok(file)) => {
                let mut part = file.into_part();
                config.project_servers = part.take_servers();
                put_project_layer(&mut layers, part.layer);
                config.project_instructions = part.instructions;
                config.warnings.extend(part.warnings);
            }
            // The project may come from elsewhere. A broken file in it must not prevent the user from working.
            Some(Err(error)) => config.warnings.push(format!("{error}; ignoring the file")),
            None => {}
        }
        let (servers, warnings) = project_servers::load_project_servers(&config.home, sources);
        for (name, settings) in servers {
            config.project_servers.entry(name).or_insert(settings);
        }
        config.warnings.extend(warnings);
        config.model_in_files = Some(layers.settings()?.model.name);
        let variable = sources.model_variable.as_deref().filter(|name| !name.is_empty());
        let named = [
            (variable, Origin::Variable("LONGHAUL_MODEL")),
            (sources.model_flag.as_deref(), Origin::Flag("--model")),
        ];
        for (name, origin) in named {
            if let Some(name) = name {
                layers.put(Layer::from_text_value("model.name", name, origin));
            }
        }
        config.with_layers(layers)
    }

    /// The files that a config may come from, the nearest last. Of the project files, only those up to the first
    /// readable one.
    pub fn files(home: &Path, sources: &Sources) -> Result<Vec<ConfigFile>> {
        let base = sources.base_file(home);
        let mut files = Vec::new();
        for path in project::candidate_paths(sources)? {
            if project::is_same_file(&path, &base) {
                break;
            }
            let read = files::read_project_file(&path, project::file_place(&path, sources));
            let (exists, is_last) = (!matches!(read, Ok(None)), matches!(read, Ok(Some(_))));
            let skipped = match read {
                Ok(text) => text
                    .and_then(|text| project::parse_project_layer(&path, &text).err())
                    .map(|error| error.to_string()),
                Err(reason) => Some(reason),
            };
            files.push(ConfigFile { path, exists, is_project: true, skipped });
            if is_last {
                break;
            }
        }
        files.push(ConfigFile { exists: base.exists(), path: base, is_project: false, skipped: None });
        files.reverse();
        Ok(files)
    }

    fn with_layers(self, layers: Layers<'_, Settings>) -> Result<Self> {
        let settings = layers.settings()?;
        check_schedules(&settings.schedule, &layers.origins)?;
        Ok(Self { settings, origins: layers.origins, ..self })
    }

    /// Sets the work folder of new sessions.
    #[must_use]
    pub fn with_work_dir(self, folder: &Path) -> Self {
        Self { work_dir: folder.to_owned(), ..self }
    }

    /// Every key with its value and its source, in the order of the documentation, without secrets.
    pub fn keys(&self) -> Vec<ResolvedSetting> {
        list_settings(&self.settings, &self.origins)
    }

    /// The source of a key, as part of a sentence: `model.base_url in /home/me/.longhaul/config.toml:3`, `--model`.
    pub fn set_by(&self, key: &str) -> String {
        self.origins.set_by(key)
    }

    /// The user's instructions to the agent: the text of `agent.instructions_file` if it is set, otherwise
    /// `agent.instructions`.
    pub(crate) fn instructions(&self) -> Result<String> {
        let AgentSettings { instructions, instructions_file, .. } = &self.settings.agent;
        let Some(file) = instructions_file else { return Ok(instructions.clone()) };
        let path = self.home.join(file);
        let missing =
            || config_error(&path.printable().to_string(), "no such file (set by agent.instructions_file)");
        files::read_user_file(&path)?.ok_or_else(missing)
    }

    /// A warning if the work folder is, or contains, the user's home folder.
    pub fn exposed_home(&self) -> Option<String> {
        let scope = crate::worker::toolset::tool_scope(self, &self.work_dir);
        Some(crate::worker::toolset::exposed_home_warning(scope.work_dir(), scope.exposed_home()?))
    }

    /// The files that the tools of a session in this folder may reach.
    pub fn tool_scope(&self, work_dir: &Path) -> longhaul_tools::Scope {
        crate::worker::toolset::tool_scope(self, work_dir)
    }

    /// Whether there are MCP servers: the user's, or those of a project's trusted file.
    pub fn has_servers(&self) -> bool {
        !self.settings.mcp.servers.is_empty() || !self.project_servers.is_empty()
    }

    /// Whether there is an MCP server of this name.
    pub fn has_server(&self, name: &str) -> bool {
        self.settings.mcp.servers.contains_key(name) || self.project_servers.contains_key(name)
    }

    /// The message that the project adds instructions.
    pub fn announcement(&self) -> Option<String> {
        let added = self.project_instructions.as_ref()?;
        Some(format!("the instructions in {} are added to yours", added.file.printable()))
    }

    /// Whose memory a session with this key has that works in this folder, which is canonical, or in none.
    pub fn memory_scope(&self, key: &str, work_dir: Option<&Path>) -> String {
        let kind = match self.settings.memory.scope {
            MemoryScope::Agent => ScopeKind::Agent,
            MemoryScope::Project => ScopeKind::Project,
            MemoryScope::Person => ScopeKind::Person,
        };
        scope_of(kind, &self.settings.agent.name, key, work_dir)
    }

    /// Where the pages of a scope are mirrored.
    pub fn mirror_of(&self, scope: &str) -> PathBuf {
        self.home.join("memory").join(scope)
    }
}

/// The sections `[journal]` and `[node]` of the user's config file. A file that doesn't have the word can't configure it, and is not read
/// further: a mistake elsewhere in it must not keep the user from their sessions.
pub(crate) fn journal_settings(
    home: &Path,
    sources: &Sources,
) -> Result<Option<(JournalSettings, NodeSettings)>> {
    let text = files::read_user_file(&sources.base_file(home))?;
    if !text.is_some_and(|text| text.contains("journal")) {
        return Ok(None);
    }
    let Some(layer) = base_layer(home, sources)? else { return Ok(None) };
    let mut layers = default_layers();
    layers.put(layer);
    let settings = layers.settings()?;
    Ok(Some((settings.journal, settings.node)))
}

/// The lowest layer: the home's own file, which may be missing, or the one that `--config` names instead.
fn base_layer(home: &Path, sources: &Sources) -> Result<Option<Layer>> {
    let path = sources.base_file(home);
    let name = path.printable().to_string();
    let text = match files::read_user_file(&path)? {
        Some(text) => text,
        None if sources.config_file.is_none() => return Ok(None),
        None => return Err(config_error(&name, "no such file")),
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    resolve_file_paths(parse_layer(&text, &name)?, folder).map(Some)
}

fn config_error(origin: &str, reason: &(impl ToString + ?Sized)) -> Error {
    ConfigError::new(origin, reason).into()
}

impl From<ConfigError> for Error {
    fn from(ConfigError { origin, reason }: ConfigError) -> Self {
        Self::Config { origin, reason }
    }
}

/// Checks the schedules of the config: each can run, and no two have the same name.
fn check_schedules(schedules: &[ScheduleSpec], origins: &Origins) -> Result<()> {
    let mut names = BTreeSet::new();
    for spec in schedules {
        let wrong = |reason: String| Err(config_error(&origins.source("schedule"), &reason));
        if let Err(reason) = Timing::parse(&spec.name, spec, At(0)) {
            return wrong(format!("schedule {:?}: {reason}", spec.name));
        }
        if !names.insert(&spec.name) {
            return wrong(format!(
                "two schedules have the name {:?}; choose another for one of them",
                spec.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "docs_tests.rs"]
mod docs;
#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
