//! The inbox of a session, from the sender's side.

use longhaul_protocol::{NewRecord, Seq, SessionId, StreamName};

use crate::{Append, Error, Journal, Result};

/// The session appends every input to its own stream, together with other fields. So this limit is well below that of
/// an append.
const MAX_INPUT_BYTES: usize = 8 << 20;

/// Appends an input or an order to a session's inbox and wakes the session's holder. Returns its position. If a
/// record with the same key exists, returns the position of that one. The record is on disk when this returns: only
/// then may the caller acknowledge it.
pub async fn put(journal: &dyn Journal, session: SessionId, record: NewRecord) -> Result<Seq> {
    let seq = accept(journal, session, record).await?;
    // The input is accepted even if the holder can't be reached.
    let _ = journal.wake_holder(&StreamName::session(session)).await;
    Ok(seq)
}

/// Checks that an input or an order can be accepted. Call this before creating a session for it.
pub fn check_size(record: &NewRecord) -> Result<()> {
    let (what, bytes, limit) = ("an input", record.body.get().len(), MAX_INPUT_BYTES);
    if bytes > limit { Err(Error::TooLarge { what, bytes, limit }) } else { Ok(()) }
}

/// Like [`put`], but does not wake the holder. For a caller that has work to do before the session acts on the input.
pub async fn accept(journal: &dyn Journal, session: SessionId, record: NewRecord) -> Result<Seq> {
    check_size(&record)?;
    let inbox = StreamName::inbox(session);
    match journal.append(Append::to(&inbox).record(record)).await {
        Ok(records) => Ok(records[0].seq),
        Err(Error::Duplicate { seq, .. }) => Ok(seq),
        Err(error) => Err(error),
    }
}
