//! Imports a session from an exported file, under the session's lease.
//!
//! The records come first, in parts and without a name. Then come the record `imported` and the name. So a session
//! that can be found by a key is complete and marked. The next import of the same file removes the remains of a
//! crash.

use std::path::Path;

use longhaul_protocol::{SessionId, StreamName};

use crate::export_file::{ExportLine, ExportReader, Header, VerifiedExport, verify_file};
use crate::import_mark::{ImportOptions, ImportedFile, mark_imported};
use crate::{Error, Head, Imported, Journal, Lease, Page, Result, names};

/// Imports a session from a file, under its own key or another. The whole file is verified before anything is written.
pub async fn import_session(journal: &dyn Journal, file: &Path, options: &ImportOptions) -> Result<Imported> {
    let verified = verify_file(file)?;
    let header = &verified.header;
    let key = &choose_key(file, header, options)?;
    if journal.session(key).await?.is_some() {
        return Err(Error::SessionExists { key: key.to_owned() });
    }
    refuse_existing(journal, file, header).await?;
    let lease = acquire_empty_session(journal, header).await?;
    if let Err(refused) = refuse_existing(journal, file, header).await {
        journal.release_lease(&lease).await?;
        return Err(refused);
    }
    if let Err(error) = import_records(journal, &lease, file, &verified, key, options).await {
        // A process that has taken over the lease may use the records. If removing them fails, the next import
        // removes them, and the caller gets the first error.
        let is_ours = !matches!(error, Error::Fenced { .. });
        if is_ours && matches!(existing_key(journal, header.id).await, Ok(None)) {
            let _ = remove_leftovers(journal, &lease, header).await;
        }
        let _ = journal.release_lease(&lease).await;
        return Err(error);
    }
    journal.release_lease(&lease).await?;
    Ok(Imported { key: key.to_owned(), id: header.id, records: verified.records, blobs: verified.blobs })
}

/// The key for the session: the caller's, otherwise the one in the file.
fn choose_key(file: &Path, header: &Header, options: &ImportOptions) -> Result<String> {
    if let Some(key) = &options.key {
        names::check_key(key)?;
        return Ok(key.clone());
    }
    let key = &header.key;
    let reason = match names::check_key(key) {
        Err(Error::BadKey { reason, .. }) => Some(reason),
        _ if key.starts_with('-') => Some("it starts with a dash, like an option"),
        _ => None,
    };
    match reason {
        None => Ok(key.clone()),
        Some(reason) => {
            let reason = format!("its key can't be used ({reason}); give it another with --as");
            Err(Error::BadFile { path: file.to_owned(), reason })
        }
    }
}

/// Refuses a session that is already in this journal.
async fn refuse_existing(journal: &dyn Journal, file: &Path, header: &Header) -> Result<()> {
    let Some(known) = existing_key(journal, header.id).await? else { return Ok(()) };
    let reason = format!("its session {} is here already, as {known:?}", header.id);
    Err(Error::BadFile { path: file.to_owned(), reason })
}

/// Acquires the lease on a session, and removes records without a name, which an interrupted import has left. Another
/// import under way holds the lease.
async fn acquire_empty_session(journal: &dyn Journal, header: &Header) -> Result<Lease> {
    let session = StreamName::session(header.id);
    loop {
        let lease = journal.acquire_lease(&session).await?;
        if existing_key(journal, header.id).await?.is_some() || is_empty(journal, header).await? {
            return Ok(lease);
        }
        remove_leftovers(journal, &lease, header).await?;
    }
}

async fn is_empty(journal: &dyn Journal, header: &Header) -> Result<bool> {
    // The session's own stream may be missing in the file, but an interrupted import may have put the mark there.
    for stream in header.streams.keys().chain([&StreamName::session(header.id)]) {
        if journal.head(stream).await? != Head::EMPTY {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes the streams of a session without a name. The session's own stream comes last, because the lease ends with
/// it.
async fn remove_leftovers(journal: &dyn Journal, lease: &Lease, header: &Header) -> Result<()> {
    for stream in header.streams.keys().filter(|stream| **stream != lease.stream) {
        journal.remove(stream, None).await?;
    }
    journal.remove(&lease.stream, Some(lease)).await
}

async fn existing_key(journal: &dyn Journal, id: SessionId) -> Result<Option<String>> {
    Ok(journal.session_with_id(id).await?.map(|entry| entry.key))
}

/// Adds the records in parts, then the mark, then the name.
async fn import_records(
    journal: &dyn Journal,
    lease: &Lease,
    file: &Path,
    verified: &VerifiedExport,
    key: &str,
    options: &ImportOptions,
) -> Result<()> {
    let header = &verified.header;
    let mut lines = ExportReader::open(file)?;
    lines.next()?;
    let (mut records, mut blobs, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let Some(line) = lines.next()? {
        bytes += line.len();
        match lines.parse(&line)? {
            ExportLine::Blob(blob) => blobs.push(blob),
            ExportLine::Record(record) if !header.streams.contains_key(&record.stream) => {
                return Err(lines.changed());
            }
            ExportLine::Record(record) => {
                records.push(record);
                // Only after a record, because a blob must come with the record that refers to it.
                if bytes > Page::default().bytes {
                    journal.adopt(lease, std::mem::take(&mut records), std::mem::take(&mut blobs)).await?;
                    bytes = 0;
                }
            }
            ExportLine::End(_) => break,
        }
    }
    // The file may have been replaced since it was verified.
    if lines.hash_so_far() != verified.file_hash {
        return Err(lines.changed());
    }
    journal.adopt(lease, records, blobs).await?;
    let head_of = |stream: StreamName| header.streams.get(&stream).map_or(0, |head| head.seq);
    let file = ImportedFile {
        id: header.id,
        key,
        file_hash: verified.file_hash,
        session_head: head_of(StreamName::session(header.id)),
        inbox_head: head_of(StreamName::inbox(header.id)),
        extract_head: head_of(StreamName::extract(header.id)),
        earlier: &verified.earlier,
    };
    mark_imported(journal, lease, &file, options).await?;
    match names::bind_key(journal, key, header.id).await? {
        id if id == header.id => Ok(()),
        _ => Err(Error::SessionExists { key: key.to_owned() }),
    }
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
