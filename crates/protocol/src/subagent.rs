//! Subagents: sessions that work for another session.

use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{CallId, PermissionMode, SessionId};

/// The session that started this one, and what it may do. It stands in the first record of a subagent, so a restart changes
/// nothing about it, whatever became of the file of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLink {
    /// The parent.
    pub session: SessionId,
    /// The call of the parent that started it.
    pub call: CallId,
    /// The sessions above it, the root of the tree first and the parent last.
    pub ancestors: Vec<Ancestor>,
    /// What people call it: its kind, or `agent`.
    pub name: String,
    /// The prompt of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The only tools that it may use. Absent: those of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// As `provider/model`. Absent: the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The only files that it may use. Absent: those of its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Vec<ScopedTarget>>,
    /// The permission mode of its parent when it started.
    pub mode: PermissionMode,
    /// Billionths of a US dollar that it may spend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_nano: Option<u64>,
    /// The parent did not wait for it. Cancelling the parent's turn leaves it running.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
}

impl ParentLink {
    /// The session at the top of its tree.
    pub fn root(&self) -> SessionId {
        self.ancestors.first().map_or(self.session, |root| root.session)
    }
}

/// A session above a subagent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ancestor {
    pub session: SessionId,
    /// Its turn that started the next session of the line.
    pub turn: u64,
    /// Billionths of a US dollar that it may spend, with everything below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_nano: Option<u64>,
    /// Billionths of a US dollar that the turn may cost with everything that it starts, as its schedule says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_max_nano: Option<u64>,
}

/// A folder or file that a subagent may use.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ScopedTarget {
    /// Its canonical path.
    pub path: String,
    /// Whether it may be written, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub write: bool,
}

/// The session that a call starts, from before it exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildSession {
    pub session: SessionId,
    pub key: String,
}

impl ChildSession {
    /// What the keys of subagents begin with.
    pub const KEY_PREFIX: &str = "agent:";

    /// The key of the session that a call starts.
    pub fn key_of(call: CallId) -> String {
        format!("{}{call}", Self::KEY_PREFIX)
    }
}

record_kinds! {
    /// The records of `tree/<root>`: the subagents below a session. Any process appends to it, with the head that it expects, so
    /// that the limits of a tree hold over all processes.
    TreeRecord {
        "child_admitted" => Admitted(ChildAdmitted),
        "child_released" => Released(ChildReleased),
    }
}

/// A subagent may start. Its key is `admitted/<session>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildAdmitted {
    pub session: SessionId,
    pub parent: SessionId,
    pub call: CallId,
    /// Its kind, or `agent`.
    pub name: String,
    /// Its task in a few words.
    pub description: String,
}

impl ChildAdmitted {
    /// The key of the record.
    pub fn key(session: SessionId) -> String {
        format!("admitted/{session}")
    }
}

/// A subagent that was admitted is not going to start. Its key is `released/<session>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildReleased {
    pub session: SessionId,
}

impl ChildReleased {
    /// The key of the record.
    pub fn key(session: SessionId) -> String {
        format!("released/{session}")
    }
}
