//! The host: the process that runs the sessions that no other process holds.
//!
//! The process that holds the lease on `host` gets the wake signals for these sessions. A scan of all sessions finds
//! work that no signal announced, such as a session whose process died during a turn. The scan runs once a second,
//! but takes at most a fiftieth of the time.
//!
//! Where several nodes share the journal, each has a host of its own (`host/<node>`), and the scan looks only at the
//! sessions that the journal lists as due. The lease on `host` then says which of the hosts runs the schedules.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longhaul_journal::{Cluster, DueSession, Lease, Result as JournalResult, SessionEntry};
use longhaul_protocol::{Seq, SessionId, StreamName};
use tokio::time::Instant;

use crate::Result;
use crate::client::overview::read_at_rest;
use crate::housekeeping::activity::ClockReading;
use crate::housekeeping::backoff::Backoff;
use crate::replay::load;
use crate::runtime::RuntimeShared;
use crate::worker::task_monitor::{self, TaskRef};

/// The shortest time between two scans of all sessions.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// The time between two scans is at least this many times the duration of one.
const SCAN_PAUSE_FACTOR: u32 = 50;
/// The time between two looks for due sessions, where several nodes share the journal: a process of this machine that was killed is
/// replaced within a second.
const DUE_INTERVAL_MS: u32 = 600;
/// How often a node renews its leases as a host.
const LEASE_INTERVAL: Duration = Duration::from_secs(2);
/// Up to this much is added, so that nodes don't look all at the same moment.
const MAX_JITTER_MS: u32 = 200;
/// Sessions per page of the list.
const SCAN_PAGE_LEN: usize = 500;

/// The result of one scan. The next scan skips sessions that have not changed since.
#[derive(Default)]
struct ScanResult {
    /// The heads of stream and inbox of the sessions that had nothing to do.
    heads: HashMap<SessionId, (Seq, Seq)>,
    /// Sessions that had work to do, but another process holds them or they failed.
    unfinished: HashSet<SessionId>,
    running_tasks: HashMap<SessionId, Vec<TaskRef>>,
    /// The keys of sessions that can't be read, with the reason. The empty key means the list of sessions itself.
    unreadable: BTreeMap<String, String>,
}

/// Runs sessions that no other process holds until the runtime ends.
pub(crate) async fn run(runtime: Arc<RuntimeShared>) {
    let mut suspension = runtime.suspension();
    let mut last = ScanResult::default();
    let (own, shared) = (runtime.own_host_stream(), StreamName::host());
    let (mut lease, mut schedules_lease, mut leases_renewed) = (None, None, None);
    let mut unreadable = Backoff::new(Duration::ZERO);
    loop {
        let began = Instant::now();
        // Not cancelled by the suspension: a lease that was acquired and then dropped would block other processes
        // until it expires.
        if own == shared {
            lease = renew_or_acquire_lease(&runtime, &own, lease).await;
        } else if leases_renewed.is_none_or(|at: Instant| at.elapsed() >= LEASE_INTERVAL) {
            leases_renewed = Some(began);
            lease = renew_or_acquire_lease(&runtime, &own, lease).await;
            if lease.is_none() || runtime.is_draining() {
                // A node that drains leaves the schedules to another one.
                release_lease(&runtime, schedules_lease.take()).await;
            } else {
                schedules_lease = renew_or_acquire_lease(&runtime, &shared, schedules_lease).await;
            }
        }
        let is_scheduler = if own == shared { lease.is_some() } else { schedules_lease.is_some() };
        let schedules_head = match is_scheduler || own == shared {
            true => runtime.journal.head(&StreamName::schedules()).await.map_or(0, |head| head.seq),
            false => 0,
        };
        runtime.schedules.host_scanned(is_scheduler, ClockReading::now(), schedules_head);
        let scan = async {
            let scanned = match runtime.journal.cluster() {
                None => scan_sessions(&runtime, &last).await,
                Some(cluster) => scan_due_sessions(&runtime, cluster, &last).await,
            };
            match scanned {
                Ok(found) => found,
                Err(error) => {
                    let unreadable = [(String::new(), error.to_string())].into();
                    ScanResult { unreadable, ..ScanResult::default() }
                }
            }
        };
        tokio::select! {
            biased;
            _ = suspension.wait_for(|suspended| *suspended) => break,
            found = scan => {
                report_unreadable(&runtime, &mut unreadable, &found.unreadable);
                last = found;
            }
        }
        tokio::select! {
            _ = suspension.wait_for(|suspended| *suspended) => break,
            () = tokio::time::sleep(scan_pause(&runtime, began.elapsed())) => {}
        }
    }
    release_lease(&runtime, schedules_lease).await;
    release_lease(&runtime, lease).await;
}

/// The wait before the next scan.
fn scan_pause(runtime: &RuntimeShared, scan: Duration) -> Duration {
    if runtime.journal.cluster().is_none() {
        return SCAN_INTERVAL.max(scan * SCAN_PAUSE_FACTOR);
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let jitter = since.subsec_micros() % MAX_JITTER_MS;
    Duration::from_millis(u64::from(DUE_INTERVAL_MS + jitter)).max(scan)
}

async fn release_lease(runtime: &RuntimeShared, lease: Option<Lease>) {
    if let Some(lease) = lease {
        let _ = runtime.journal.release_lease(&lease).await;
    }
}

/// Warns about sessions that can't be read, once for each reason.
fn report_unreadable(
    runtime: &RuntimeShared,
    backoff: &mut Backoff<String>,
    unreadable: &BTreeMap<String, String>,
) {
    backoff.retain(|key| unreadable.contains_key(key));
    for (key, reason) in unreadable {
        let report = backoff.record_failure(key.clone(), reason.clone(), Instant::now(), Duration::ZERO);
        if report.is_new_reason {
            let text =
                if key.is_empty() { format!("can't list the sessions: {reason}") } else { reason.clone() };
            runtime.warn(key, "session_unreadable", &text);
        }
    }
}

/// Renews the lease on `host`, or acquires it if it is free.
async fn renew_or_acquire_lease(
    runtime: &RuntimeShared,
    host: &StreamName,
    lease: Option<Lease>,
) -> Option<Lease> {
    if let Some(lease) = lease {
        match runtime.journal.renew_lease(&lease).await {
            Ok(()) => return Some(lease),
            Err(error) if error.may_pass() => return Some(lease),
            Err(_) => {}
        }
    }
    runtime.journal.acquire_lease(host).await.ok()
}

/// Checks every session that has changed since the last scan, or had work to do then, and wakes those that have work
/// to do.
async fn scan_sessions(runtime: &Arc<RuntimeShared>, last: &ScanResult) -> JournalResult<ScanResult> {
    let mut found = ScanResult::default();
    let mut after: Option<String> = None;
    loop {
        let page = runtime.journal.sessions(after.as_deref(), SCAN_PAGE_LEN).await?;
        let Some(last_entry) = page.last() else { return Ok(found) };
        after = Some(last_entry.key.clone());
        for entry in page.iter().filter(|entry| !entry.trashed) {
            scan_session(runtime, entry, last, &mut found).await;
        }
    }
}

/// Checks the sessions that the journal lists as due. Those that turn out to be at rest are listed no more.
async fn scan_due_sessions(
    runtime: &Arc<RuntimeShared>,
    cluster: &dyn Cluster,
    last: &ScanResult,
) -> JournalResult<ScanResult> {
    let mut found = ScanResult::default();
    let mut at_rest: Vec<DueSession> = Vec::new();
    for due in cluster.due_sessions().await? {
        if scan_session(runtime, &due.entry, last, &mut found).await == ScanVerdict::AtRest {
            at_rest.push(due);
        }
    }
    if !at_rest.is_empty() {
        cluster.settle(&at_rest).await?;
    }
    Ok(found)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScanVerdict {
    /// Nothing runs, and nothing waits.
    AtRest,
    /// It has to be looked at again.
    Active,
}

/// Checks one session, and wakes it if it has work to do.
async fn scan_session(
    runtime: &Arc<RuntimeShared>,
    entry: &SessionEntry,
    last: &ScanResult,
    found: &mut ScanResult,
) -> ScanVerdict {
    // The worker of this process does everything. The session is checked after the worker has left.
    if runtime.works_at(entry.id) {
        return ScanVerdict::Active;
    }
    let heads = (entry.head.seq, entry.inbox_head);
    let has_changed = last.heads.get(&entry.id) != Some(&heads);
    let running_tasks = last.running_tasks.get(&entry.id).cloned().unwrap_or_default();
    let work = if !has_changed && !last.unfinished.contains(&entry.id) {
        SessionWork { is_due: false, running_tasks }
    } else {
        match find_work(runtime, entry).await {
            Ok(work) => work,
            Err(error) => {
                found.unreadable.insert(entry.key.clone(), error.to_string());
                return ScanVerdict::Active;
            }
        }
    };
    let has_tasks = !work.running_tasks.is_empty();
    if has_tasks {
        // Another process should record the ends of these tasks. If it does not, the monitor of this process
        // does.
        let slot = runtime.session_slot(&entry.key, Some(entry.id));
        work.running_tasks.iter().for_each(|task| task_monitor::monitor_task(runtime, &slot, task.clone()));
        found.running_tasks.insert(entry.id, work.running_tasks);
    }
    if !work.is_due {
        found.heads.insert(entry.id, heads);
        return if has_tasks { ScanVerdict::Active } else { ScanVerdict::AtRest };
    }
    found.unfinished.insert(entry.id);
    if !runtime.worker_backoff.is_backing_off(entry.id) {
        runtime.session_slot(&entry.key, Some(entry.id)).wake(runtime);
    }
    ScanVerdict::Active
}

#[derive(Default)]
struct SessionWork {
    /// A turn is open, or the inbox has something new.
    is_due: bool,
    running_tasks: Vec<TaskRef>,
}

async fn find_work(runtime: &RuntimeShared, entry: &SessionEntry) -> Result<SessionWork> {
    if entry.inbox_head > 0 && entry.head.seq == 0 {
        return Ok(SessionWork { is_due: true, ..SessionWork::default() });
    }
    if let Some(resting) = read_at_rest(&*runtime.journal, entry).await? {
        return Ok(SessionWork {
            is_due: resting.inbox_through < entry.inbox_head,
            ..SessionWork::default()
        });
    }
    let state = load(&*runtime.journal, &entry.key, entry.id).await?;
    let is_due = crate::session::Work::of(&state, entry.inbox_head, runtime.wake()).is_due();
    let running_tasks = state.tasks.running().map(|task| TaskRef::from(&task.started)).collect();
    Ok(SessionWork { is_due, running_tasks })
}

impl RuntimeShared {
    /// Whether another process that is not known to be gone holds the lease of a session. False if that can't be read.
    pub(crate) async fn is_held_elsewhere(&self, id: SessionId) -> bool {
        let holder = self.journal.holder(&StreamName::session(id)).await;
        holder.is_ok_and(|holder| holder.is_some_and(|holder| holder.is_another()))
    }
}

/// Wakes a session that is not in memory, after a wake signal for it.
pub(crate) async fn wake_stored_session(runtime: Arc<RuntimeShared>, id: SessionId) {
    if let Ok(Some(entry)) = runtime.journal.session_with_id(id).await
        && !entry.trashed
    {
        runtime.session_slot(&entry.key, Some(id)).wake(&runtime);
    }
}
