use longhaul_protocol::{NewRecord, Seq, SessionId, StreamName};

use crate::{Append, Error, Journal, Result};

/// What is larger than this is not accepted: taking it into a session must always be possible.
const LARGEST_INPUT: usize = 8 << 20;

/// Puts an input or an order into a session's inbox and rings whoever holds the session. Returns its place there,
/// which is that of the first one if the same key was put before. When this returns it is on disk: only now may
/// it be acknowledged.
pub async fn put(journal: &dyn Journal, session: SessionId, record: NewRecord) -> Result<Seq> {
    let seq = accept(journal, session, record).await?;
    // The input is accepted, whether or not anybody could be told of it.
    let _ = journal.ring(&StreamName::session(session)).await;
    Ok(seq)
}

/// Whether an input or an order can be accepted. Whoever would make a session for it asks this first.
pub fn check_size(record: &NewRecord) -> Result<()> {
    let (what, bytes, limit) = ("an input", record.body.get().len(), LARGEST_INPUT);
    if bytes > limit { Err(Error::TooLarge { what, bytes, limit }) } else { Ok(()) }
}

/// The same without the ring, for whoever has something to say before the session begins to act on it.
pub async fn accept(journal: &dyn Journal, session: SessionId, record: NewRecord) -> Result<Seq> {
    check_size(&record)?;
    let inbox = StreamName::inbox(session);
    match journal.append(Append::to(&inbox).record(record)).await {
        Ok(records) => Ok(records[0].seq),
        Err(Error::Duplicate { seq, .. }) => Ok(seq),
        Err(error) => Err(error),
    }
}
