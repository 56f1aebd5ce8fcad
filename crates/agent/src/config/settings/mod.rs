//! The settings. A section is a struct, a key is a field, and its comment is the description in the schema and in
//! `docs/config.md`. The order of the fields is the order in which they are shown.

mod context;
mod model;
mod permission;

use std::path::PathBuf;

pub use context::{ContextSettings, MemoryScope, MemorySettings, Summary};
use longhaul_tools::ScopeConfig;
pub use model::{ModelSettings, RetrySettings};
pub use permission::{
    Approval, ApprovalRule, ApprovalSettings, SandboxMode, SandboxNetwork, SandboxSettings, WithoutSandbox,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// What `config.toml`, `longhaul.toml`, the environment and the flags come to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// What the agent is.
    pub agent: AgentSettings,
    /// What answers.
    pub model: ModelSettings,
    /// What is done about calls of the model that fail.
    pub retry: RetrySettings,
    /// When a long conversation is made shorter.
    pub context: ContextSettings,
    /// What is remembered beyond a session.
    pub memory: MemorySettings,
    /// How commands run.
    pub exec: ExecSettings,
    /// Which files may be read and written.
    #[schemars(schema_with = "permission::scope_schema")]
    pub scope: ScopeConfig,
    /// What is done only after asking.
    pub approval: ApprovalSettings,
    /// How commands are kept inside the scope.
    pub sandbox: SandboxSettings,
    /// What nobody should see.
    pub secrets: SecretSettings,
    /// How long sessions are kept.
    pub sessions: SessionSettings,
    /// What a turn may cost.
    pub limits: LimitSettings,
    /// How the terminal behaves.
    pub terminal: TerminalSettings,
    /// Where everything is kept.
    pub journal: JournalSettings,
    /// How the server is reached.
    pub server: ServerSettings,
}

/// Sections and keys that are final but that this version does not use yet. They are checked like all others.
const NOT_USED_YET: &[&str] = &["journal", "server.listen"];

/// Whether this version uses `section.key`.
pub(crate) fn is_used(key: &str) -> bool {
    let section = key.split('.').next().unwrap_or_default();
    !NOT_USED_YET.iter().any(|unused| *unused == key || *unused == section)
}

/// What the agent is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentSettings {
    /// What it is called.
    pub name: String,
    /// What it is told in addition to the system prompt. The AGENTS.md of the home and of the project are added after it.
    pub instructions: String,
    /// A file with that, in its place; from the folder of the config file on.
    #[serde(deserialize_with = "none_if_empty")]
    pub instructions_file: Option<PathBuf>,
}

impl Default for AgentSettings {
    fn default() -> Self {
        Self { name: "longhaul".to_owned(), instructions: String::new(), instructions_file: None }
    }
}

/// How commands run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExecSettings {
    /// How many seconds a command may take before it goes on in the background.
    #[schemars(range(min = 1))]
    pub timeout_s: u64,
    /// How many commands of a session may run at once.
    #[schemars(range(min = 1))]
    pub max_tasks: u64,
    /// When the end of a background command wakes the session.
    pub wake: Wake,
    /// How many bytes of a command's output are kept: so much of its head and its tail.
    #[schemars(range(min = 1))]
    pub output_cap_bytes: u64,
}

impl Default for ExecSettings {
    fn default() -> Self {
        Self { timeout_s: 30, max_tasks: 16, wake: Wake::Always, output_cap_bytes: 64 << 20 }
    }
}

/// When the end of a background command wakes its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// However it ended.
    Always,
    /// If it failed.
    OnFailure,
    /// It is told with the next turn.
    Never,
}

/// What nobody should see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretSettings {
    /// Regular expressions; what they match is redacted everywhere.
    pub patterns: Vec<String>,
}

/// How long sessions are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// How many are kept; 0 for all.
    pub keep: u64,
    /// How many days one is kept after its last turn; 0 for ever.
    pub max_age_days: u64,
    /// How many bytes all of them may take; 0 for no limit.
    pub max_bytes: u64,
}

/// What a turn may cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Steps of a turn; 0 for no limit.
    pub steps: u64,
    /// Tokens of a turn; 0 for no limit.
    pub tokens_per_turn: u64,
    /// Dollars of a turn; 0 for no limit.
    #[schemars(range(min = 0.0))]
    pub cost_per_turn: f64,
    /// Seconds of a turn; 0 for no limit.
    pub seconds_per_turn: u64,
    /// What all sessions of the home together may cost in a day (UTC), in US dollars; 0 for no limit.
    #[schemars(range(min = 0.0))]
    pub cost_per_day: f64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self { steps: 200, tokens_per_turn: 0, cost_per_turn: 0.0, seconds_per_turn: 0, cost_per_day: 0.0 }
    }
}

/// Where everything is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JournalSettings {
    /// A database, as `postgres://…`; without it, the home's own `journal.db`.
    #[serde(deserialize_with = "none_if_empty")]
    pub url: Option<String>,
}

/// How the server is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    /// The address and port that it listens on.
    pub listen: String,
    /// The name of the variable that holds its token; commands don't see that variable.
    #[serde(deserialize_with = "none_if_empty")]
    pub token_env: Option<String>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self { listen: "127.0.0.1:7171".to_owned(), token_env: Some("LONGHAUL_TOKEN".to_owned()) }
    }
}

/// How the terminal behaves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TerminalSettings {
    /// How the end of a turn and a question are announced while the terminal is not in focus.
    pub notify: Notify,
}

/// How a user who looks elsewhere is told that something happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Notify {
    /// By a notification where the terminal is known to show them, else by the bell.
    #[default]
    Auto,
    /// By the bell.
    Bell,
    /// By a notification of the terminal (OSC 9).
    Osc9,
    /// Not at all.
    Off,
}

/// An empty text means "none", so that a key can be reset without removing its line.
fn none_if_empty<'de, D: Deserializer<'de>, T: From<String>>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    Ok(text.filter(|text| !text.is_empty()).map(T::from))
}
