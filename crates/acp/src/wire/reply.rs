//! What the agent answers.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// The answer to `initialize`: what this agent can do, and that it needs no sign-in.
pub(crate) fn initialize_reply() -> Value {
    json!({
        "protocolVersion": 1,
        "agentInfo": {"name": "longhaul", "title": "Longhaul", "version": env!("CARGO_PKG_VERSION")},
        "agentCapabilities": {
            "loadSession": true,
            "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
            "mcpCapabilities": {"http": true, "sse": false},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
        },
        "authMethods": [],
    })
}

/// The answer to `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenedSession {
    /// Only of a new session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_id: Option<String>,
    pub(crate) modes: ModeState,
    pub(crate) config_options: Vec<ConfigOption>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModeState {
    pub(crate) current_mode_id: &'static str,
    pub(crate) available_modes: Vec<Mode>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Mode {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
}

/// A setting of a session that the editor shows as a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigOption {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) category: &'static str,
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) current_value: String,
    pub(crate) options: Vec<ConfigChoice>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ConfigChoice {
    pub(crate) value: String,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionList {
    pub(crate) sessions: Vec<ListedSession>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_cursor: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListedSession {
    pub(crate) session_id: String,
    pub(crate) cwd: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated_at: Option<String>,
}

/// Why a prompt's turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopReason {
    EndTurn,
    MaxTokens,
    MaxTurnRequests,
    Cancelled,
}

impl StopReason {
    /// The answer to `session/prompt`.
    pub(crate) fn reply(self) -> Value {
        json!({"stopReason": self})
    }
}
