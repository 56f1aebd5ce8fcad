//! Creating a session before its first input: its work folder is on record from then on.

use std::path::Path;

use longhaul_journal::{Append, Error as JournalError, Holder, Journal};
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
    let created = SessionRecord::SessionCreated(SessionCreated {
        id,
        key: key.to_owned(),
        work_dir: work_dir.map(|folder| folder.display().to_string()),
        origin: None,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        parent: parent.cloned().map(Box::new),
    });
    let begun = journal.append(Append::under(&lease).expecting(0).record(created.encode())).await;
    journal.release_lease(&lease).await?;
    match begun {
        Ok(_) => Ok(SessionStart::Begun),
        Err(JournalError::Conflict { .. }) => Ok(SessionStart::BegunBefore),
        Err(error) => Err(error.into()),
    }
}
