//! C10: all records of a session, including those that were compacted out of its context, for `recall` and
//! `recall_read`.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `search` | records by words |
//! | `read` | records by number, as a transcript |
//! | `format` | a record as text |
//! | `reader` | the records of one session, a page at a time |
//! | `by_time` | finding a record by its time |

pub(crate) mod by_time;
mod format;
mod read;
mod reader;
mod search;

use std::ops::RangeInclusive;
use std::sync::Arc;

pub(crate) use format::minute;
use longhaul_journal::{Journal, Result};
use longhaul_protocol::{Seq, SessionId};
use longhaul_tools::{OutputLimit, ToolOutcome};
pub(crate) use search::FoundRecords;

/// The records of a session that have words of the query, or stand beside those that do.
pub(crate) async fn find_records(
    journal: &Arc<dyn Journal>,
    session: SessionId,
    query: &str,
    limit: usize,
) -> Result<FoundRecords> {
    search::find(reader::SessionHistory::new(journal.clone(), session), query, limit).await
}

/// Some records of a session as a transcript. `key` is the session's key, if it is not the session that asks.
pub(crate) async fn read_records(
    journal: &Arc<dyn Journal>,
    session: SessionId,
    key: Option<&str>,
    range: RangeInclusive<Seq>,
    cap: OutputLimit,
) -> Result<ToolOutcome> {
    let history = reader::SessionHistory::new(journal.clone(), session);
    read::read(history, key.unwrap_or_default(), range, cap).await
}
