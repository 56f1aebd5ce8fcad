use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::none_if_empty;

/// When a long conversation is made shorter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextSettings {
    /// The share of the usable window from which on the context is made smaller before a turn; 0: it is not looked at then.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub compact_at: f64,
    /// In tokens, in place of the share; 0: it is not looked at.
    pub compact_at_tokens: Option<u64>,
    /// The same within a turn, before every request.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub compact_now_at: f64,
    /// In tokens, in place of the share; 0: it is not looked at.
    pub compact_now_at_tokens: Option<u64>,
    /// The same when nobody has had to do with the session for a while, so that the next reply need not wait.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub compact_idle_at: f64,
    /// In tokens, in place of the share; 0: it is not looked at.
    pub compact_idle_at_tokens: Option<u64>,
    /// How it is made smaller.
    pub summary: Summary,
    /// How many tokens of the newest exchanges are kept as they are; at most a tenth of the usable window.
    pub keep_tokens: u64,
    /// The model that writes the summary; without it, the session's own.
    #[serde(deserialize_with = "none_if_empty")]
    pub summary_model: Option<String>,
}

impl Default for ContextSettings {
    fn default() -> Self {
        Self {
            compact_at: 0.85,
            compact_at_tokens: None,
            compact_now_at: 0.92,
            compact_now_at_tokens: None,
            compact_idle_at: 0.7,
            compact_idle_at_tokens: None,
            summary: Summary::Model,
            keep_tokens: 8_000,
            summary_model: None,
        }
    }
}

/// How a context is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Summary {
    /// A model writes a summary.
    Model,
    /// What is old is dropped by rule.
    Off,
}

/// What is remembered beyond a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySettings {
    /// From how many new tokens on a session is gone through for memory; it also is when it falls idle. 0: never.
    pub extract_at_tokens: u64,
    /// From how many new items on the pages of memory are put in order; 0: never.
    pub consolidate_at_items: u64,
    /// Every how many seconds it is looked whether there is something to do.
    #[schemars(range(min = 1))]
    pub check_interval_s: u64,
    /// Who shares it.
    pub scope: MemoryScope,
    /// The model that is asked, for example a cheaper one; without it, the session's own.
    #[serde(deserialize_with = "none_if_empty")]
    pub model: Option<String>,
    /// With fewer new tokens than this, an idle session waits for more before it is gone through; 0: anything new is worth a call.
    pub extract_min_tokens: u64,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            extract_at_tokens: 8_000,
            consolidate_at_items: 20,
            check_interval_s: 30,
            scope: MemoryScope::Project,
            model: None,
            extract_min_tokens: 500,
        }
    }
}

/// Who shares a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    /// All sessions of the agent.
    Agent,
    /// All sessions of a work folder.
    Project,
    /// One person's session.
    Person,
}
