//! Sessions without a runtime.

use std::sync::{Arc, OnceLock};

use longhaul_journal::Journal;

use super::session::Session;
use crate::{Redactor, Result};

/// Sessions of a home for a program that runs none of them itself: it needs no model, no tools and no config.
#[derive(Clone)]
pub struct Client {
    journal: Arc<dyn Journal>,
    redactor: Arc<Redactor>,
}

impl Client {
    /// A client for the sessions in this journal. The redactor is applied to everything that it sends.
    pub fn new(journal: Arc<dyn Journal>, redactor: Redactor) -> Self {
        Self { journal, redactor: Arc::new(redactor) }
    }

    /// Like [`new`](Self::new), with a redactor that others use, too.
    pub(crate) fn with_shared(journal: Arc<dyn Journal>, redactor: Arc<Redactor>) -> Self {
        Self { journal, redactor }
    }

    /// The session with this key. This stores nothing. The session begins with its first input.
    pub async fn session(&self, key: &str) -> Result<Session> {
        let id = OnceLock::new();
        if let Some(entry) = self.journal.session(key).await? {
            let _ = id.set(entry.id);
        }
        Ok(Session::detached(self.journal.clone(), self.redactor.clone(), key, id))
    }
}
