use serde::{Deserialize, Serialize};

use crate::record::record_kinds;
use crate::{Hash, Seq, SessionId};

record_kinds! {
    /// The records of the stream `names`: the keys of sessions.
    NamesRecord {
        "session_named" => Named(SessionNamed),
        "session_renamed" => Renamed(SessionRenamed),
        "session_trashed" => Trashed(SessionTrashed),
        "session_restored" => Restored(SessionRestored),
        "session_pinned" => Pinned(SessionPinned),
        "session_deleted" => Deleted(SessionDeleted),
        "fork_requested" => ForkRequested(ForkRequested),
        "session_placed" => Placed(SessionPlaced),
    }
}

/// A session got its first key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNamed {
    pub key: String,
    pub id: SessionId,
}

/// A session got another key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRenamed {
    pub id: SessionId,
    pub from: String,
    pub to: String,
}

/// A session was moved to the trash; it can be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTrashed {
    pub id: SessionId,
}

/// A session was deleted for good; its key is free.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDeleted {
    pub id: SessionId,
}

/// A session was restored from the trash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRestored {
    pub id: SessionId,
}

/// A session was pinned or unpinned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPinned {
    pub id: SessionId,
    /// Whether retention leaves it alone.
    pub pinned: bool,
}

/// A client requested a fork under an idempotency key, which is the record's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkRequested {
    /// The fork.
    pub id: SessionId,
    pub parent: SessionId,
    /// The last record of the parent that the fork has.
    pub seq: Seq,
    /// A hash of everything that the client asked for.
    pub content: Hash,
}

/// A session was bound to a node, or to none any more. Without such a record it may run anywhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPlaced {
    pub id: SessionId,
    /// The node with its work folder. `None`: the user lets any node run it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}
