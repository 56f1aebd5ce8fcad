//! Y11: tools with which the model searches and reads the memory of its scope, and adds to it.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `search` | `memory_search`: pages, extracts and records by words |
//! | `read` | `memory_read`: a page, or a record of any session of the scope with the records around it |
//! | `note` | `memory_note`: adds one note, and determines whose words it is |
//! | `recent` | the last turns of a session |

mod note;
mod read;
mod recent;
mod search;

use std::sync::Arc;

use longhaul_journal::Journal;
use longhaul_memory::{PageSet, RecallScope};
use longhaul_protocol::SessionId;
use longhaul_tools::{Redact, Tool};

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

/// The tools, always in this order.
pub(crate) fn memory_tools(
    journal: &Arc<dyn Journal>,
    scopes: &Arc<Scopes>,
    hooks: NoteHooks,
) -> [Arc<dyn Tool>; 3] {
    let access = MemoryAccess { journal: journal.clone(), scopes: scopes.clone() };
    [
        Arc::new(search::MemorySearch::new(access.clone())),
        Arc::new(read::MemoryRead::new(access.clone())),
        Arc::new(note::MemoryNote::new(access, hooks)),
    ]
}

/// The definitions of these tools, for `docs/tools.md`.
#[cfg(test)]
pub(crate) fn memory_abouts() -> [longhaul_tools::ToolDefinition; 3] {
    [search::definition(), read::definition(), note::definition()]
}

/// Access to the memory of a session's scope.
#[derive(Clone)]
struct MemoryAccess {
    journal: Arc<dyn Journal>,
    scopes: Arc<Scopes>,
}

/// The error for a session without memory.
const NO_MEMORY: &str = "this session has no memory: its first record can't be read";

impl MemoryAccess {
    /// The pages and the sessions of a session's scope. `None` if it has none.
    async fn places(&self, session: SessionId) -> Result<Option<RecallScope>> {
        let Some(scope) = self.scopes.of(session).await? else { return Ok(None) };
        let book = PageSet::load(&*self.journal, &scope).await?;
        Ok(Some(RecallScope { book, sessions: self.scopes.sessions(&scope).await?, present: None }))
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
