//! Creating a session before its first input: its work folder is on record from then on.

use std::path::Path;

use longhaul_journal::{Append, Error as JournalError, Holder, Journal, Lease, place_session};
use longhaul_protocol::{ParentLink, SessionCreated, SessionId, SessionRecord, StreamName};

use crate::Result;

/// The outcome of beginning a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStart {
    /// The session begins.
    Begun,
    /// The session had already begun, with its own work folder or without one.
    BegunBefore,
    /// The named process is beginning the session right now, with its own work folder.
    BegunBy(Holder),
}

/// Records that a session begins in this folder, or without one. A session's work folder never changes. `parent` is given for a
/// subagent.
pub(crate) async fn create_session(
    journal: &dyn Journal,
    key: &str,
    id: SessionId,
    work_dir: Option<&Path>,
    parent: Option<&ParentLink>,
) -> Result<SessionStart> {
    let stream = StreamName::session(id);
    if journal.head(&stream).await?.seq > 0 {
        return Ok(SessionStart::BegunBefore);
    }
    let lease = match journal.acquire_lease(&stream).await {
        Ok(lease) => lease,
        Err(JournalError::Held { holder, .. }) => return Ok(SessionStart::BegunBy(*holder)),
        Err(error) => return Err(error.into()),
    };
    let begun = begin_session(journal, &lease, key, id, work_dir, parent).await;
    journal.release_lease(&lease).await?;
    match begun {
        Ok(()) => Ok(SessionStart::Begun),
        Err(JournalError::Conflict { .. }) => Ok(SessionStart::BegunBefore),
        Err(error) => Err(error.into()),
    }
}

/// Appends the first record. A session with a work folder is bound to this node before.
async fn begin_session(
    journal: &dyn Journal,
    lease: &Lease,
    key: &str,
    id: SessionId,
    work_dir: Option<&Path>,
    parent: Option<&ParentLink>,
) -> longhaul_journal::Result<()> {
    if let (Some(cluster), true) = (journal.cluster(), work_dir.is_some()) {
        place_session(journal, cluster, id, cluster.node()).await?;
    }
    let created = SessionRecord::SessionCreated(SessionCreated {
        id,
        key: key.to_owned(),
        work_dir: work_dir.map(|folder| folder.display().to_string()),
        origin: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        parent: parent.cloned().map(Box::new),
    });
    journal.append(Append::under(lease).expecting(0).record(created.encode())).await.map(drop)
}
