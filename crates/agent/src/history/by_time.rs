//! Finding a place in a stream by time.

use longhaul_journal::{Error, Journal, Page, Result};
use longhaul_protocol::{At, Seq, StreamName};

/// The first record of a stream since a moment; the place after its end if there is none. Times grow with places, unless
/// the clock was set back; then some may be missed.
pub(crate) async fn first_since(
    journal: &dyn Journal,
    stream: &StreamName,
    head: Seq,
    since: At,
) -> Result<Seq> {
    let (mut from, mut to) = (1, head + 1);
    while from < to {
        let middle = from.midpoint(to);
        let record = match journal.read(stream, middle, Page { records: 1, bytes: 0 }).await {
            // One that is damaged says nothing about the others.
            Err(Error::Damaged { .. }) => None,
            page => page?.pop(),
        };
        if record.is_some_and(|record| record.at < since) { from = middle + 1 } else { to = middle }
    }
    Ok(from)
}
