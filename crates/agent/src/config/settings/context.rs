use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::none_if_empty;

/// When and how the context is compacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ContextSettings {
    /// Compact before a turn once the context fills this share of the usable window; 0 turns this off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub compact_at: f64,
    /// The same in tokens, instead of the share; 0 turns it off.
    pub compact_at_tokens: Option<u64>,
    /// Compact within a turn, before any request, at this share; 0 turns this off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub compact_now_at: f64,
    /// The same in tokens, instead of the share; 0 turns it off.
    pub compact_now_at_tokens: Option<u64>,
    /// Compact at this share while the session is idle, so that the next turn need not wait; 0 turns this off.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub compact_idle_at: f64,
    /// The same in tokens, instead of the share; 0 turns it off.
    pub compact_idle_at_tokens: Option<u64>,
    /// How to compact: `model` writes a summary, `off` drops old turns.
    pub summary: Summary,
    /// Tokens of the newest turns to keep as they are; at most a tenth of the usable window.
    pub keep_tokens: u64,
    /// Model that writes the summary; empty: the session's model.
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

/// How a context is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Summary {
    /// A model writes a summary.
    Model,
    /// Old turns are dropped by rule.
    Off,
}

/// What is remembered across sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MemorySettings {
    /// Extract what is worth remembering after this many new tokens, and when a session falls idle; 0 turns this off.
    pub extract_at_tokens: u64,
    /// Update the memory pages after this many new items; 0 turns this off.
    pub consolidate_at_items: u64,
    /// Seconds between checks for memory work.
    #[schemars(range(min = 1))]
    pub check_interval_s: u64,
    /// Which sessions share a memory: `agent` (all), `project` (of one work folder) or `person` (one session).
    pub scope: MemoryScope,
    /// The model that is asked, for example a cheaper one; without it, the session's own.
    #[serde(deserialize_with = "none_if_empty")]
    pub model: Option<String>,
    /// An embedding model, as `provider/model`, with which `recall` also finds what was said in other words; without it, words alone.
    #[serde(deserialize_with = "none_if_empty")]
    pub embedding_model: Option<String>,
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
            embedding_model: None,
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
