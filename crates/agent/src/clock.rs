use std::time::{SystemTime, UNIX_EPOCH};

use longhaul_protocol::At;

/// This moment. Only the shell asks for it; what is recorded has its time from the journal.
pub(crate) fn now() -> At {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
