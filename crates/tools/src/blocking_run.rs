//! Blocking work of tools on threads of its own, and waiting for it with a deadline or until it is cancelled.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use crate::{StopSignal, ToolOutcome};

/// Tells blocking work that its call was cancelled. The work asks it between two steps.
#[derive(Debug, Clone, Default)]
pub(crate) struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Cancels the work when the future that waits for it is dropped.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs work that only reads. It is cancelled when the call is asked to stop and when this future is dropped.
pub(crate) async fn run_cancellable(
    mut stop: StopSignal,
    work: impl FnOnce(&CancelFlag) -> ToolOutcome + Send + 'static,
) -> ToolOutcome {
    let cancel = CancelFlag::default();
    let _guard = CancelOnDrop(cancel.clone());
    match run_unless(stop.asked(), spawn_blocking(move || work(&cancel))).await {
        Some(ended) => ended.unwrap_or_else(panicked),
        None => ToolOutcome::error("stopped before it was done"),
    }
}

/// The output of `work`, or `None` if `interrupt` is ready first.
pub(crate) async fn run_unless<T>(
    interrupt: impl Future<Output = ()>,
    work: impl Future<Output = T>,
) -> Option<T> {
    let (mut interrupt, mut work) = (pin!(interrupt), pin!(work));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => interrupt.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// How a wait with a deadline ended.
pub(crate) enum WaitOutcome<T> {
    Done(T),
    DeadlinePassed,
    Stopped,
}

/// Waits for `work`, up to a deadline and until the call is asked to stop.
pub(crate) async fn run_before<T>(
    deadline: Instant,
    stop: &mut StopSignal,
    work: impl Future<Output = T>,
) -> WaitOutcome<T> {
    match run_unless(stop.asked(), timeout_at(deadline, work)).await {
        Some(Ok(output)) => WaitOutcome::Done(output),
        Some(Err(_)) => WaitOutcome::DeadlinePassed,
        None => WaitOutcome::Stopped,
    }
}

/// Runs work to its end, even if this future is dropped meanwhile.
pub(crate) async fn run_to_completion<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolOutcome> + Send + 'static,
) -> Result<T, ToolOutcome> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(panicked(error)))
}

/// A panic in a tool fails its call, not the turn.
#[allow(clippy::needless_pass_by_value, reason = "it is what `unwrap_or_else` hands over")]
fn panicked(error: JoinError) -> ToolOutcome {
    ToolOutcome::error(format!("the tool failed because of a mistake in it: {error}"))
}
