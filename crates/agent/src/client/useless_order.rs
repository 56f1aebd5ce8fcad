//! Orders that have nothing to do: cancel without a turn, retry after a turn that completed, continue after a whole answer. A client
//! that asks for one is told so, and nothing is recorded. A turn that ends or begins at the same moment decides itself: an order that
//! comes too late does nothing.

use longhaul_protocol::{OrderKind, Outcome, StreamName};

use super::accepted::AcceptedOrder;
use super::session::Session;
use crate::config::Wake;
use crate::session::Work;
use crate::{Error, Result};

/// Puts an order into the inbox as [`Session::put_order`] does, unless it has nothing to do: then it is
/// [`Error::NothingToDo`]. An order whose idempotency key was used before gets the answer of the first one.
pub async fn put_useful_order(
    session: &Session,
    kind: OrderKind,
    idempotency_key: Option<&str>,
) -> Result<AcceptedOrder> {
    if !is_repeated(session, idempotency_key).await?
        && let Some(reason) = nothing_to_do(session, &kind).await?
    {
        return Err(Error::NothingToDo { reason });
    }
    session.put_order(kind, idempotency_key).await
}

async fn is_repeated(session: &Session, idempotency_key: Option<&str>) -> Result<bool> {
    let (Some(id), Some(key)) = (session.known_id().await?, idempotency_key) else { return Ok(false) };
    Ok(session.journal().find(&StreamName::inbox(id), key).await?.is_some())
}

/// Why an order would change nothing. `None` if it may.
async fn nothing_to_do(session: &Session, kind: &OrderKind) -> Result<Option<String>> {
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
