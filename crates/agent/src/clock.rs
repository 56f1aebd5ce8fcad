use std::time::{SystemTime, UNIX_EPOCH};

use longhaul_protocol::At;

/// The current time, in milliseconds. The pure core does not call this, and records get their time from the journal.
pub fn now() -> At {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
