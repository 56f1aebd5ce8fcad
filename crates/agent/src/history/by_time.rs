//! Finds a position in a stream by time.

use longhaul_journal::{Error, Journal, Result, record_at};
use longhaul_protocol::{At, Seq, StreamName};

/// The first record of a stream since a time, or the position after its end if there is none. Times grow with
/// positions unless the clock was set back. Then some records may be missed.
pub(crate) async fn first_since(
    journal: &dyn Journal,
    stream: &StreamName,
    head: Seq,
    since: At,
) -> Result<Seq> {
    let (mut from, mut to) = (1, head + 1);
    while from < to {
        let middle = from.midpoint(to);
        let record = match record_at(journal, stream, middle).await {
            // A damaged record says nothing about the others.
            Err(Error::Damaged { .. }) => None,
            record => record?,
        };
        if record.is_some_and(|record| record.at < since) { from = middle + 1 } else { to = middle }
    }
    Ok(from)
}
