//! The whole output of a call, for people.

use longhaul_journal::Journal;
use longhaul_protocol::{CallId, SessionId, StreamName};

use crate::Result;
use crate::turn::full_output::find_output;

/// The whole output of a call, of which the model read only head and tail. `None` if it was not truncated.
pub async fn call_output(journal: &dyn Journal, session: SessionId, call: CallId) -> Result<Option<Vec<u8>>> {
    match find_output(journal, &StreamName::session(session), call).await? {
        Some(blob) => Ok(Some(journal.blob(blob.hash).await?)),
        None => Ok(None),
    }
}
