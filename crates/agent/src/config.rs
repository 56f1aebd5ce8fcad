//! What a runtime is told: where it lives, what the agent is, what it may do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use longhaul_keeper::Launcher;
use longhaul_tools::ScopeConfig;
use serde::Deserialize;

use crate::{Error, Result};

/// What a runtime is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// The folder that everything lives in.
    pub home: PathBuf,
    /// The folder that new sessions work in.
    pub work_dir: PathBuf,
    /// What the files say.
    pub settings: Settings,
    /// How keepers are started; by default as this program, which must call `keeper::main_if_asked` first.
    pub launcher: Option<Launcher>,
    /// How long a tool other than a command may take.
    pub tool_time: Duration,
    /// How long a session that has nothing to do stays in memory.
    pub rest_time: Duration,
}

/// Keys that are settled, and that this version does not use yet: they are no mistake. Without keys, the whole section.
const LATER: &[(&str, &[&str])] = &[
    ("retry", &[]),
    ("context", &[]),
    ("memory", &[]),
    ("approval", &[]),
    ("sandbox", &[]),
    ("secrets", &[]),
    ("sessions", &[]),
    ("journal", &[]),
    ("exec", &["timeout_s", "max_tasks", "wake"]),
    ("limits", &["tokens_per_turn", "cost_per_turn", "seconds_per_turn", "cost_per_day"]),
    ("server", &["listen"]),
    (
        "model",
        &[
            "base_url",
            "protocol",
            "tools",
            "connect_timeout_s",
            "first_byte_timeout_s",
            "silence_timeout_s",
            "max_output_tokens",
            "fallback",
        ],
    ),
];

/// How long a tool other than a command may take, if nobody says otherwise.
const TOOL_TIME: Duration = Duration::from_secs(120);
/// How long a session that has nothing to do stays in memory, if nobody says otherwise.
const REST_TIME: Duration = Duration::from_secs(10);

/// What `config.toml` says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What the agent is.
    pub agent: AgentSettings,
    /// What answers.
    pub model: ModelSettings,
    /// How commands run.
    pub exec: ExecSettings,
    /// Which files may be read and written.
    pub scope: ScopeConfig,
    /// What a turn may cost.
    pub limits: LimitSettings,
    /// How the server is reached; commands don't see the variable that holds its token.
    pub server: ServerSettings,
}

/// What the agent is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AgentSettings {
    /// What it is called.
    pub name: String,
    /// What it is told to be.
    pub instructions: String,
    /// A file with that, in its place.
    pub instructions_file: Option<PathBuf>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        let instructions =
            "Do what the user asks, with the tools that you have, and say briefly what you did.";
        Self { name: "longhaul".to_owned(), instructions: instructions.to_owned(), instructions_file: None }
    }
}

/// What answers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// As `provider/model`.
    pub name: String,
    /// The variable that holds the key; commands don't see it.
    pub api_key_env: Option<String>,
    /// How many tokens a context may have.
    pub context_window: Option<u64>,
}

/// How commands run.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ExecSettings {
    /// How much output of a command is kept.
    pub output_cap_bytes: u64,
}

impl Default for ExecSettings {
    fn default() -> Self {
        Self { output_cap_bytes: 64 << 20 }
    }
}

/// What a turn may cost.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Steps; 0 for no limit.
    pub steps: u64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self { steps: 200 }
    }
}

/// How the server is reached.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    /// The variable that holds its token.
    pub token_env: Option<String>,
}

impl Config {
    /// A runtime in this home, with everything as it is by default.
    pub fn at(home: impl Into<PathBuf>) -> Self {
        let work_dir = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        Self {
            home: home.into(),
            work_dir,
            settings: Settings::default(),
            launcher: None,
            tool_time: TOOL_TIME,
            rest_time: REST_TIME,
        }
    }

    /// A runtime in the usual home (`LONGHAUL_HOME`, else `~/.longhaul`), as this text of `config.toml` says.
    pub fn from_toml(text: &str) -> Result<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = variable("LONGHAUL_HOME").or_else(|| Some(variable("HOME")?.join(".longhaul")));
        let missing = || bad("the environment", "neither LONGHAUL_HOME nor HOME is set: use Config::at");
        Self::at(home.ok_or_else(missing)?).with_toml(text, "the config")
    }

    /// A runtime in this home, as its own `config.toml` says, if there is one.
    pub fn of_home(home: impl Into<PathBuf>) -> Result<Self> {
        let config = Self::at(home);
        let path = config.home.join("config.toml");
        match std::fs::read_to_string(&path) {
            Ok(text) => config.with_toml(&text, &path.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(config),
            Err(error) => Err(bad(&path.display().to_string(), &error)),
        }
    }

    fn with_toml(self, text: &str, origin: &str) -> Result<Self> {
        let said = |error: toml::de::Error| bad(origin, error.to_string().trim_end());
        let table = without_later_keys(text.parse().map_err(said)?);
        let settings: Settings = table.try_into().map_err(said)?;
        let ScopeConfig { allow, deny } = &settings.scope;
        let targets = allow.iter().map(|rule| &rule.target).chain(deny.iter().map(|rule| &rule.target));
        // One that matched nothing would leave open what it was meant to close.
        if let Some(pattern) = targets.into_iter().find(|target| target.contains(['*', '?', '['])) {
            return Err(bad(
                origin,
                &format!("scope: {pattern:?} is a pattern; a target is a folder or a file"),
            ));
        }
        Ok(Self { settings, ..self })
    }

    /// The same, with another folder for new sessions.
    #[must_use]
    pub fn with_work_dir(self, folder: &Path) -> Self {
        Self { work_dir: folder.to_owned(), ..self }
    }

    /// What the agent is told to be: what its file says, if it has one.
    pub(crate) fn instructions(&self) -> Result<String> {
        let AgentSettings { instructions, instructions_file, .. } = &self.settings.agent;
        let Some(file) = instructions_file else { return Ok(instructions.clone()) };
        let path = self.home.join(file);
        std::fs::read_to_string(&path).map_err(|error| bad(&path.display().to_string(), &error))
    }
}

fn without_later_keys(mut table: toml::Table) -> toml::Table {
    for (section, keys) in LATER {
        match table.get_mut(*section).and_then(toml::Value::as_table_mut) {
            Some(_) if keys.is_empty() => drop(table.remove(*section)),
            Some(known) => known.retain(|key, _| !keys.contains(&key)),
            None => {}
        }
    }
    table
}

fn bad(origin: &str, reason: &(impl ToString + ?Sized)) -> Error {
    Error::Config { origin: origin.to_owned(), reason: reason.to_string() }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
