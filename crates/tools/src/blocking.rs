//! Work that blocks, on a thread of its own.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use tokio::task::{JoinError, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use crate::{Finished, Stop};

/// Says whether anybody still wants the work. Whoever works long asks it now and then.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted(Arc<AtomicBool>);

impl Wanted {
    pub(crate) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Ends the want when the future that waits for the work is dropped.
struct EndOnDrop(Wanted);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Does something that reads and can be given up at any time: when it is asked to stop, and when nobody waits any more.
pub(crate) async fn while_wanted(
    mut stop: Stop,
    work: impl FnOnce(&Wanted) -> Finished + Send + 'static,
) -> Finished {
    let wanted = Wanted::default();
    let guard = EndOnDrop(wanted.clone());
    let ended = unless(stop.asked(), spawn_blocking(move || work(&wanted))).await;
    drop(guard);
    match ended {
        Some(ended) => ended.unwrap_or_else(broken),
        None => Finished::error("stopped before it was done"),
    }
}

/// What comes of something, unless something else comes first.
pub(crate) async fn unless<T>(comes: impl Future<Output = ()>, wanted: impl Future<Output = T>) -> Option<T> {
    let (mut comes, mut wanted) = (pin!(comes), pin!(wanted));
    poll_fn(|context| match wanted.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => comes.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// What came first.
pub(crate) enum First<T> {
    Done(T),
    Due,
    Stopped,
}

/// What comes of something, unless its time is over or nobody wants it any more.
pub(crate) async fn until<T>(due: Instant, stop: &mut Stop, wanted: impl Future<Output = T>) -> First<T> {
    match unless(stop.asked(), timeout_at(due, wanted)).await {
        Some(Ok(output)) => First::Done(output),
        Some(Err(_)) => First::Due,
        None => First::Stopped,
    }
}

/// Does something to its end, even if nobody waits for it any more.
pub(crate) async fn to_the_end<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Finished> + Send + 'static,
) -> Result<T, Finished> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(broken(error)))
}

/// A mistake in a tool must not take the turn with it.
#[allow(clippy::needless_pass_by_value, reason = "it is what `unwrap_or_else` hands over")]
fn broken(error: JoinError) -> Finished {
    Finished::error(format!("the tool failed because of a mistake in it: {error}"))
}
