//! C10: history tools. With them the model can read all records of its session, including those that were compacted
//! out of its context.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `search` | `history_search`: records by words |
//! | `read` | `history_read`: records by number, as a transcript |
//! | `format` | a record as text |
//! | `reader` | the records of one session, a page at a time |
//! | `by_time` | finding a record by its time |

pub(crate) mod by_time;
mod format;
mod read;
mod reader;
mod search;

use std::sync::Arc;

pub(crate) use format::minute;
use longhaul_journal::{Journal, Result};
use longhaul_protocol::{Seq, SessionId};
use longhaul_tools::{OutputLimit, Tool, ToolOutcome};

/// The tools, always in this order.
pub(crate) fn history_tools(journal: &Arc<dyn Journal>) -> [Arc<dyn Tool>; 2] {
    [Arc::new(search::HistorySearch::new(journal.clone())), Arc::new(read::HistoryRead::new(journal.clone()))]
}

/// Some records of a session in the form of `history_read`.
pub(crate) async fn read_records(
    journal: &Arc<dyn Journal>,
    session: SessionId,
    from: Seq,
    to: Seq,
    cap: OutputLimit,
) -> Result<ToolOutcome> {
    read::read(reader::SessionHistory::new(journal.clone(), session), from, to, cap).await
}

/// The definitions of these tools, for `docs/tools.md`.
#[cfg(test)]
pub(crate) fn history_abouts() -> [longhaul_tools::ToolDefinition; 2] {
    [search::definition(), read::definition()]
}
