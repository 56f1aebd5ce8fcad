//! Trashing, restoring and deleting a session with its subagents.
//!
//! | killed | is on disk | the next time |
//! | --- | --- | --- |
//! | while it is trashed | the session in the trash, some subagents not | the rest goes along |
//! | while it is deleted for good | the session in the trash, some subagents deleted | the rest is deleted, with the session |

use longhaul_journal::{
    DeletedSession, Journal, SessionEntry, delete_session, resolve, restore_session, trash_session,
};
use longhaul_protocol::SessionId;

use super::tree::subagent_sessions;
use crate::Result;

/// A session that was deleted for good, and its subagents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedTree {
    /// The session.
    pub session: DeletedSession,
    /// Its subagents, the deepest first.
    pub subagents: Vec<SessionId>,
}

/// Moves a session to the trash with its subagents. The session goes first: if a process works on it, all of them stay.
pub async fn trash_tree(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    let trashed = trash_session(journal, key).await?;
    for subagent in subagent_sessions(journal, trashed.id).await?.iter().filter(|entry| !entry.trashed) {
        trash_session(journal, &subagent.key).await?;
    }
    Ok(trashed)
}

/// Restores a session from the trash with its subagents.
pub async fn restore_tree(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    let restored = restore_session(journal, key).await?;
    for subagent in subagent_sessions(journal, restored.id).await? {
        restore_session(journal, &subagent.key).await?;
    }
    Ok(restored)
}

/// Deletes a session for good with its subagents: these first, so that none is left without its parent. If a process works on the
/// session, all of them stay.
pub async fn delete_tree(journal: &dyn Journal, key: &str) -> Result<DeletedTree> {
    let entry = resolve(journal, key).await?;
    trash_session(journal, key).await?;
    let mut subagents = Vec::new();
    for subagent in subagent_sessions(journal, entry.id).await?.iter().rev() {
        delete_session(journal, &subagent.key).await?;
        subagents.push(subagent.id);
    }
    let session = delete_session(journal, key).await?;
    Ok(DeletedTree { session, subagents })
}
