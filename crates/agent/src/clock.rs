use std::time::SystemTime;

use longhaul_protocol::At;

/// The current time, in milliseconds. The pure core does not call this, and records get their time from the journal.
pub fn now() -> At {
    SystemTime::now().into()
}
