//! What the editor sends. Unknown members are ignored, as the protocol demands.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::Value;

use super::ProtocolVersion;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeParams {
    /// The newest version that the editor speaks.
    protocol_version: u64,
    /// Of an editor that speaks version 1.
    #[serde(default)]
    client_capabilities: Value,
    /// Of one that speaks version 2.
    #[serde(default)]
    capabilities: Value,
}

/// What the editor can show or ask beyond the minimum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientFeatures {
    pub(crate) version: ProtocolVersion,
    /// `notice` updates.
    pub(crate) notices: bool,
    /// `compaction_update` updates.
    pub(crate) compaction: bool,
    /// `elicitation/create` with a form.
    pub(crate) forms: bool,
}

impl ClientFeatures {
    pub(crate) fn of(params: &InitializeParams) -> Self {
        let has =
            |capabilities: &Value, pointer: &str| capabilities.pointer(pointer).is_some_and(Value::is_object);
        let InitializeParams { protocol_version, client_capabilities, capabilities } = params;
        match protocol_version {
            // Version 2 has these updates for every editor.
            2.. => Self {
                version: ProtocolVersion::V2,
                notices: true,
                compaction: true,
                forms: has(capabilities, "/elicitation/form"),
            },
            _ => Self {
                version: ProtocolVersion::V1,
                notices: has(client_capabilities, "/session/notices"),
                compaction: has(client_capabilities, "/session/compaction"),
                forms: has(client_capabilities, "/elicitation/form"),
            },
        }
    }
}

/// `session/new`, `session/load` and `session/resume`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OpenSessionParams {
    #[serde(default)]
    pub(crate) session_id: Option<String>,
    pub(crate) cwd: PathBuf,
    /// Only in version 2: from where the past is shown. Without it, the editor has the past.
    #[serde(default)]
    pub(crate) replay_from: Option<Value>,
    #[serde(default)]
    mcp_servers: Option<Vec<Value>>,
    #[serde(default)]
    additional_directories: Option<Vec<Value>>,
}

impl OpenSessionParams {
    pub(crate) fn mcp_servers(&self) -> &[Value] {
        self.mcp_servers.as_deref().unwrap_or_default()
    }

    /// Parts of the request that have no effect, for the editor's log.
    pub(crate) fn ignored(&self) -> Vec<String> {
        let mut ignored = Vec::new();
        if self.additional_directories.iter().flatten().next().is_some() {
            ignored.push(
                "additionalDirectories is ignored; allow further folders with [[scope.allow]] in the config"
                    .to_owned(),
            );
        }
        ignored
    }
}

/// A request that only names a session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionParams {
    pub(crate) session_id: String,
}

#[derive(Deserialize)]
pub(crate) struct ListSessionsParams {
    #[serde(default)]
    pub(crate) cwd: Option<PathBuf>,
    #[serde(default)]
    pub(crate) cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PromptParams {
    pub(crate) session_id: String,
    pub(crate) prompt: Vec<PromptBlock>,
}

/// A part of a prompt.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum PromptBlock {
    Text { text: String },
    Image { data: String, mime_type: String },
    Audio {},
    ResourceLink { uri: String, name: String },
    Resource { resource: EmbeddedResource },
}

/// A file or another text that the editor sends along.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EmbeddedResource {
    pub(crate) uri: String,
    #[serde(default)]
    pub(crate) mime_type: Option<String>,
    #[serde(default)]
    pub(crate) text: Option<String>,
    /// Base64.
    #[serde(default)]
    pub(crate) blob: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetModeParams {
    pub(crate) session_id: String,
    pub(crate) mode_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SetConfigOptionParams {
    pub(crate) session_id: String,
    pub(crate) config_id: String,
    pub(crate) value: Value,
}

/// `$/cancel_request`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CancelRequestParams {
    pub(crate) request_id: Value,
}

/// The editor's answer to `session/request_permission`.
#[derive(Deserialize)]
pub(crate) struct PermissionReply {
    pub(crate) outcome: PermissionOutcome,
}

#[derive(Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum PermissionOutcome {
    Cancelled,
    Selected { option_id: String },
}

/// The editor's answer to `elicitation/create`.
#[derive(Deserialize)]
pub(crate) struct FormReply {
    pub(crate) action: String,
    #[serde(default)]
    pub(crate) content: Value,
}
