//! Trashing, restoring and deleting a session with its subagents.
//!
//! | killed | is on disk | the next time |
//! | --- | --- | --- |
//! | while it is trashed | the session in the trash, some subagents not | the rest goes along |
//! | while it is deleted for good | the session in the trash, some subagents deleted | the rest is deleted, with the session |

use longhaul_journal::{
    DeletedSession, Error as JournalError, Journal, SessionEntry, delete_session, resolve, restore_session,
    trash_session,
};
use longhaul_protocol::SessionId;

use super::tree::subagent_sessions;
use crate::{Error, Result};

/// A session that was deleted for good, and its subagents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletedTree {
    /// The session.
    pub session: DeletedSession,
    /// Its subagents, the deepest first.
    pub subagents: Vec<SessionId>,
}

/// Moves a session to the trash with its subagents. If a process works on one of them, all of them stay.
pub async fn trash_tree(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    let was_trashed = resolve(journal, key).await?.trashed;
    let trashed = trash_session(journal, key).await?;
    let mut moved: Vec<String> = if was_trashed { vec![] } else { vec![trashed.key.clone()] };
    let done = trash_subagents(journal, trashed.id, &mut moved).await;
    if let Err(error @ Error::Journal(JournalError::InUseBy { .. })) = done {
        for key in moved.iter().rev() {
            restore_session(journal, key).await?;
        }
        return Err(error);
    }
    done.map(|()| trashed)
}

/// Moves the subagents of a session to the trash, and adds the keys of those that were not there yet to `moved`.
async fn trash_subagents(journal: &dyn Journal, session: SessionId, moved: &mut Vec<String>) -> Result<()> {
    for subagent in subagent_sessions(journal, session).await?.into_iter().filter(|entry| !entry.trashed) {
        trash_session(journal, &subagent.key).await?;
        moved.push(subagent.key);
    }
    Ok(())
}

/// Restores a session from the trash with its subagents.
pub async fn restore_tree(journal: &dyn Journal, key: &str) -> Result<SessionEntry> {
    let restored = restore_session(journal, key).await?;
    for subagent in subagent_sessions(journal, restored.id).await? {
        restore_session(journal, &subagent.key).await?;
    }
    Ok(restored)
}

/// Deletes a session for good with its subagents: these first, so that none is left without its parent. If a process works on one of
/// them, all of them stay.
pub async fn delete_tree(journal: &dyn Journal, key: &str) -> Result<DeletedTree> {
    let entry = trash_tree(journal, key).await?;
    let mut subagents = Vec::new();
    for subagent in subagent_sessions(journal, entry.id).await?.iter().rev() {
        delete_session(journal, &subagent.key).await?;
        subagents.push(subagent.id);
    }
    let session = delete_session(journal, key).await?;
    Ok(DeletedTree { session, subagents })
}
