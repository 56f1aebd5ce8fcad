//! The settings. A section is a struct, a key is a field, and its comment is the description in the schema and in
//! `docs/config.md`. The order of the fields is the order in which they are shown.

mod context;
mod model;
mod node;
mod permission;
mod server;

use std::path::PathBuf;

pub use context::{ContextSettings, MemoryScope, MemorySettings, Summary};
pub use longhaul_mcp::McpSettings;
use longhaul_protocol::ScheduleSpec;
use longhaul_tools::ScopeConfig;
pub use model::{ModelSettings, RetrySettings};
pub use node::NodeSettings;
pub use permission::{
    Approval, ApprovalRule, ApprovalSettings, SandboxMode, SandboxNetwork, SandboxSettings, WithoutSandbox,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
pub use server::ServerSettings;

/// The settings from `config.toml`, `longhaul.toml`, the environment and the flags.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The agent's name and instructions.
    pub agent: AgentSettings,
    /// The model and its server.
    pub model: ModelSettings,
    /// Retries of failed model requests.
    pub retry: RetrySettings,
    /// When and how the context is compacted.
    pub context: ContextSettings,
    /// What is remembered across sessions.
    pub memory: MemorySettings,
    /// How commands run.
    pub exec: ExecSettings,
    /// Which files the agent may read and write.
    #[schemars(schema_with = "permission::scope_schema")]
    pub scope: ScopeConfig,
    /// Which tool calls need approval.
    pub approval: ApprovalSettings,
    /// How commands are confined to the scope.
    pub sandbox: SandboxSettings,
    /// Secrets to redact.
    pub secrets: SecretSettings,
    /// Where skills are found.
    pub skills: SkillSettings,
    /// How long sessions are kept.
    pub sessions: SessionSettings,
    /// Limits on turns and spending.
    pub limits: LimitSettings,
    /// Limits on subagents.
    pub agents: AgentsSettings,
    /// How the terminal behaves.
    pub terminal: TerminalSettings,
    /// Where the journal is stored.
    pub journal: JournalSettings,
    /// This machine among several that share a journal.
    pub node: NodeSettings,
    /// The HTTP server.
    pub server: ServerSettings,
    /// Schedules, as `[[schedule]]`: what the agent does by itself, and when.
    pub schedule: Vec<ScheduleSpec>,
    /// How schedules are run.
    pub schedules: SchedulesSettings,
    /// Web pages and web search.
    pub web: WebSettings,
    /// MCP servers, whose tools the agent may use.
    pub mcp: McpSettings,
}

/// Sections and keys that are final but that this version does not use yet. They are checked like all others.
const NOT_USED_YET: &[&str] = &[];

/// Whether this version uses `section.key`.
pub(crate) fn is_used(key: &str) -> bool {
    let section = key.split('.').next().unwrap_or_default();
    !NOT_USED_YET.iter().any(|unused| *unused == key || *unused == section)
}

/// The agent's name and instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentSettings {
    /// The agent's name.
    pub name: String,
    /// Instructions for the agent. Those of a project's longhaul.toml and AGENTS.md are added after them.
    pub instructions: String,
    /// File with the instructions, relative to the config file; replaces `instructions`.
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
    /// Seconds before a running command moves to the background.
    #[schemars(range(min = 1))]
    pub timeout_s: u64,
    /// Commands that one session may run at the same time.
    #[schemars(range(min = 1))]
    pub max_tasks: u64,
    /// When the end of a background task wakes the agent: `always`, `on_failure` or `never`.
    pub wake: Wake,
    /// Bytes of a command's output to keep; from a longer one, the start and the end are kept.
    #[schemars(range(min = 1))]
    pub output_cap_bytes: u64,
}

impl Default for ExecSettings {
    fn default() -> Self {
        Self { timeout_s: 30, max_tasks: 16, wake: Wake::Always, output_cap_bytes: 64 << 20 }
    }
}

/// When the end of a background task wakes its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Wake {
    /// However it ended.
    Always,
    /// If it failed.
    OnFailure,
    /// The agent hears of it in the next turn.
    Never,
}

/// Secrets to redact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SecretSettings {
    /// Regular expressions; matches are redacted everywhere.
    pub patterns: Vec<String>,
}

/// Where skills are found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SkillSettings {
    /// Folders with skills, beside `.agents/skills` and `.claude/skills` of the project and of your home folder, and `skills` of
    /// Longhaul's home. Relative to the config file.
    pub paths: Vec<PathBuf>,
}

/// How long sessions are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SessionSettings {
    /// Number of sessions to keep, without subagents and the runs of schedules; 0 for all.
    pub keep: u64,
    /// Number of sessions to keep that each schedule made for its runs; 0 for all.
    pub keep_runs: u64,
    /// Days to keep a session after its last turn; 0 for ever.
    pub max_age_days: u64,
    /// Bytes that all sessions together may take; 0 for no limit.
    pub max_bytes: u64,
}

/// Limits on turns and spending.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitSettings {
    /// Steps per turn; 0 for no limit.
    pub steps: u64,
    /// Tokens per turn; 0 for no limit.
    pub tokens_per_turn: u64,
    /// US dollars per turn; 0 for no limit.
    #[schemars(range(min = 0.0))]
    pub cost_per_turn: f64,
    /// Seconds per turn; 0 for no limit.
    pub seconds_per_turn: u64,
    /// US dollars per day (UTC), for all sessions together; 0 for no limit.
    #[schemars(range(min = 0.0))]
    pub cost_per_day: f64,
    /// US dollars per session; 0 for no limit.
    #[schemars(range(min = 0.0))]
    pub cost_per_session: f64,
    /// US dollars per month (UTC), for all sessions together; 0 for no limit.
    #[schemars(range(min = 0.0))]
    pub cost_per_month: f64,
    /// US dollars in all; 0 for no limit.
    #[schemars(range(min = 0.0))]
    pub cost_total: f64,
    /// Tokens per day (UTC), for models whose price is not known, too; 0 for no limit.
    pub tokens_per_day: u64,
    /// Tokens per month (UTC); 0 for no limit.
    pub tokens_per_month: u64,
    /// Share of any limit at which a question is asked, once; 0 for never.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub soft: f64,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            steps: 200,
            tokens_per_turn: 0,
            cost_per_turn: 0.0,
            seconds_per_turn: 0,
            cost_per_day: 0.0,
            cost_per_session: 0.0,
            cost_per_month: 0.0,
            cost_total: 0.0,
            tokens_per_day: 0,
            tokens_per_month: 0,
            soft: 0.0,
        }
    }
}

/// Limits on subagents. A tree is a session with all subagents below it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AgentsSettings {
    /// Levels of subagents below a session; 0: there are no subagents.
    pub depth: u64,
    /// Subagents of a tree that may run at the same time. A call that is one too many waits.
    #[schemars(range(min = 1))]
    pub at_once: u64,
    /// Subagents that a tree may have in all.
    pub per_tree: u64,
    /// US dollars for a session with all its subagents; 0 for no limit.
    #[schemars(range(min = 0.0))]
    pub cost_per_tree: f64,
}

impl Default for AgentsSettings {
    fn default() -> Self {
        Self { depth: 1, at_once: 8, per_tree: 32, cost_per_tree: 0.0 }
    }
}

/// Where the journal is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JournalSettings {
    /// Database URL, such as `postgres://longhaul@db.example/longhaul`; empty: `journal.db` in the home. The password belongs into
    /// the file of `PGPASSFILE`, or the whole URL into a variable.
    #[serde(deserialize_with = "none_if_empty")]
    pub url: Option<String>,
    /// Environment variable with the URL, instead of `url`.
    #[serde(deserialize_with = "none_if_empty")]
    pub url_env: Option<String>,
}

/// Web pages and web search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WebSettings {
    /// Who is asked for a search: `searxng:URL`, or `brave`, `tavily`, `exa` with `BRAVE_API_KEY`, `TAVILY_API_KEY`, `EXA_API_KEY`;
    /// `provider` for the model's provider, `off` for no search; empty: the provider, if it is Anthropic, OpenAI or Gemini.
    pub search: String,
    /// Private hosts that pages may be fetched from: names, addresses or networks, with a port or without, such as `wiki.lan`,
    /// `127.0.0.1:3000`, `10.0.0.0/8`.
    pub allow: Vec<String>,
    /// Proxy for web pages and searches, such as `http://proxy.lan:3128`; empty: none, whatever the environment says. The proxy resolves
    /// names, so it has to keep private addresses out of reach.
    pub proxy: String,
}

/// How schedules are run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulesSettings {
    /// Runs that start together to make up for an outage.
    #[schemars(range(min = 1))]
    pub at_once: u64,
}

impl Default for SchedulesSettings {
    fn default() -> Self {
        Self { at_once: 4 }
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
