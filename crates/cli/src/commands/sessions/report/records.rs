//! The records of a stream, page by page.

use longhaul_journal::{Error, Journal, Page};
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
    let mut next = from.max(1);
    while next <= through {
        match journal.read(stream, next, Page::default()).await {
            Ok(page) => {
                let Some(last) = page.last() else { break };
                next = last.seq + 1;
                for record in page.iter().filter(|record| record.seq <= through) {
                    show(Read::Record(record))?;
                }
            }
            Err(Error::Damaged { seq, reason, .. }) => {
                show(Read::Damaged { seq, reason: &reason })?;
                next = next.max(seq) + 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
