//! Exports a session to one file. `export_file` has the format.

use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_protocol::{Hash, SessionId, StreamName, blob_refs};
use serde::Serialize;

use crate::export_file::{BlobLine, EndLine, FORMAT, Header};
use crate::home::io_error;
use crate::{Error, Head, Journal, Result, names, records};

/// The size of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportReport {
    /// The session's key.
    pub key: String,
    /// Its id.
    pub id: SessionId,
    /// Records of all its streams.
    pub records: u64,
    /// Blobs that these refer to.
    pub blobs: u64,
}

/// The size of an import.
pub type Imported = ExportReport;

/// Writes a session with its inbox and its extracts, as they are now, to `out`.
pub async fn export_session(
    journal: &dyn Journal,
    key: &str,
    out: &mut (dyn Write + Send),
) -> Result<ExportReport> {
    let out = &mut HashingWriter { out, hasher: blake3::Hasher::new() };
    let session = names::resolve(journal, key).await?;
    let mut streams = BTreeMap::new();
    for stream in
        [StreamName::session(session.id), StreamName::inbox(session.id), StreamName::extract(session.id)]
    {
        let head = journal.head(&stream).await?;
        if head != Head::EMPTY {
            streams.insert(stream, head);
        }
    }
    let mut exported = ExportReport { key: session.key.clone(), id: session.id, records: 0, blobs: 0 };
    write_line(
        out,
        &Header { longhaul_export: FORMAT, key: session.key, id: session.id, streams: streams.clone() },
    )?;
    let mut written = HashSet::new();
    for (stream, head) in streams {
        // Records that were committed since the header was written belong to the next export.
        let (mut cursor, mut last) = (records(journal, &stream, 1).through(head.seq), 0);
        while let Some(record) = cursor.next().await? {
            for blob in record.text().map(blob_refs).unwrap_or_default() {
                if written.insert(blob.hash) {
                    let base64 = match journal.blob(blob.hash).await {
                        Ok(bytes) => Some(BASE64.encode(bytes)),
                        Err(Error::NoSuchBlob { .. }) => None,
                        Err(error) => return Err(error),
                    };
                    write_line(out, &BlobLine { blob: blob.hash, base64 })?;
                    exported.blobs += 1;
                }
            }
            write_line(out, &record)?;
            last = record.seq;
            exported.records += 1;
        }
        if last < head.seq {
            return Err(Error::NoSuchRecord { stream, seq: last + 1, head: last });
        }
    }
    let end = out.hasher.finalize().into();
    write_line(out, &EndLine { end: Hash::from_bytes(end) })?;
    Ok(exported)
}

/// Hashes everything that is written.
struct HashingWriter<'a> {
    out: &'a mut (dyn Write + Send),
    hasher: blake3::Hasher,
}

fn write_line(writer: &mut HashingWriter<'_>, line: &impl Serialize) -> Result<()> {
    let said = |error: std::io::Error| io_error(Path::new("the export"), &error);
    let mut json = serde_json::to_vec(line).map_err(|error| said(error.into()))?;
    json.push(b'\n');
    writer.hasher.update(&json);
    writer.out.write_all(&json).map_err(said)
}
