//! Where a session works, as the model is told.

use serde::{Deserialize, Serialize};

/// The surroundings of a session at one moment. The system prompt has those of the session's beginning, for the life of
/// the session: a prompt that changed with the date or the branch would invalidate the provider's cache. Later changes
/// are notes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// The local date: `2026-11-17`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub date: String,
    /// The time zone: `Europe/Berlin (UTC+01:00)`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The operating system and its version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub os: String,
    /// The shell that runs commands.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub shell: String,
    /// The repository of the work folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<GitState>,
    /// What the sandbox allows, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
    /// The model that answers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
}

/// The state of a git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitState {
    /// The branch that is checked out. `None` if a commit is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The first digits of the commit that is checked out. `None` before the first commit, or if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Whether nothing is changed, staged or untracked. `None` if that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_clean: Option<bool>,
}
