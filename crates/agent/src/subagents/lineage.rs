//! Whether a subagent that is resumed is still wanted. Its parent may have been stopped while no process ran, and nothing may run after
//! a cancel, so a subagent checks this before it acts.

use longhaul_journal::{Journal, records};
use longhaul_protocol::{CallId, InboxRecord, OrderKind, ParentLink, StreamName, TaskId};

use super::child::order_stop;
use crate::Result;
use crate::replay::load;
use crate::session::state::State;
use crate::worker::{Worker, WorkerResult};

/// Orders a subagent to stop whose parent does not want it any more. The worker takes the order before it does anything else.
pub(crate) async fn stop_if_unwanted(worker: &Worker) -> WorkerResult<()> {
    let state = worker.state();
    let Some(parent) = state.parent() else { return Ok(()) };
    let has_first_turn_ended = state.turn_count > 1 || (state.turn_count == 1 && state.turn.is_none());
    if has_first_turn_ended {
        return Ok(());
    }
    let runtime = worker.runtime();
    // A parent that runs stops its subagents itself, and one that is starting has just asked for this one.
    let is_parent_here = runtime.session_in_memory(parent.session).is_some_and(|slot| slot.has_lease());
    if state.turn.is_none() && is_parent_here {
        return Ok(());
    }
    if !is_wanted(&*runtime.journal, parent).await? {
        order_stop(&*runtime.journal, worker.id()).await?;
    }
    Ok(())
}

/// Whether every session above a subagent still wants what it started.
async fn is_wanted(journal: &dyn Journal, link: &ParentLink) -> Result<bool> {
    let mut link = link.clone();
    loop {
        let Some(entry) = journal.session_with_id(link.session).await? else { return Ok(false) };
        let parent = load(journal, &entry.key, link.session).await?;
        let orders = waiting_orders(journal, &StreamName::inbox(entry.id), &parent).await?;
        if !wants(&parent, &orders, &link) {
            return Ok(false);
        }
        match parent.parent() {
            Some(above) => link = (**above).clone(),
            None => return Ok(true),
        }
    }
}

/// Whether a session wants a subagent that it started.
fn wants(parent: &State, orders: &[OrderKind], link: &ParentLink) -> bool {
    let task_id = TaskId::from(link.call);
    let Some(task) = parent.tasks.get(task_id) else { return false };
    let kill = OrderKind::Kill { task: task_id };
    if !task.is_running() || task.kill_requested || orders.contains(&kill) {
        return false;
    }
    let is_cancelled = parent.is_cancelled() || orders.contains(&OrderKind::Cancel);
    !(is_cancelled && !link.background && is_call_open(parent, link.call))
}

/// Whether the parent's turn waits for the subagent.
fn is_call_open(parent: &State, call: CallId) -> bool {
    parent.call(call).is_some_and(crate::session::state::CallState::is_open)
}

/// The orders that a session has not taken yet.
async fn waiting_orders(journal: &dyn Journal, inbox: &StreamName, state: &State) -> Result<Vec<OrderKind>> {
    let mut orders = Vec::new();
    let mut cursor = records(journal, inbox, state.inbox_through + 1);
    while let Some(record) = cursor.next().await? {
        if let Ok(InboxRecord::Order(order)) = InboxRecord::decode(&record) {
            orders.push(order.kind);
        }
    }
    Ok(orders)
}
