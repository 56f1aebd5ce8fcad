//! Looking after the sessions that nobody holds.
//!
//! Whoever holds the lease on `host` is rung for them. A look at all sessions, once a second and never more than a small share
//! of the time, finds what no ring told of: a session whose process died in the middle of a turn.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Lease, Page, Result as JournalResult, SessionEntry};
use longhaul_protocol::{Seq, SessionId, SessionRecord, StreamName, TaskId};
use tokio::time::Instant;

use crate::Result;
use crate::housekeeping::backoff::Backoff;
use crate::replay::load;
use crate::runtime::Inner;
use crate::session::tasks::TaskState;
use crate::worker::task_monitor;

/// How often all sessions are looked at.
const SWEEP: Duration = Duration::from_secs(1);
/// The time between two looks is at least so many times the time that one takes.
const SHARE: u32 = 50;
/// How many sessions are listed at once.
const PAGE: usize = 500;

/// What is known of the sessions from the look before.
#[derive(Default)]
struct Known {
    /// How long their streams were, of those that nobody here was at.
    ends: HashMap<SessionId, (Seq, Seq)>,
    /// They had something to do: another process has them, or they failed.
    unfinished: HashSet<SessionId>,
    /// Their tasks that run.
    running: HashMap<SessionId, Vec<TaskId>>,
    /// They can't be read, and for this reason; under no key, the list of them.
    unreadable: BTreeMap<String, String>,
}

/// Looks after sessions until the runtime ends.
pub(crate) async fn run(runtime: Arc<Inner>) {
    let mut suspension = runtime.suspension();
    let mut known = Known::default();
    let mut lease = None;
    let mut unreadable = Backoff::new(Duration::ZERO);
    loop {
        let began = Instant::now();
        // Carried to its end: a lease that was taken and then forgotten would keep others waiting until it expires.
        lease = keep(&runtime, lease).await;
        let look = async {
            match sweep(&runtime, &known).await {
                Ok(seen) => seen,
                // What can't be listed now is listed later.
                Err(error) => {
                    Known { unreadable: [(String::new(), error.to_string())].into(), ..Known::default() }
                }
            }
        };
        tokio::select! {
            biased;
            _ = suspension.wait_for(|suspended| *suspended) => break,
            seen = look => {
                report_unreadable(&runtime, &mut unreadable, &seen.unreadable);
                known = seen;
            }
        }
        tokio::select! {
            _ = suspension.wait_for(|suspended| *suspended) => break,
            () = tokio::time::sleep(SWEEP.max(began.elapsed() * SHARE)) => {}
        }
    }
    if let Some(lease) = lease {
        let _ = runtime.journal.release_lease(&lease).await;
    }
}

/// Warns of sessions that can't be read, once for each reason.
fn report_unreadable(runtime: &Inner, backoff: &mut Backoff<String>, unreadable: &BTreeMap<String, String>) {
    backoff.retain(|key| unreadable.contains_key(key));
    for (key, reason) in unreadable {
        let report = backoff.record_failure(key.clone(), reason.clone(), Instant::now(), Duration::ZERO);
        if report.is_new_reason {
            let text = if key.is_empty() {
                format!("the sessions can't be listed: {reason}")
            } else {
                reason.clone()
            };
            runtime.warn(key, "session_unreadable", &text);
        }
    }
}

/// Stays the host, or becomes it when there is none.
async fn keep(runtime: &Inner, lease: Option<Lease>) -> Option<Lease> {
    if let Some(lease) = lease {
        match runtime.journal.renew_lease(&lease).await {
            Ok(()) => return Some(lease),
            Err(error) if error.may_pass() => return Some(lease),
            Err(_) => {}
        }
    }
    runtime.journal.acquire_lease(&StreamName::host()).await.ok()
}

/// Looks at every session that has changed since the last look, and at those that another process had then.
async fn sweep(runtime: &Arc<Inner>, known: &Known) -> JournalResult<Known> {
    let mut seen = Known::default();
    let mut after: Option<String> = None;
    loop {
        let page = runtime.journal.sessions(after.as_deref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(seen) };
        after = Some(last.key.clone());
        for entry in page.iter().filter(|entry| !entry.trashed) {
            // What it comes to is looked at when nobody is at it any more.
            if runtime.works_at(entry.id) {
                continue;
            }
            let ends = (entry.head.seq, entry.inbox_head);
            let changed = known.ends.get(&entry.id) != Some(&ends);
            let running = known.running.get(&entry.id).cloned().unwrap_or_default();
            let look = if !changed && !known.unfinished.contains(&entry.id) {
                Look { has_something_to_do: false, running }
            } else {
                match look_at(runtime, entry).await {
                    Ok(look) => look,
                    // It is looked at again the next time.
                    Err(error) => {
                        seen.unreadable.insert(entry.key.clone(), error.to_string());
                        continue;
                    }
                }
            };
            if !look.running.is_empty() {
                // One whose end another process should have recorded, and has not, is watched again.
                let shared = runtime.shared(&entry.key, Some(entry.id));
                look.running.iter().for_each(|task| task_monitor::monitor_task(runtime, &shared, *task));
                seen.running.insert(entry.id, look.running);
            }
            if !look.has_something_to_do {
                seen.ends.insert(entry.id, ends);
                continue;
            }
            seen.unfinished.insert(entry.id);
            if !runtime.worker_backoff.is_backing_off(entry.id) {
                runtime.shared(&entry.key, Some(entry.id)).wake(runtime);
            }
        }
    }
}

/// What there is to do in a session.
#[derive(Default)]
struct Look {
    /// A turn is open or something waits.
    has_something_to_do: bool,
    /// The tasks that run.
    running: Vec<TaskId>,
}

async fn look_at(runtime: &Inner, entry: &SessionEntry) -> Result<Look> {
    if entry.inbox_head > 0 && entry.head.seq == 0 {
        return Ok(Look { has_something_to_do: true, ..Look::default() });
    }
    if let Some(through) = rests_through(runtime, entry).await? {
        return Ok(Look { has_something_to_do: through < entry.inbox_head, ..Look::default() });
    }
    let state = load(&*runtime.journal, &entry.key, entry.id).await?;
    let has_something_to_do = crate::session::Work::of(&state, entry.inbox_head, runtime.wake()).is_due();
    Ok(Look { has_something_to_do, running: state.tasks.running().map(TaskState::id).collect() })
}

/// Most sessions rest, and their last record says so: then nothing else of them needs to be read.
async fn rests_through(runtime: &Inner, entry: &SessionEntry) -> Result<Option<Seq>> {
    let page = Page { records: 1, bytes: 0 };
    let stream = StreamName::session(entry.id);
    let last = runtime.journal.read(&stream, entry.head.seq, page).await?.pop();
    Ok(match last.map(|last| SessionRecord::decode(&last)) {
        Some(Ok(SessionRecord::TurnEnded(ended))) => ended.inbox_through,
        Some(Ok(SessionRecord::Imported(imported))) => Some(imported.inbox_through),
        _ => None,
    })
}

/// Takes in a session that this process was rung for and does not have.
pub(crate) async fn take_in(runtime: Arc<Inner>, id: SessionId) {
    if let Ok(Some(entry)) = runtime.journal.session_with_id(id).await
        && !entry.trashed
    {
        runtime.shared(&entry.key, Some(id)).wake(&runtime);
    }
}
