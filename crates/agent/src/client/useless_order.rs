//! Orders that have nothing to do: cancel without a turn, retry after a turn that completed, continue after a whole answer. They are
//! accepted, because a turn may end or begin at the same moment, and the client is told why nothing will follow.

use longhaul_protocol::{OrderKind, Outcome};

use super::session::Session;
use crate::Result;
use crate::config::Wake;
use crate::session::Work;

/// Why an order would change nothing now. `None` if it may.
pub async fn nothing_to_do(session: &Session, kind: &OrderKind) -> Result<Option<String>> {
    if !matches!(kind, OrderKind::Cancel | OrderKind::Retry | OrderKind::Continue) {
        return Ok(None);
    }
    let Some(entry) = session.entry().await? else { return Ok(None) };
    let state = session.state().await?;
    let work = Work::of(&state, entry.inbox_head, Wake::Never);
    Ok(match kind {
        _ if work.is_due() => None,
        OrderKind::Cancel => Some(format!("{} has no running turn", entry.key)),
        OrderKind::Retry if !state.stopped_short() => Some(nothing_to_retry(state.last_outcome)),
        OrderKind::Continue if state.interrupted_answer.is_none() => Some(nothing_to_continue()),
        _ => None,
    })
}

/// The sentence for an order to retry that has nothing to do.
pub fn nothing_to_retry(last: Option<Outcome>) -> String {
    let last = match last {
        None => "there is no turn yet",
        Some(Outcome::Completed) => "the last turn completed",
        Some(Outcome::Cancelled) => "the last turn was cancelled",
        Some(Outcome::Failed) => "the last turn failed",
        Some(Outcome::Limit) => "the last turn reached a limit",
    };
    format!("nothing to retry: {last}")
}

/// The sentence for an order to continue that has nothing to do.
pub fn nothing_to_continue() -> String {
    "nothing to continue: the last answer is complete".to_owned()
}
