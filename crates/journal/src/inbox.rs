//! The inbox of a session, from the sender's side.

use longhaul_protocol::{NewRecord, Seq, SessionId, StreamName};

use crate::{Append, Blob, Error, Journal, Result};

/// The session appends every input to its own stream, together with other fields. So this limit is well below that of
/// an append.
const MAX_INPUT_BYTES: usize = 8 << 20;

/// Appends an input or an order to a session's inbox and wakes the session's holder. Returns its position. If a
/// record with the same key exists, returns the position of that one. The record is on disk when this returns: only
/// then may the caller acknowledge it.
pub async fn put(journal: &dyn Journal, session: SessionId, record: NewRecord) -> Result<Seq> {
    put_with_blobs(journal, session, record, vec![]).await
}

/// Like [`put`], with the blobs that the record refers to.
pub async fn put_with_blobs(
    journal: &dyn Journal,
    session: SessionId,
    record: NewRecord,
    blobs: Vec<Blob>,
) -> Result<Seq> {
    let seq = accept_with_blobs(journal, session, record, blobs).await?;
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
    accept_with_blobs(journal, session, record, vec![]).await
}

/// Like [`accept`], with the blobs that the record refers to.
pub async fn accept_with_blobs(
    journal: &dyn Journal,
    session: SessionId,
    record: NewRecord,
    blobs: Vec<Blob>,
) -> Result<Seq> {
    check_size(&record)?;
    let inbox = StreamName::inbox(session);
    let append = blobs.into_iter().fold(Append::to(&inbox).record(record), Append::blob);
    match journal.append(append).await {
        Ok(records) => Ok(records[0].seq),
        Err(Error::Duplicate { seq, .. }) => Ok(seq),
        Err(error) => Err(error),
    }
}
