use serde::{Deserialize, Serialize};

use crate::SessionId;
use crate::record::record_kinds;

record_kinds! {
    /// What stands in the stream `names`: which key leads to which session.
    NamesRecord {
        /// A key leads to a new session from here on.
        "session_named" => Named(SessionNamed),
        /// A session got another key.
        "session_renamed" => Renamed(SessionRenamed),
        /// A session was put away; it can still be brought back.
        "session_trashed" => Trashed(SessionTrashed),
        /// A session was brought back from where it was put away.
        "session_restored" => Restored(SessionRestored),
        /// A session is to stay whatever retention says, or not any more.
        "session_pinned" => Pinned(SessionPinned),
        /// A session is gone, and its key is free.
        "session_deleted" => Deleted(SessionDeleted),
    }
}

/// A key leads to a new session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNamed {
    /// How people find it.
    pub key: String,
    /// Which session it is.
    pub id: SessionId,
}

/// A session got another key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRenamed {
    /// The session.
    pub id: SessionId,
    /// The key that it had.
    pub from: String,
    /// The key that it has now.
    pub to: String,
}

/// A session was put away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTrashed {
    /// The session.
    pub id: SessionId,
}

/// A session is gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionDeleted {
    /// The session.
    pub id: SessionId,
}

/// A session was brought back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRestored {
    /// The session.
    pub id: SessionId,
}

/// A session is pinned, or not any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionPinned {
    /// The session.
    pub id: SessionId,
    /// Whether it is to stay whatever retention says.
    pub pinned: bool,
}
