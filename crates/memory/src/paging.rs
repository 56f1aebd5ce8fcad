//! Records of a stream from a place on, a page at a time. What is damaged is passed over: there is nothing to be learnt from it, and
//! what comes after it may be read.

use longhaul_journal::{Error, Journal, Page, records};
use longhaul_protocol::{Record, Seq, StreamName};

use crate::Result;

/// So many records are in memory at once, if they are small.
pub(crate) const PAGE: Page = Page { records: 64, bytes: 256 << 10 };

/// The next records from a place on, of which there may be none, and where those after them begin; nothing at the end.
pub(crate) async fn read_from(
    journal: &dyn Journal,
    stream: &StreamName,
    from: Seq,
) -> Result<Option<(Vec<Record>, Seq)>> {
    match journal.read(stream, from, PAGE).await {
        Ok(records) => Ok(records.last().map(|last| last.seq + 1).map(|next| (records, next))),
        Err(Error::Damaged { seq, .. }) => {
            let next = seq.max(from) + 1;
            let head = journal.head(stream).await?.seq;
            Ok((from <= head).then_some((vec![], next)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Takes every record after a place, and says which was the last.
pub(crate) async fn read_after(
    journal: &dyn Journal,
    stream: &StreamName,
    after: Seq,
    mut take: impl FnMut(Record),
) -> Result<Seq> {
    let mut cursor = records(journal, stream, after + 1).in_pages_of(PAGE);
    while let Some(record) = cursor.next_undamaged().await? {
        take(record);
    }
    Ok(cursor.next_seq() - 1)
}
