//! Reads a stream page by page. Skips damaged records, because later ones may be readable.

use longhaul_journal::{Error, Journal, Page, records};
use longhaul_protocol::{Record, Seq, StreamName};

use crate::Result;

/// Limits how much is in memory at once.
pub(crate) const PAGE_LIMIT: Page = Page { records: 64, bytes: 256 << 10 };

/// The next page of records, which may be empty, and where the page after it begins. `None` at the end of the stream.
pub(crate) async fn read_page_from(
    journal: &dyn Journal,
    stream: &StreamName,
    from: Seq,
) -> Result<Option<(Vec<Record>, Seq)>> {
    match journal.read(stream, from, PAGE_LIMIT).await {
        Ok(records) => Ok(records.last().map(|last| last.seq + 1).map(|next| (records, next))),
        Err(Error::Damaged { seq, .. }) => {
            let next = seq.max(from) + 1;
            let head = journal.head(stream).await?.seq;
            Ok((from <= head).then_some((vec![], next)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Passes every record after `after` to `take`, and returns the number of the last one.
pub(crate) async fn read_all_after(
    journal: &dyn Journal,
    stream: &StreamName,
    after: Seq,
    mut take: impl FnMut(Record),
) -> Result<Seq> {
    let mut cursor = records(journal, stream, after + 1).in_pages_of(PAGE_LIMIT);
    while let Some(record) = cursor.next_undamaged().await? {
        take(record);
    }
    Ok(cursor.next_seq() - 1)
}
