//! Sessions that fail again and again are tried again, ever less often.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use longhaul_protocol::SessionId;
use tokio::time::Instant;

use crate::runtime::lock;
use crate::runtime::slot::Shared;

const FIRST_DELAY: Duration = Duration::from_secs(1);
const LONGEST_DELAY: Duration = Duration::from_secs(600);

/// How often each session has failed in a row, and when.
#[derive(Default)]
pub(crate) struct Failures(Mutex<HashMap<SessionId, (u32, Instant)>>);

impl Failures {
    /// A session has failed; how often that makes it.
    pub(crate) fn note(&self, shared: &Shared) -> u32 {
        let Some(id) = shared.id.get() else { return 0 };
        let mut failures = lock(&self.0);
        let entry = failures.entry(*id).or_insert((0, Instant::now()));
        *entry = (entry.0 + 1, Instant::now());
        entry.0
    }

    /// A session came to rest.
    pub(crate) fn forget(&self, shared: &Shared) {
        if let Some(id) = shared.id.get() {
            lock(&self.0).remove(id);
        }
    }

    /// Whether it is too early to try a session again by itself.
    pub(crate) fn too_early(&self, id: SessionId) -> bool {
        let failures = lock(&self.0);
        failures.get(&id).is_some_and(|(times, at)| {
            let delay = FIRST_DELAY.saturating_mul(1 << times.min(&20)).min(LONGEST_DELAY);
            at.elapsed() < delay
        })
    }
}
