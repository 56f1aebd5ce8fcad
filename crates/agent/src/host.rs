//! Looking after the sessions that nobody holds.
//!
//! Whoever holds the lease on `host` is rung for them. A look at all sessions, once a second and never more than a small share
//! of the time, finds what no ring told of: a session whose process died in the middle of a turn.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Lease, Result as JournalResult, SessionEntry};
use longhaul_protocol::{Seq, SessionId, StreamName};
use tokio::time::Instant;

use crate::load::load;
use crate::runtime::Inner;

/// How often all sessions are looked at.
const SWEEP: Duration = Duration::from_secs(1);
/// The time between two looks is at least so many times the time that one takes.
const SHARE: u32 = 50;
/// How many sessions are listed at once.
const PAGE: usize = 500;

/// What is known of the sessions from the look before.
#[derive(Default)]
struct Known {
    ends: HashMap<SessionId, (Seq, Seq)>,
    /// They have something to do, and another process has them.
    elsewhere: HashSet<SessionId>,
}

/// Looks after sessions until the runtime ends.
pub(crate) async fn run(runtime: Arc<Inner>) {
    let mut suspension = runtime.suspension();
    let mut known = Known::default();
    let mut lease = None;
    loop {
        let began = Instant::now();
        lease = keep(&runtime, lease).await;
        // What can't be listed now is listed later.
        let _ = sweep(&runtime, &mut known).await;
        let wait = SWEEP.max(began.elapsed() * SHARE);
        tokio::select! {
            _ = suspension.wait_for(|suspended| *suspended) => break,
            () = tokio::time::sleep(wait) => {}
        }
    }
    if let Some(lease) = lease {
        let _ = runtime.journal.release(&lease).await;
    }
}

/// Stays the host, or becomes it when there is none.
async fn keep(runtime: &Inner, lease: Option<Lease>) -> Option<Lease> {
    if let Some(lease) = lease
        && runtime.journal.renew(&lease).await.is_ok()
    {
        return Some(lease);
    }
    runtime.journal.acquire(&StreamName::host()).await.ok()
}

/// Looks at every session that has changed since the last look, and at those that another process had then.
async fn sweep(runtime: &Arc<Inner>, known: &mut Known) -> JournalResult<()> {
    let mut after: Option<String> = None;
    loop {
        let page = runtime.journal.sessions(after.as_deref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = Some(last.key.clone());
        for entry in page.iter().filter(|entry| !entry.trashed) {
            let ends = (entry.head.seq, entry.inbox_head);
            let changed = known.ends.insert(entry.id, ends) != Some(ends);
            if !changed && !known.elsewhere.contains(&entry.id) {
                continue;
            }
            known.elsewhere.remove(&entry.id);
            if runtime.works_at(entry.id) || !has_something_to_do(runtime, entry).await {
                continue;
            }
            known.elsewhere.insert(entry.id);
            runtime.shared(&entry.key, Some(entry.id)).wake(runtime);
        }
    }
}

/// Whether a turn is open or something waits. What can't be read is left to whoever opens the session.
async fn has_something_to_do(runtime: &Inner, entry: &SessionEntry) -> bool {
    if entry.inbox_head > 0 && entry.head.seq == 0 {
        return true;
    }
    let Ok(state) = load(&*runtime.journal, &entry.key, entry.id).await else { return false };
    state.turn.is_some() || !state.waiting.is_empty() || state.inbox_through < entry.inbox_head
}

/// Takes in a session that this process was rung for and does not have.
pub(crate) async fn take_in(runtime: Arc<Inner>, id: SessionId) {
    if let Ok(Some(entry)) = runtime.journal.session_with_id(id).await
        && !entry.trashed
    {
        runtime.shared(&entry.key, Some(id)).wake(&runtime);
    }
}
