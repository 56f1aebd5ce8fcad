//! C10, Y11: `recall` and `recall_read`. With them the model finds and reads what was said and done before: in this
//! session, also what was compacted out of its context, and in the memory of its scope.
//!
//! A reference says by itself what it names, so that one tool can open it:
//!
//! | reference | what it names |
//! | --- | --- |
//! | `#12`, `#12-20` | records of this session |
//! | `cli:web-1a2b3c4d#12`, `cli:web-1a2b3c4d#12-20` | records of another session of the same memory |
//! | `core` | a page of memory |

mod read;
mod reference;
mod search;

use std::sync::Arc;

use longhaul_journal::Journal;
use longhaul_tools::Tool;

use crate::memory::{FinderFn, MemoryAccess, Scopes};

/// The tools, always in this order.
pub(crate) fn recall_tools(
    journal: &Arc<dyn Journal>,
    scopes: &Arc<Scopes>,
    finders: FinderFn,
) -> [Arc<dyn Tool>; 2] {
    let access = MemoryAccess::new(journal, scopes).with_finders(finders);
    [Arc::new(search::Recall::new(access.clone())), Arc::new(read::RecallRead::new(access))]
}

/// The definitions of these tools, for `docs/tools.md`.
#[cfg(test)]
pub(crate) fn recall_definitions() -> [longhaul_tools::ToolDefinition; 2] {
    [search::definition(), read::definition()]
}

#[cfg(test)]
#[path = "recall_tests.rs"]
mod tests;
