//! Y11: tools with which the model reaches all that its scope remembers, and asks for something to be remembered.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `search` | `memory_search`: pages, extracts and records by words |
//! | `read` | `memory_read`: a page, or a record of any session of the scope with what stands around it |
//! | `note` | `memory_note`: one more thing to remember, and whose words it is |
//! | `recent` | what was said last in a session |

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

/// Hears of a scope, and of the pages that are different there now.
pub(crate) type PagesChangedFn = Arc<dyn Fn(&str, &[String]) + Send + Sync>;

/// What else happens when something is noted.
#[derive(Clone)]
pub(crate) struct NoteHooks {
    /// Takes secrets out of it first.
    pub(crate) redact: Redact,
    /// Hears of the scope and of the pages that are different now.
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

/// What is known of them without having any, for `docs/tools.md`.
#[cfg(test)]
pub(crate) fn memory_abouts() -> [longhaul_tools::ToolDefinition; 3] {
    [search::definition(), read::definition(), note::definition()]
}

/// Where what a session remembers is found.
#[derive(Clone)]
struct MemoryAccess {
    journal: Arc<dyn Journal>,
    scopes: Arc<Scopes>,
}

/// What is said of a session that has no memory.
const NO_MEMORY: &str = "this session has no memory: its first record can't be read";

impl MemoryAccess {
    /// The pages and the sessions of a session's scope. Nothing, if it has none.
    async fn places(&self, session: SessionId) -> Result<Option<RecallScope>> {
        let Some(scope) = self.scopes.of(session).await? else { return Ok(None) };
        let book = PageSet::load(&*self.journal, &scope).await?;
        Ok(Some(RecallScope { book, sessions: self.scopes.sessions(&scope).await?, present: None }))
    }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
