//! What the agent shows and asks: the updates of a session, tool calls, permission requests.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::reply::ConfigOption;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum SessionUpdate {
    UserMessageChunk(MessageChunk),
    AgentMessageChunk(MessageChunk),
    AgentThoughtChunk(MessageChunk),
    ToolCall(ToolCall),
    ToolCallUpdate(ToolCall),
    Plan {
        entries: Vec<PlanEntry>,
    },
    AvailableCommandsUpdate {
        available_commands: Vec<Value>,
    },
    CurrentModeUpdate {
        current_mode_id: &'static str,
    },
    ConfigOptionUpdate {
        config_options: Vec<ConfigOption>,
    },
    SessionInfoUpdate {
        updated_at: String,
        #[serde(rename = "_meta")]
        meta: Map<String, Value>,
    },
    UsageUpdate {
        /// Tokens in the context.
        used: u64,
        /// Tokens that fit into it.
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<Value>,
    },
    Notice {
        severity: &'static str,
        title: String,
    },
    CompactionUpdate {
        compaction_id: String,
        status: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessageChunk {
    pub(crate) content: ContentBlock,
    pub(crate) message_id: String,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub(crate) meta: Option<Map<String, Value>>,
}

impl MessageChunk {
    pub(crate) fn text(message_id: String, text: impl Into<String>) -> Self {
        Self { content: ContentBlock::Text { text: text.into() }, message_id, meta: None }
    }

    /// A text of the runtime, not of the model: `_meta` names its kind.
    pub(crate) fn remark(message_id: String, text: impl Into<String>, kind: &str) -> Self {
        Self { meta: Some(meta(json!({"remark": kind}))), ..Self::text(message_id, text) }
    }
}

/// Fields of ours in `_meta`, under the program's name.
pub(crate) fn meta(fields: Value) -> Map<String, Value> {
    Map::from_iter([("longhaul".to_owned(), fields)])
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum ContentBlock {
    Text { text: String },
    Image { data: String, mime_type: String },
}

/// A tool call, or what changed of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolCall {
    pub(crate) tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<ToolKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<ToolStatus>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<ToolContent>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) locations: Vec<Location>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw_input: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum ToolContent {
    Content {
        content: ContentBlock,
    },
    /// A part of a file, before and after.
    Diff {
        path: String,
        old_text: Option<String>,
        new_text: String,
    },
}

impl ToolContent {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Content { content: ContentBlock::Text { text: text.into() } }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Location {
    /// Absolute.
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct PlanEntry {
    pub(crate) content: String,
    pub(crate) priority: &'static str,
    pub(crate) status: &'static str,
}

/// An answer that the editor offers to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PermissionOption {
    pub(crate) option_id: String,
    pub(crate) name: String,
    pub(crate) kind: &'static str,
}
