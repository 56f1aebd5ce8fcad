//! The check of one session: whether it is idle, and the result of its jobs.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Holder, SessionEntry};
use longhaul_protocol::{Seq, SessionId, StreamName};

use super::activity::{ClockReading, is_idle};
use super::scheduler::{EXTRACT_WITHIN, SessionJob};
use crate::Error;
use crate::memory::check_after_turn;
use crate::replay::load;
use crate::runtime::RuntimeShared;
use crate::session::work::Work;
use crate::worker::{WorkerResult, WorkerStop};

/// The heads of a session's stream and of its inbox. While they do not change, nothing is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StreamHeads {
    pub(super) head: Seq,
    pub(super) inbox_head: Seq,
}

impl StreamHeads {
    pub(super) fn of(entry: &SessionEntry) -> Self {
        Self { head: entry.head.seq, inbox_head: entry.inbox_head }
    }
}

#[derive(Debug)]
pub(super) enum CheckResult {
    /// There is nothing to do until these heads change.
    UpToDate(StreamHeads),
    /// The session is in use, here or in another process. The next check tries again.
    Busy,
    Failed(Error),
}

impl From<WorkerStop> for CheckResult {
    fn from(stop: WorkerStop) -> Self {
        match stop {
            WorkerStop::Failed(Error::Memory(longhaul_memory::Error::Held { .. })) => Self::Busy,
            WorkerStop::Failed(error) => Self::Failed(error),
            WorkerStop::Suspended | WorkerStop::HeldElsewhere(_) | WorkerStop::TakenOver(_) => Self::Busy,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Idleness {
    Active,
    Idle,
    /// It was not used this week, is in the trash or has no records, so it has no jobs.
    Dormant,
}

/// Whether a session is idle, according to its entry in the list of sessions.
pub(super) fn idleness(runtime: &RuntimeShared, entry: &SessionEntry, clock: ClockReading) -> Idleness {
    let Some(last_at) = entry.last_at.filter(|_| !entry.trashed) else { return Idleness::Dormant };
    let idle_time = runtime.activity.idle_time(entry.id, last_at, clock);
    if runtime.activity.is_in_turn(entry.id) && runtime.works_at(entry.id) {
        Idleness::Active
    } else if idle_time > EXTRACT_WITHIN {
        Idleness::Dormant
    } else if is_idle(idle_time, runtime.idle.interval()) {
        Idleness::Idle
    } else {
        Idleness::Active
    }
}

/// Checks a session again, because it may have been listed long ago, and runs its jobs.
pub(super) async fn run_session_jobs(
    runtime: Arc<RuntimeShared>,
    jobs: Arc<[SessionJob]>,
    id: SessionId,
) -> CheckResult {
    run_jobs(&runtime, &jobs, id).await.unwrap_or_else(CheckResult::from)
}

/// Extracts a session in which a turn has ended, if enough is new.
pub(super) async fn run_after_turn(runtime: Arc<RuntimeShared>, id: SessionId, key: String) -> CheckResult {
    let slot = runtime.session_slot(&key, Some(id));
    match check_after_turn(&runtime, &slot, id).await {
        // There may be more to do when the session is idle.
        Ok(()) => CheckResult::Busy,
        Err(error) => WorkerStop::from(error).into(),
    }
}

async fn run_jobs(
    runtime: &Arc<RuntimeShared>,
    jobs: &[SessionJob],
    id: SessionId,
) -> WorkerResult<CheckResult> {
    let Some(entry) = runtime.journal.session_with_id(id).await? else { return Ok(CheckResult::Busy) };
    let clock = ClockReading::now();
    if idleness(runtime, &entry, clock) != Idleness::Idle {
        return Ok(CheckResult::Busy);
    }
    let idle_time = entry.last_at.map_or(Duration::MAX, |at| runtime.activity.idle_time(id, at, clock));
    let holder = runtime.journal.holder(&StreamName::session(id)).await?;
    if holder.as_ref().is_some_and(Holder::is_another) {
        return Ok(CheckResult::Busy);
    }
    let state = load(&*runtime.journal, &entry.key, id).await?;
    // Only the records decide, so that the answer can't change before the heads do.
    if !Work::of(&state, entry.inbox_head, runtime.wake()).is_due() {
        let slot = runtime.session_slot(&entry.key, Some(id));
        let mut failure = None;
        for job in jobs.iter().filter(|job| idle_time <= job.within) {
            // A failed job does not stop the others.
            if let Err(error) = (job.run)(runtime, &slot, &state).await {
                failure.get_or_insert(error);
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
    }
    Ok(CheckResult::UpToDate(StreamHeads::of(&entry)))
}
