use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What the agent may do without asking, where no approval rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Reads are free; edits and commands ask.
    Ask,
    /// Reads and edits inside the scope are free; commands ask.
    AutoEdit,
    /// Everything is free.
    Auto,
    /// Reads are free; edits and commands are refused, whatever the rules say.
    Plan,
}

impl PermissionMode {
    /// All modes, in the order in which Shift-Tab goes through them.
    pub const ALL: [Self; 4] = [Self::Ask, Self::AutoEdit, Self::Auto, Self::Plan];

    /// Its name in the config, on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AutoEdit => "auto-edit",
            Self::Auto => "auto",
            Self::Plan => "plan",
        }
    }

    /// The mode after this one; after the last, the first.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Ask => Self::AutoEdit,
            Self::AutoEdit => Self::Auto,
            Self::Auto => Self::Plan,
            Self::Plan => Self::Ask,
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// A text that is not the name of a [`PermissionMode`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMode(String);

impl fmt::Display for UnknownMode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "there is no mode {:?}; the modes are ask, auto-edit, auto and plan", self.0)
    }
}

impl std::error::Error for UnknownMode {}

impl FromStr for PermissionMode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, UnknownMode> {
        let mode = Self::ALL.into_iter().find(|mode| mode.name() == name);
        mode.ok_or_else(|| UnknownMode(name.chars().take(40).collect()))
    }
}

/// The permission mode changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeChanged {
    pub from: PermissionMode,
    pub to: PermissionMode,
}

/// Calls that the user allowed from now on, for the session or the project: exactly what the question showed.
///
/// For `exec`, either `command` or `line` is set. For other tools neither is, and every call of the tool is allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalGrant {
    pub tool: String,
    /// A pattern of commands, such as `cargo test *`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// One exact command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// The folder in which the exact line runs, if the call names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_dir: Option<String>,
    /// The host whose pages may be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Reasons to ask that are not rules, and that the user accepted: a startup file, no sandbox. Others still ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
}

/// What a session may do without asking: the changes of its mode and the user's answers, folded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionPermission {
    /// The mode, once it was changed in this session. Before that, the configured one applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<PermissionMode>,
    /// The mode to return to when the user accepts a plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before_plan: Option<PermissionMode>,
    /// The mode that the model was last told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub announced: Option<PermissionMode>,
    /// What the user always allows in this session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<ApprovalGrant>,
}

impl SessionPermission {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
