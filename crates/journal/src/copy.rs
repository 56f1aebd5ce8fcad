//! Copies a whole journal to another one, whatever their engines (N5).
//!
//! Each record keeps its position, time and hash, so the copy is as good as the original. The target must be empty, or hold the
//! beginning of the same journal: then the copy goes on where it stopped.
//!
//! | killed | in the target | next |
//! | --- | --- | --- |
//! | between two pages | the streams and pages before it | the same command goes on after them |
//! | within a page | nothing of the page: a page is one commit | the same |
//! | while a stream's lease is held | the lease, until its holder is seen to be gone or it expires | the same |
//! | before everything was compared | everything | the same command compares it |

use longhaul_protocol::{Body, Record, Seq, StreamName, blob_refs};

use crate::{Blob, Error, Head, Journal, Lease, Page, Result, VerifyReport};

/// Records that are copied in one commit.
const PAGE: Page = Page { records: 1_000, bytes: 4 << 20 };
/// Bytes of the blobs that are copied in one commit.
const MAX_BLOB_BYTES: u64 = 32 << 20;

/// How far a copy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyProgress {
    pub streams_done: usize,
    pub streams: usize,
    /// Records that this call has copied.
    pub records: u64,
}

/// The result of a copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyReport {
    /// Records that this call copied.
    pub copied: u64,
    /// Records that an earlier call had copied.
    pub kept: u64,
    /// What the copy holds.
    pub report: VerifyReport,
}

/// Copies every stream, compares every record, and verifies the copy. `names` say the two journals in errors.
pub async fn copy_journal(
    from: &dyn Journal,
    to: &dyn Journal,
    names: (&str, &str),
    mut progress: impl FnMut(CopyProgress),
) -> Result<CopyReport> {
    let all = streams_with_records(from).await?;
    refuse_other_content(to, &all, names).await?;
    let (mut copied, mut kept) = (0, 0);
    for (done, (stream, head)) in all.iter().enumerate() {
        progress(CopyProgress { streams_done: done, streams: all.len(), records: copied });
        let before = continued_head(from, to, stream, names).await?;
        kept += before;
        if before < head.seq {
            copied += copy_stream(from, to, stream, before, head.seq).await?;
        }
    }
    progress(CopyProgress { streams_done: all.len(), streams: all.len(), records: copied });
    compare(from, to, names).await?;
    let report = to.verify().await?;
    Ok(CopyReport { copied, kept, report })
}

/// The streams of a journal that have records, with their heads. A stream that only has a lease is not copied.
async fn streams_with_records(journal: &dyn Journal) -> Result<Vec<(StreamName, Head)>> {
    let mut found = Vec::new();
    for stream in journal.streams().await? {
        let head = journal.head(&stream).await?;
        if head != Head::EMPTY {
            found.push((stream, head));
        }
    }
    Ok(found)
}

fn refusal((from, to): (&str, &str), reason: &str) -> Error {
    Error::BadCopy { from: from.to_owned(), to: to.to_owned(), reason: reason.to_owned() }
}

/// Refuses a target that has streams which the source doesn't have.
async fn refuse_other_content(
    to: &dyn Journal,
    all: &[(StreamName, Head)],
    names: (&str, &str),
) -> Result<()> {
    for (stream, _) in streams_with_records(to).await? {
        if !all.iter().any(|(known, _)| *known == stream) {
            return Err(refusal(names, &format!("the target is not empty: it has {stream}")));
        }
    }
    Ok(())
}

/// The last record that an earlier copy has brought. Refuses a target whose stream is not the beginning of the source's.
async fn continued_head(
    from: &dyn Journal,
    to: &dyn Journal,
    stream: &StreamName,
    names: (&str, &str),
) -> Result<Seq> {
    let there = to.head(stream).await?;
    if there == Head::EMPTY {
        return Ok(0);
    }
    let here = crate::record_at(from, stream, there.seq).await?;
    if here.is_some_and(|here| here.hash == there.hash) {
        return Ok(there.seq);
    }
    Err(refusal(names, &format!("the target is not empty: its {stream} is another one")))
}

/// Copies the records after `after`, page by page.
async fn copy_stream(
    from: &dyn Journal,
    to: &dyn Journal,
    stream: &StreamName,
    after: Seq,
    through: Seq,
) -> Result<u64> {
    let lease = to.acquire_lease(stream).await?;
    let copied = copy_pages(from, to, &lease, after, through).await;
    to.release_lease(&lease).await?;
    copied
}

async fn copy_pages(
    from: &dyn Journal,
    to: &dyn Journal,
    lease: &Lease,
    mut after: Seq,
    through: Seq,
) -> Result<u64> {
    let mut copied = 0;
    while after < through {
        let mut records = from.read(&lease.stream, after + 1, PAGE).await?;
        records.retain(|record| record.seq <= through);
        records.truncate(count_within(&records, MAX_BLOB_BYTES));
        let Some(last) = records.last() else { break };
        after = last.seq;
        copied += records.len() as u64;
        let blobs = blobs_of(from, &records).await?;
        to.adopt(lease, records, blobs).await?;
    }
    Ok(copied)
}

/// How many of the first records have blobs of at most this many bytes together; at least one.
fn count_within(records: &[Record], most: u64) -> usize {
    let mut bytes: u64 = 0;
    let fits = |record: &&Record| {
        let own = record.text().into_iter().flat_map(blob_refs).map(|blob| blob.bytes).sum();
        bytes = bytes.saturating_add(own);
        bytes <= most
    };
    records.iter().take_while(fits).count().max(1)
}

/// The blobs that records refer to. One that was lost to damage is lost in the copy, too.
async fn blobs_of(from: &dyn Journal, records: &[Record]) -> Result<Vec<Blob>> {
    let mut blobs: Vec<Blob> = Vec::new();
    for blob in records.iter().filter_map(Record::text).flat_map(blob_refs) {
        if blobs.iter().any(|known| known.hash() == blob.hash) {
            continue;
        }
        blobs.push(match from.blob(blob.hash).await {
            Ok(bytes) => Blob::new(bytes),
            Err(Error::NoSuchBlob { hash }) => Blob::lost(hash),
            Err(error) => return Err(error),
        });
    }
    Ok(blobs)
}

/// Compares all records of both journals: a body that was erased since an earlier copy differs, and so does a stream that
/// another process went on writing.
async fn compare(from: &dyn Journal, to: &dyn Journal, names: (&str, &str)) -> Result<()> {
    let all = streams_with_records(from).await?;
    refuse_other_content(to, &all, names).await?;
    for (stream, head) in all {
        let mut next = 1;
        while next <= head.seq {
            let (ours, theirs) = (from.read(&stream, next, PAGE).await?, to.read(&stream, next, PAGE).await?);
            let count = ours.len().min(theirs.len());
            if count == 0 {
                let changed = format!(
                    "{stream} was written meanwhile; stop its processes and run the same command again"
                );
                return Err(refusal(names, &changed));
            }
            for (one, other) in ours.iter().zip(&theirs) {
                if one.hash != other.hash || is_gone(one) != is_gone(other) {
                    let reason =
                        format!("entry {} of {stream} differs; begin again with an empty target", one.seq);
                    return Err(refusal(names, &reason));
                }
            }
            next += count as Seq;
        }
    }
    Ok(())
}

fn is_gone(record: &Record) -> bool {
    matches!(record.body, Body::Gone(_))
}
