//! Orders that have nothing to do: cancel without a turn, retry after a turn that completed, continue after a whole answer. They are
//! accepted, because a turn may end or begin at the same moment, and the client is told why nothing will follow.

use longhaul_journal::{Journal, records};
use longhaul_protocol::{InboxRecord, OrderKind, Outcome, SessionId, StreamName};

use super::session::Session;
use crate::Result;
use crate::config::Wake;
use crate::session::{State, Work};

/// Why an order would change nothing now. `None` if it may.
pub async fn nothing_to_do(session: &Session, kind: &OrderKind) -> Result<Option<String>> {
    if !matches!(kind, OrderKind::Cancel | OrderKind::Retry | OrderKind::Continue) {
        return Ok(None);
    }
    let Some(entry) = session.entry().await? else { return Ok(None) };
    let state = session.state().await?;
    if Work::of_taken(&state, Wake::Never).is_due()
        || has_waiting_work(&**session.journal(), entry.id, &state).await?
    {
        return Ok(None);
    }
    Ok(nothing_to_do_at_rest(&state, &entry.key, kind))
}

/// Why an order changes nothing in a session at rest.
fn nothing_to_do_at_rest(state: &State, key: &str, kind: &OrderKind) -> Option<String> {
    match kind {
        OrderKind::Cancel => Some(format!("{key} has no running turn")),
        OrderKind::Retry if !state.stopped_short() => Some(nothing_to_retry(state.last_outcome)),
        OrderKind::Continue if state.interrupted_answer.is_none() => Some(nothing_to_continue()),
        _ => None,
    }
}

/// Whether something in the inbox may begin a turn or a compaction: an input, an answer, or an order that has something to do.
async fn has_waiting_work(journal: &dyn Journal, session: SessionId, state: &State) -> Result<bool> {
    let inbox = StreamName::inbox(session);
    let mut waiting = records(journal, &inbox, state.inbox_through + 1);
    while let Some(record) = waiting.next_undamaged().await? {
        match InboxRecord::decode(&record) {
            Ok(InboxRecord::Order(order)) if nothing_to_do_at_rest(state, "", &order.kind).is_some() => {}
            _ => return Ok(true),
        }
    }
    Ok(false)
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
