//! A lease on a stream. It is renewed while a job works, and released when the job ends in any way.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Append, Journal, Lease};
use longhaul_protocol::StreamName;

use crate::{Error, Result};

const RENEW_INTERVAL: Duration = Duration::from_secs(2);

/// A lease that is released on drop, even if the job is cancelled.
pub(crate) struct LeaseGuard {
    journal: Arc<dyn Journal>,
    lease: Lease,
    is_released: bool,
}

impl LeaseGuard {
    /// Acquires the lease on a stream. Returns [`Error::Held`] if another process holds it.
    pub(crate) async fn acquire(journal: &Arc<dyn Journal>, stream: &StreamName) -> Result<Self> {
        let (journal, stream) = (journal.clone(), stream.clone());
        // In a separate task: a caller that is cancelled while it waits must not leave a lease that is never
        // released.
        let acquiring = tokio::spawn(async move {
            let lease = journal.acquire_lease(&stream).await?;
            Ok(Self { journal, lease, is_released: false })
        });
        match acquiring.await.unwrap_or(Err(longhaul_journal::Error::Closed)) {
            Ok(guard) => Ok(guard),
            Err(longhaul_journal::Error::Held { holder, .. }) => Err(Error::Held { holder }),
            Err(error) => Err(error.into()),
        }
    }

    /// An append under the lease.
    pub(crate) fn append(&self) -> Append {
        Append::under(&self.lease)
    }

    /// Releases the lease and waits until that is done, so that the next job can acquire it at once. If the release
    /// fails, the lease expires.
    pub(crate) async fn release(mut self) {
        let _ = self.journal.release_lease(&self.lease).await;
        self.is_released = true;
    }

    /// Waits for some work and renews the lease meanwhile. Fails if another process takes over the lease. A renewal
    /// that fails temporarily is repeated at the next interval, because the work costs money and the append after it
    /// checks the lease.
    pub(crate) async fn renew_during<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let mut work = std::pin::pin!(work);
        let mut renewals = tokio::time::interval(RENEW_INTERVAL);
        renewals.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                _ = renewals.tick() => match self.journal.renew_lease(&self.lease).await {
                    Err(error) if !error.may_pass() => return Err(error.into()),
                    _ => {}
                },
            }
        }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        if self.is_released {
            return;
        }
        // Without a Tokio runtime the process is about to end, and its leases end with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (journal, lease) = (self.journal.clone(), self.lease.clone());
            runtime.spawn(async move { journal.release_lease(&lease).await });
        }
    }
}
