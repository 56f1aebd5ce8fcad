//! Whether the journal can be written.

use std::time::{Duration, Instant};

use longhaul_journal::{Error, Journal};
use longhaul_protocol::StreamName;

/// How often the journal is tried at most, however many probes ask.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a write may take.
const WRITE_TIMEOUT: Duration = Duration::from_secs(2);

/// The last result, and when it was found.
#[derive(Default)]
pub(crate) struct Readiness(tokio::sync::Mutex<Option<(Instant, bool)>>);

impl Readiness {
    /// Whether the journal could be written within the last second. Probes that come together wait for one check.
    pub(crate) async fn is_writable(&self, journal: &dyn Journal) -> bool {
        let mut last = self.0.lock().await;
        if let Some((at, result)) = &*last
            && at.elapsed() < CHECK_INTERVAL
        {
            return *result;
        }
        let written = tokio::time::timeout(WRITE_TIMEOUT, write(journal)).await;
        let result = matches!(written, Ok(Ok(())));
        *last = Some((Instant::now(), result));
        result
    }
}

/// Takes and releases a lease, which is a write like any other and leaves no record.
async fn write(journal: &dyn Journal) -> longhaul_journal::Result<()> {
    match journal.acquire_lease(&StreamName::readiness()).await {
        Ok(lease) => journal.release_lease(&lease).await,
        // Another server tries at the same moment.
        Err(Error::Held { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
