//! Which sessions share a memory.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use longhaul_journal::{Journal, all_sessions, session_place};
use longhaul_memory::ScopeFn;
use longhaul_protocol::SessionId;

use crate::Result;
use crate::runtime::lock;

/// The scopes of sessions, which never change.
pub(crate) struct Scopes {
    journal: Arc<dyn Journal>,
    scope_of: Box<ScopeFn>,
    known: Mutex<HashMap<SessionId, String>>,
}

impl Scopes {
    pub(crate) fn new(
        journal: Arc<dyn Journal>,
        scope_of: impl Fn(&str, Option<&Path>) -> String + Send + Sync + 'static,
    ) -> Self {
        Self { journal, scope_of: Box::new(scope_of), known: Mutex::default() }
    }

    /// Derives the scope of a session from its key and its work folder.
    pub(crate) fn rule(&self) -> &ScopeFn {
        &self.scope_of
    }

    /// The scope of a session. `None` if it has not begun.
    pub(crate) async fn of(&self, session: SessionId) -> Result<Option<String>> {
        if let Some(known) = lock(&self.known).get(&session) {
            return Ok(Some(known.clone()));
        }
        let place = match session_place(&*self.journal, session).await {
            Ok(Some(place)) => place,
            Ok(None) => return Ok(None),
            // If its first record is unreadable, the session has no memory, because a wrong memory would be worse.
            Err(longhaul_journal::Error::Damaged { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let scope = (self.scope_of)(&place.key, place.work_dir.as_deref().map(Path::new));
        lock(&self.known).insert(session, scope.clone());
        Ok(Some(scope))
    }

    /// The sessions of a scope with their keys, without those in the trash.
    pub(crate) async fn sessions(&self, scope: &str) -> Result<Vec<(SessionId, String)>> {
        let mut sessions = Vec::new();
        let mut entries = all_sessions(&*self.journal);
        while let Some(entry) = entries.next().await? {
            let is_used = !entry.trashed && entry.head.seq > 0;
            if is_used && self.of(entry.id).await?.as_deref() == Some(scope) {
                sessions.push((entry.id, entry.key));
            }
        }
        Ok(sessions)
    }
}

#[cfg(test)]
#[path = "scopes_tests.rs"]
mod tests;
