//! The records of a stream, page by page.

use longhaul_journal::{Error, Journal, records};
use longhaul_protocol::{Record, Seq, StreamName};

/// A record, or why there is none.
pub(super) enum Read<'a> {
    Record(&'a Record),
    Damaged { seq: Seq, reason: &'a str },
}

/// Shows every record between two places. A damaged one is said and passed over.
pub(super) async fn each(
    journal: &dyn Journal,
    stream: &StreamName,
    from: Seq,
    through: Seq,
    mut show: impl FnMut(Read<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut cursor = records(journal, stream, from).through(through);
    loop {
        match cursor.next().await {
            Ok(Some(record)) => show(Read::Record(&record))?,
            Ok(None) => return Ok(()),
            Err(Error::Damaged { seq, reason, .. }) => show(Read::Damaged { seq, reason: &reason })?,
            Err(error) => return Err(error.into()),
        }
    }
}
