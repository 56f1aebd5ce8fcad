//! The life of a worker: take the lease, run, release the lease, retry after failures.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use longhaul_journal::{Error as JournalError, Lease};
use longhaul_protocol::{EventKind, SessionId, StreamName};

use crate::Error;
use crate::runtime::RuntimeShared;
use crate::runtime::slot::SessionSlot;
use crate::worker::commit::JOURNAL_RETRY_DELAY;
use crate::worker::{Worker, WorkerResult, WorkerStop};

/// Runs the worker of a session as long as the session has something to do.
pub(crate) async fn run(runtime: Arc<RuntimeShared>, slot: Arc<SessionSlot>) {
    let mut suspension = runtime.suspension();
    let mut forced_end = None;
    let mut delay = JOURNAL_RETRY_DELAY;
    loop {
        let stop = match run_with_lease(&runtime, &slot, forced_end.take()).await {
            // The lease is free only now: another process that sees no worker here can take it.
            Ok(()) if slot.try_remove_worker() => {
                runtime.worker_backoff.clear(&slot);
                return;
            }
            Ok(()) => continue,
            Err(WorkerStop::Failed(Error::Journal(error @ JournalError::Fenced { .. }))) => {
                WorkerStop::TakenOver(error)
            }
            Err(stop) => stop,
        };
        // Watchers are told even if no caller waits for an outcome.
        if let Some(text) = describe_stop(&stop, &slot.key) {
            let warning = EventKind::Warning { code: "session_stopped".to_owned(), text };
            slot.show(&slot.live_event(None, warning));
        }
        match &stop {
            // A passing failure: retry with back-off, so that accepted inputs don't wait for the next wake.
            WorkerStop::Failed(Error::Journal(error)) if error.may_pass() => {
                tokio::select! {
                    _ = suspension.wait_for(|suspended| *suspended) => {}
                    () = tokio::time::sleep(delay.next()) => continue,
                }
            }
            // This turn would fail again: retry once, only to end it.
            WorkerStop::Failed(Error::Worker { reason, .. })
                if runtime.worker_backoff.record_failure(&slot) == 1 =>
            {
                forced_end = Some(reason.clone());
                continue;
            }
            _ => {}
        }
        slot.remove_worker(&stop);
        if let (WorkerStop::TakenOver(JournalError::Draining { stream, .. }), Some(_)) =
            (&stop, slot.id.get())
        {
            // Another node goes on at once instead of at its next look.
            let _ = runtime.journal.wake_holder(stream).await;
        }
        return;
    }
}

/// What watchers are told, unless the stop is part of normal operation.
fn describe_stop(stop: &WorkerStop, key: &str) -> Option<String> {
    match stop {
        WorkerStop::Suspended | WorkerStop::HeldElsewhere(_) => None,
        WorkerStop::TakenOver(JournalError::Fenced { holder: Some(holder), .. }) => {
            Some(format!("{holder} took over {key}; it goes on there"))
        }
        WorkerStop::TakenOver(JournalError::Draining { .. }) => {
            Some(format!("this node is draining; {key} goes on at another node"))
        }
        WorkerStop::TakenOver(_) => Some(format!("another process took over {key}; it goes on there")),
        WorkerStop::Failed(error) => Some(error.to_string()),
    }
}

/// Takes the session's lease, works, and releases it. `forced_end` says why the open turn may only be ended.
async fn run_with_lease(
    runtime: &Arc<RuntimeShared>,
    slot: &Arc<SessionSlot>,
    forced_end: Option<String>,
) -> WorkerResult<()> {
    let id = slot.ensure_id(runtime).await?;
    match runtime.check_run_permission(id).await {
        // A task of this node has ended, and no other node can record that. The worker leaves again before it does anything else.
        Err(WorkerStop::HeldElsewhere(JournalError::Draining { .. })) if slot.has_task_reports() => {}
        permitted => permitted?,
    }
    let lease = acquire_lease(runtime, slot, id).await?;
    let worked = catch_panic(&slot.key, async {
        let worker = Worker::open(runtime, slot, id, lease.clone()).await?;
        worker.run(forced_end).await
    })
    .await;
    slot.hub.end_partial();
    slot.mark_worker_leaving();
    // If another process has taken over the lease, releasing it does nothing. If it can't be released now, the next
    // worker uses it.
    if runtime.journal.release_lease(&lease).await.is_err() {
        slot.keep_lease(lease);
    }
    worked
}

/// Takes the session's lease, or the one that could not be released last time.
async fn acquire_lease(runtime: &RuntimeShared, slot: &SessionSlot, id: SessionId) -> WorkerResult<Lease> {
    if let Some(kept) = slot.take_kept_lease() {
        match runtime.journal.renew_lease(&kept).await {
            Ok(()) => return Ok(kept),
            Err(error) if error.may_pass() => {
                slot.keep_lease(kept);
                return Err(error.into());
            }
            Err(_) => {}
        }
    }
    match runtime.journal.acquire_lease(&StreamName::session(id)).await {
        Ok(lease) => Ok(lease),
        Err(error @ JournalError::Held { .. }) => Err(WorkerStop::HeldElsewhere(error)),
        Err(error) => Err(error.into()),
    }
}

/// Turns a panic of the worker into an error, so that its lease is released and waiting callers are notified.
async fn catch_panic(key: &str, work: impl Future<Output = WorkerResult<()>>) -> WorkerResult<()> {
    let mut work = pin!(work);
    poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        polled.unwrap_or_else(|_| {
            let (key, reason) = (key.to_owned(), "it panicked".to_owned());
            Poll::Ready(Err(WorkerStop::Failed(Error::Worker { key, reason })))
        })
    })
    .await
}
