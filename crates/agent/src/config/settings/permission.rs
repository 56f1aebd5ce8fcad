use longhaul_keeper::{Enforcement, Network};
use longhaul_protocol::PermissionMode;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::none_if_empty;

/// Which tool calls need approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ApprovalSettings {
    /// What is done without asking, where no rule matches: `ask` (reads), `auto-edit` (reads and edits), `auto` (everything), `plan` (reads
    /// alone; the rest is refused). All but `auto` ask before a page is fetched from a new host. A session's own mode, set by `--permission`, `/mode` or Shift-Tab, wins.
    #[schemars(schema_with = "mode_schema")]
    pub mode: PermissionMode,
    /// What to do with calls that no rule matches: `auto`, `ask` or `deny`.
    pub default: Approval,
    /// Rules for certain calls, as `[[approval.rule]]`.
    pub rule: Vec<ApprovalRule>,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self { mode: PermissionMode::Auto, default: Approval::Auto, rule: Vec::new() }
    }
}

/// A rule for certain calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRule {
    /// Tool that the rule applies to.
    pub tool: String,
    /// Commands that the rule applies to, such as `git push*`; unset: all calls of the tool.
    #[serde(default, deserialize_with = "none_if_empty", skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Hosts that the rule applies to, such as `*.example.org`, for `web_fetch`; unset: all of them.
    #[serde(default, deserialize_with = "none_if_empty", skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// What to do with them: `auto`, `ask` or `deny`.
    pub action: Approval,
}

/// What to do with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// Run it.
    Auto,
    /// Ask the user first.
    Ask,
    /// Don't run it.
    Deny,
}

/// How commands are confined to the scope.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SandboxSettings {
    /// `off`, `on` (the scope, temporary folders and caches of tools) or `strict` (the scope alone).
    pub mode: SandboxMode,
    /// Whether commands can use the network; `off` leaves them a loopback of their own. Unset: on, or off if `mode` is `strict`.
    #[schemars(schema_with = "network_schema")]
    pub network: Option<SandboxNetwork>,
    /// What to do with commands if this system can't sandbox them: `refuse`, `ask` or `allow`.
    pub unavailable: WithoutSandbox,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self { mode: SandboxMode::On, network: None, unavailable: WithoutSandbox::Ask }
    }
}

impl SandboxSettings {
    /// The network of commands. `None` if they run without a sandbox.
    pub fn network(&self) -> Option<Network> {
        let mode = self.mode.of_tools();
        match (self.mode, self.network) {
            (SandboxMode::Off, _) => None,
            (_, None) => Some(mode.default_network()),
            (_, Some(SandboxNetwork::On)) => Some(Network::Open),
            (_, Some(SandboxNetwork::Off)) => Some(Network::Closed),
        }
    }

    /// Why this system can't enforce these settings for commands. `None` if it can, or if there is nothing to
    /// enforce.
    pub fn unenforceable(&self, enforcement: &Enforcement) -> Option<String> {
        enforcement.missing(self.network()?, self.mode.of_tools().unix_sockets())
    }

    /// What commands may do, as a sentence for the model.
    pub fn in_words(&self) -> String {
        let bounds = match self.mode {
            SandboxMode::Off => return "Commands run without a sandbox.".to_owned(),
            SandboxMode::On => "they reach the scope, system folders, toolchains and caches",
            SandboxMode::Strict => "they reach the scope and system folders only, and no Unix sockets",
        };
        let network = match self.network() {
            Some(Network::Closed) => "off, but for loopback",
            Some(Network::Open) | None => "on",
        };
        format!("Commands run in a sandbox: {bounds}. The network is {network}.")
    }
}

impl SandboxMode {
    pub(crate) fn of_tools(self) -> longhaul_tools::SandboxMode {
        match self {
            Self::Off => longhaul_tools::SandboxMode::Off,
            Self::On => longhaul_tools::SandboxMode::On,
            Self::Strict => longhaul_tools::SandboxMode::Strict,
        }
    }
}

/// Whether commands reach the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxNetwork {
    /// As the user does.
    On,
    /// A loopback of their own and nothing else.
    Off,
}

/// How closely commands are confined to the scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// Not at all.
    Off,
    /// The scope, temporary folders and the caches of tools.
    On,
    /// The scope alone.
    Strict,
}

/// What to do if commands can't be confined to the scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WithoutSandbox {
    /// Refuse commands.
    Refuse,
    /// Ask the user.
    Ask,
    /// Run commands anyway.
    Allow,
}

/// The schema of the mode. Its type belongs to the crate `protocol`.
fn mode_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": PermissionMode::ALL.map(PermissionMode::name), "default": "auto"})
}

/// The schema without the value "unset", because a file can't contain that.
fn network_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["on", "off"]})
}

/// The schema of the scope. Its type belongs to the crate `tools`.
pub(super) fn scope_schema(_: &mut SchemaGenerator) -> Schema {
    let rules = |about: &str, target: &str, permission: &str| {
        let target =
            format!("Folder or file (no pattern): absolute, relative to {target}, or starting with `~/`.");
        serde_json::json!({
            "description": about,
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "target": {"description": target, "type": "string"},
                    "permission": {"description": permission, "type": "string", "enum": ["read", "write"], "default": "read"},
                },
                "required": ["target"],
                "additionalProperties": false,
            },
            "default": [],
        })
    };
    json_schema!({
        "description": "Which files the agent may read and write.",
        "type": "object",
        "properties": {
            "allow": rules(
                "Files the agent may use, as `[[scope.allow]]`. Without any, the agent may write to the work folder; otherwise list it too.",
                "the work folder",
                "`read`, or `write` for both.",
            ),
            "deny": rules(
                "Files the agent may not use, as `[[scope.deny]]`. Overrides `allow`; a project's file can add to it.",
                "the work folder (in a project's file: to its own folder)",
                "`read` denies both, `write` only writing.",
            ),
        },
        "additionalProperties": false,
    })
}

#[cfg(test)]
#[path = "permission_tests.rs"]
mod tests;
