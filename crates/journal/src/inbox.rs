use longhaul_protocol::{NewRecord, Seq, SessionId, StreamName};

use crate::{Append, Error, Journal, Result};

/// Puts an input or an order into a session's inbox and rings whoever holds the session. Returns its place there,
/// which is that of the first one if the same key was put before. When this returns it is on disk: only now may
/// it be acknowledged.
pub async fn put(journal: &dyn Journal, session: SessionId, record: NewRecord) -> Result<Seq> {
    let inbox = StreamName::inbox(session);
    let seq = match journal.append(Append::to(&inbox).record(record)).await {
        Ok(records) => records[0].seq,
        Err(Error::Duplicate { seq, .. }) => seq,
        Err(error) => return Err(error),
    };
    journal.ring(&StreamName::session(session)).await?;
    Ok(seq)
}
