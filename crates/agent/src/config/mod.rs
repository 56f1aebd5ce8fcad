//! What a runtime is told: where it lives, what the agent is, what it may do.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `settings` | every section and key, with its type, its default and its meaning |
//! | `schema`, `check`, `nearest` | the schema of that; whether a file fits it; which key was probably meant |
//! | `layers`, `sources` | files, a variable and a flag, one over the other; what set which value |
//! | `project`, `trust`, `reading` | what the file of a project may set, and which of them may set everything |
//! | `show` | the result, as people read it |

mod check;
mod layers;
mod nearest;
mod project;
mod reading;
mod schema;
mod settings;
mod show;
mod sources;
mod trust;

use std::path::{Path, PathBuf};
use std::time::Duration;

use layers::{Layer, Layers};
use longhaul_keeper::Launcher;
use longhaul_protocol::PrintablePath;
pub use project::{Beyond, ProjectFile, ProjectInstructions};
pub use schema::config_schema;
pub use settings::*;
pub use show::{ShownKey, without_password};
use sources::Origin;
pub use sources::{Origins, Sources};
pub use trust::{Standing, TrustList, TrustedFile};

use crate::{Error, Patience, Result};

/// What a runtime is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder that everything lives in.
    pub home: PathBuf,
    /// The folder that new sessions work in.
    pub work_dir: PathBuf,
    /// What the files say.
    pub settings: Settings,
    /// What set each of them.
    pub origins: Origins,
    /// The file in place of the home's own, if there is one. Nobody in a session may write it: the next run would do what it says.
    pub file: Option<PathBuf>,
    /// What a person should know about them.
    pub warnings: Vec<String>,
    /// What the project's file tells the agent, besides what the user's says.
    pub project_instructions: Option<ProjectInstructions>,
    /// How keepers are started; by default as this program, which must call `keeper::main_if_asked` first.
    pub launcher: Option<Launcher>,
    /// How long a tool other than a command may take.
    pub tool_time: Duration,
    /// How long a session that has nothing to do stays in memory.
    pub rest_time: Duration,
    /// How long a task may be silent after what looks like a question before it is said to wait for input.
    pub stall_time: Duration,
    /// Who is there while something is waited for.
    pub patience: Patience,
    /// The model that the files name, where a flag or a variable may name another: what they say about servers is about this one.
    pub model_in_files: Option<String>,
}

/// How long a tool other than a command may take, if nobody says otherwise.
const TOOL_TIME: Duration = Duration::from_secs(120);
/// How long a session that has nothing to do stays in memory, if nobody says otherwise.
const REST_TIME: Duration = Duration::from_secs(10);
/// How long a task may be silent after what looks like a question, if nobody says otherwise.
const STALL_TIME: Duration = Duration::from_secs(45);

/// A file that config may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where it is, or would be.
    pub path: PathBuf,
    /// Whether it is there.
    pub exists: bool,
    /// Whether it is a project's, which may not set everything.
    pub of_project: bool,
    /// Why it is there and not used.
    pub skipped: Option<String>,
}

impl ConfigFile {
    /// Whether the config comes from it, among others.
    pub fn is_used(&self) -> bool {
        self.exists && self.skipped.is_none()
    }
}

impl Config {
    /// A runtime in this home, with everything as it is by default.
    pub fn at(home: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            work_dir: Sources::default().work_dir(),
            settings: Settings::default(),
            origins: Origins::default(),
            file: None,
            warnings: Vec::new(),
            project_instructions: None,
            launcher: None,
            tool_time: TOOL_TIME,
            rest_time: REST_TIME,
            stall_time: STALL_TIME,
            patience: Patience::default(),
            model_in_files: None,
        }
    }

    /// A runtime in the usual home (`LONGHAUL_HOME`, else `~/.longhaul`), as this text of `config.toml` says.
    pub fn from_toml(text: &str) -> Result<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = variable("LONGHAUL_HOME").or_else(|| Some(variable("HOME")?.join(".longhaul")));
        let missing = || bad("the environment", "neither LONGHAUL_HOME nor HOME is set: use Config::at");
        let mut layers = Layers::default();
        layers.put(Layer::from_toml(text, "the config")?);
        Self::at(home.ok_or_else(missing)?).with_layers(layers)
    }

    /// A runtime in this home, as its own `config.toml` says, if there is one.
    pub fn of_home(home: impl Into<PathBuf>) -> Result<Self> {
        let config = Self::at(home);
        let mut layers = Layers::default();
        if let Some(layer) = base_layer(&config.home, &Sources::default())? {
            layers.put(layer);
        }
        config.with_layers(layers)
    }

    /// A runtime in this home, as everything together says: its `config.toml` or the file in its place, then the project's
    /// `longhaul.toml` as far as it may, then the environment, then the flags. Later wins.
    pub fn load(home: impl Into<PathBuf>, sources: &Sources) -> Result<Self> {
        let mut config = Self::at(home).with_work_dir(&sources.work_dir());
        config.file = sources.config_file.is_some().then(|| sources.base_file(&config.home));
        let mut layers = Layers::default();
        if let Some(layer) = base_layer(&config.home, sources)? {
            layers.put(layer);
        }
        let project = ProjectFile::search(&config.home, sources, &layers.settings()?)?;
        config.warnings = project.skipped;
        match project.file {
            Some(Ok(file)) => {
                let part = file.into_part();
                layers.put_project(part.layer);
                config.project_instructions = part.instructions;
                config.warnings.extend(part.warnings);
            }
            // The project may be anybody's: what is wrong with its file must not keep the user from working.
            Some(Err(error)) => config.warnings.push(format!("{error}; the file is not used")),
            None => {}
        }
        config.model_in_files = Some(layers.settings()?.model.name);
        let variable = sources.model_variable.as_deref().filter(|name| !name.is_empty());
        let named = [
            (variable, Origin::Variable("LONGHAUL_MODEL")),
            (sources.model_flag.as_deref(), Origin::Flag("--model")),
        ];
        for (name, origin) in named {
            if let Some(name) = name {
                layers.put(Layer::of_model(name, origin));
            }
        }
        config.with_layers(layers)
    }

    /// The files that config is looked for in, the nearest last; those of projects up to the first that can be read.
    pub fn files(home: &Path, sources: &Sources) -> Result<Vec<ConfigFile>> {
        let base = sources.base_file(home);
        let mut files = Vec::new();
        for path in project::candidates(sources)? {
            if project::is_same(&path, &base) {
                break;
            }
            let read = reading::project_text(&path);
            let (exists, is_last) = (!matches!(read, Ok(None)), matches!(read, Ok(Some(_))));
            let skipped = match read {
                Ok(text) => {
                    text.and_then(|text| project::layer(&path, &text).err()).map(|error| error.to_string())
                }
                Err(reason) => Some(reason),
            };
            files.push(ConfigFile { path, exists, of_project: true, skipped });
            if is_last {
                break;
            }
        }
        files.push(ConfigFile { exists: base.exists(), path: base, of_project: false, skipped: None });
        files.reverse();
        Ok(files)
    }

    fn with_layers(self, layers: Layers) -> Result<Self> {
        Ok(Self { settings: layers.settings()?, origins: layers.origins, ..self })
    }

    /// The same, with another folder for new sessions.
    #[must_use]
    pub fn with_work_dir(self, folder: &Path) -> Self {
        Self { work_dir: folder.to_owned(), ..self }
    }

    /// Every key with its value and its source, in the order in which people know them. No secret is among them.
    pub fn keys(&self) -> Vec<ShownKey> {
        show::keys(&self.settings, &self.origins)
    }

    /// What set a key, for a sentence: `model.base_url in /home/me/.longhaul/config.toml:3`, `--model`.
    pub fn set_by(&self, key: &str) -> String {
        self.origins.set_by(key)
    }

    /// What the agent is told to be: what its file says, if it has one.
    pub(crate) fn instructions(&self) -> Result<String> {
        let AgentSettings { instructions, instructions_file, .. } = &self.settings.agent;
        let Some(file) = instructions_file else { return Ok(instructions.clone()) };
        let path = self.home.join(file);
        let missing =
            || bad(&path.printable().to_string(), "there is no such file; agent.instructions_file names it");
        reading::users_text(&path)?.ok_or_else(missing)
    }

    /// What the user should know before the agent works in this folder: that it is, or contains, their home folder.
    pub fn exposed_home(&self) -> Option<String> {
        let scope = crate::worker::toolset::scope(self, &self.work_dir);
        Some(crate::worker::toolset::exposed_home_in_words(scope.work_dir(), scope.exposed_home()?))
    }

    /// That the project adds to what the agent is told.
    pub fn announcement(&self) -> Option<String> {
        let added = self.project_instructions.as_ref()?;
        Some(format!("the instructions of {} are added after yours", added.file.printable()))
    }
}

/// What stands below everything else: the home's own file, which may be missing, or the one that was named in its place.
fn base_layer(home: &Path, sources: &Sources) -> Result<Option<Layer>> {
    let path = sources.base_file(home);
    let name = path.printable().to_string();
    let text = match reading::users_text(&path)? {
        Some(text) => text,
        None if sources.config_file.is_none() => return Ok(None),
        None => return Err(bad(&name, "there is no such file")),
    };
    let folder = path.parent().unwrap_or(Path::new("/"));
    Layer::from_toml(&text, &name)?.with_instructions_from(folder).map(Some)
}

fn bad(origin: &str, reason: &(impl ToString + ?Sized)) -> Error {
    Error::Config { origin: origin.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
#[path = "docs_tests.rs"]
mod docs;
#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
