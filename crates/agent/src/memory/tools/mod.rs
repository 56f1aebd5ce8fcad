//! Y11: the memory of a session's scope, as the model's tools reach it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `search` | pages, extracts and records by words, for `recall` |
//! | `note` | `memory_note`: adds one note, and determines whose words it is |
//! | `recent` | the last turns of a session |

mod note;
mod recent;
mod search;

use std::sync::Arc;

use longhaul_journal::Journal;
use longhaul_memory::{Finder, PageSet, RecallScope};
use longhaul_protocol::SessionId;
use longhaul_tools::{Redact, Tool};

use super::embeddings::FinderFn;
use super::scopes::Scopes;
use crate::Result;

/// Gets a scope and the pages that have changed in it.
pub(crate) type PagesChangedFn = Arc<dyn Fn(&str, &[String]) + Send + Sync>;

/// Callbacks of a note.
#[derive(Clone)]
pub(crate) struct NoteHooks {
    /// Removes secrets from the text before it is stored.
    pub(crate) redact: Redact,
    /// Gets the scope and the changed pages.
    pub(crate) pages_changed: PagesChangedFn,
}

pub(crate) use search::{FoundMemories, OwnRecords, find_memories};

/// The tool with which the model adds to its memory.
pub(crate) fn memory_note_tool(
    journal: &Arc<dyn Journal>,
    scopes: &Arc<Scopes>,
    hooks: NoteHooks,
) -> Arc<dyn Tool> {
    Arc::new(note::MemoryNote::new(MemoryAccess::new(journal, scopes), hooks))
}

/// The definition of that tool, for `docs/tools.md`.
#[cfg(test)]
pub(crate) fn memory_note_definition() -> longhaul_tools::ToolDefinition {
    note::definition()
}

/// Access to the memory of a session's scope.
#[derive(Clone)]
pub(crate) struct MemoryAccess {
    pub(crate) journal: Arc<dyn Journal>,
    scopes: Arc<Scopes>,
    /// How records are found beside their words.
    finders: Option<FinderFn>,
}

/// The error for a session without memory.
pub(crate) const NO_MEMORY: &str = "this session has no memory: its first record can't be read";

impl MemoryAccess {
    pub(crate) fn new(journal: &Arc<dyn Journal>, scopes: &Arc<Scopes>) -> Self {
        Self { journal: journal.clone(), scopes: scopes.clone(), finders: None }
    }

    /// The same with another way of finding records.
    pub(crate) fn with_finders(self, finders: FinderFn) -> Self {
        Self { finders: Some(finders), ..self }
    }

    /// The other way of finding records, for a search in a session.
    fn finder(&self, session: SessionId) -> Option<Box<dyn Finder>> {
        self.finders.as_ref().and_then(|finders| finders(session))
    }

    /// The pages and the sessions of a session's scope. `None` if it has none.
    pub(crate) async fn places(&self, session: SessionId) -> Result<Option<RecallScope>> {
        let Some(scope) = self.scopes.of(session).await? else { return Ok(None) };
        let book = PageSet::load(&*self.journal, &scope).await?;
        Ok(Some(RecallScope {
            book,
            sessions: self.scopes.sessions(&scope).await?,
            present: None,
            asked_at: None,
        }))
    }
}
