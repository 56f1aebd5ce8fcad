//! The state of a server, for people and programs.

use longhaul_redact::Redactor;
use serde::Serialize;

use crate::TransportKind;

/// The state of one server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `None` if its settings say neither how to start nor how to reach it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transport: Option<TransportKind>,
    /// The version of the protocol that was agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The names of its tools, as far as they are known.
    pub tools: Vec<String>,
    /// What the user should know: tools that are left out, variables that are not set, stray output.
    pub warnings: Vec<String>,
}

impl ServerStatus {
    /// The status without secrets: a server may have printed one, or named one in an error.
    #[must_use]
    pub fn redacted(self, redactor: &Redactor) -> Self {
        let redact = |text: String| redactor.redact(&text).into_owned();
        Self {
            reason: self.reason.map(redact),
            warnings: self.warnings.into_iter().map(redact).collect(),
            ..self
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// It is started when it is needed.
    Stopped,
    Starting,
    Ready,
    Failed,
}

impl ServerState {
    pub fn word(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}
