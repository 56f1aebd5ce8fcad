//! The file of an exported session: its lines, and a reader that verifies them.
//!
//! The first line is a header. Then follow all records of the session's streams with their hashes. Each blob precedes
//! the first record that refers to it. The last line is the hash of all bytes before it. The body of a record has the
//! same bytes as in the journal, so the file alone is enough to verify the chain.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_protocol::{
    Body, DecodeError, ExtractRecord, Hash, InboxRecord, Record, SessionId, SessionRecord, StreamName,
    blob_refs,
};
use serde::{Deserialize, Serialize};

use crate::chain::ChainCheck;
use crate::home::io_error;
use crate::import_mark::{EarlierImports, ImportMark};
use crate::{Blob, Error, Head, Result};

pub(crate) const FORMAT: u32 = 1;
/// The longest line that an export writes. A longer one is refused before it is read into memory.
const MAX_LINE_BYTES: u64 = 64 << 20;
/// The most bytes of blobs that may precede the record that refers to them.
const MAX_PENDING_BLOB_BYTES: usize = 256 << 20;

#[derive(Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) longhaul_export: u32,
    pub(crate) key: String,
    pub(crate) id: SessionId,
    pub(crate) streams: BTreeMap<StreamName, Head>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct BlobLine {
    pub(crate) blob: Hash,
    /// Absent if the bytes were lost to damage before the export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base64: Option<String>,
}

/// The last line: the hash of every byte before it.
#[derive(Serialize, Deserialize)]
pub(crate) struct EndLine {
    pub(crate) end: Hash,
}

pub(crate) struct VerifiedExport {
    pub(crate) header: Header,
    pub(crate) records: u64,
    pub(crate) blobs: u64,
    /// The hash of all bytes of the file.
    pub(crate) file_hash: Hash,
    /// The newest import that is recorded in the file.
    pub(crate) earlier: ImportMark,
}

/// Verifies an exported file, without importing it.
pub fn verify_export(file: &Path) -> Result<()> {
    verify_file(file).map(|_| ())
}

/// Reads a whole file and checks every line.
pub(crate) fn verify_file(file: &Path) -> Result<VerifiedExport> {
    let mut lines = ExportReader::open(file)?;
    let first = lines.next()?.ok_or_else(|| lines.wrong("the file is empty"))?;
    let Ok(header) = serde_json::from_str::<Header>(&first) else {
        return Err(lines.wrong("not a longhaul export"));
    };
    if header.longhaul_export > FORMAT {
        let format = header.longhaul_export;
        return Err(lines
            .wrong(format!("format {format} is newer than this version knows ({FORMAT}); update longhaul")));
    }
    if let Some(foreign) = header.streams.keys().find(|stream| stream.session_id() != Some(header.id)) {
        return Err(lines.wrong(format!("stream {foreign} does not belong to session {}", header.id)));
    }
    let mut chains: HashMap<StreamName, (ChainCheck, Hash)> =
        header.streams.keys().map(|stream| (stream.clone(), (ChainCheck::from(1), Hash::ZERO))).collect();
    let (mut records, mut blobs, mut pending) = (0, HashSet::new(), 0);
    let mut earlier = EarlierImports::new();
    loop {
        let hash = lines.hash_so_far();
        let Some(line) = lines.next()? else { return Err(lines.wrong("the file is cut off")) };
        match lines.parse(&line)? {
            ExportLine::Blob(blob) => {
                pending += line.len();
                if pending > MAX_PENDING_BLOB_BYTES {
                    return Err(lines.wrong("too many blobs before an entry"));
                }
                blobs.insert(blob.hash());
            }
            ExportLine::End(end) if end == hash => break,
            ExportLine::End(_) => {
                return Err(lines.wrong("the file was changed: it does not match its checksum"));
            }
            ExportLine::Record(record) => {
                pending = 0;
                let Some((chain, last)) = chains.get_mut(&record.stream) else {
                    return Err(lines.wrong(format!("stream {} is not in the header", record.stream)));
                };
                chain.follow(&record).map_err(|reason| {
                    lines.wrong(format!("{} entry {}: {reason}", record.stream, record.seq))
                })?;
                if !record.at.is_in_calendar() {
                    let (stream, seq, at) = (&record.stream, record.seq, record.at);
                    return Err(lines
                        .wrong(format!("{stream} entry {seq}: its time is outside of the calendar ({at})")));
                }
                *last = record.hash;
                check_decodes(&record).map_err(|error| lines.wrong(error.to_string()))?;
                if record.stream == StreamName::session(header.id) {
                    check_beginning(&record).map_err(|reason| lines.wrong(reason))?;
                    earlier
                        .push(&record)
                        .map_err(|reason| lines.wrong(format!("entry {}: {reason}", record.seq)))?;
                }
                let missing = record.text().map(blob_refs).unwrap_or_default();
                if let Some(blob) = missing.iter().find(|blob| !blobs.contains(&blob.hash)) {
                    return Err(lines.wrong(format!("blob {} is missing", blob.hash)));
                }
                records += 1;
            }
        }
    }
    if lines.next()?.is_some() {
        return Err(lines.wrong("unexpected data after the end"));
    }
    for (stream, head) in &header.streams {
        let (chain, last) = &chains[stream];
        let found = Head { seq: chain.next_seq() - 1, hash: *last };
        if found != *head {
            return Err(lines
                .wrong(format!("{stream} ends at entry {}, but the header says {}", found.seq, head.seq)));
        }
    }
    let (blobs, file_hash) = (blobs.len() as u64, lines.hash_so_far());
    Ok(VerifiedExport { header, records, blobs, file_hash, earlier: earlier.newest })
}

/// Checks that a session begins with its creation, or with a stub if that was erased or lost.
fn check_beginning(record: &Record) -> std::result::Result<(), String> {
    const CREATED: &str = "session_created";
    let is_stub = matches!(record.body, Body::Gone(_)) && record.kind == "lost";
    if record.seq > 1 || record.kind == CREATED || is_stub {
        return Ok(());
    }
    Err(format!("the session begins with {:?}, not with {CREATED:?}", record.kind))
}

/// Checks that a record can be decoded. Otherwise the session could not be opened.
fn check_decodes(record: &Record) -> std::result::Result<(), DecodeError> {
    let decoded = match record.stream.as_str().split_once('/') {
        Some(("inbox", _)) => InboxRecord::decode(record).map(drop),
        Some(("extract", _)) => ExtractRecord::decode(record).map(drop),
        _ => SessionRecord::decode(record).map(drop),
    };
    match decoded {
        Err(DecodeError::Gone { .. }) => Ok(()),
        decoded => decoded,
    }
}

pub(crate) enum ExportLine {
    Blob(Blob),
    Record(Record),
    End(Hash),
}

/// Reads the lines of a file, with a limit on their length.
pub(crate) struct ExportReader<'a> {
    file: &'a Path,
    reader: BufReader<File>,
    number: u64,
    hasher: blake3::Hasher,
}

impl<'a> ExportReader<'a> {
    pub(crate) fn open(file: &'a Path) -> Result<Self> {
        if file.is_dir() {
            return Err(Error::BadFile {
                path: file.to_owned(),
                reason: "it is a folder, not a file".to_owned(),
            });
        }
        let opened = File::open(file).map_err(|error| Error::BadFile {
            path: file.to_owned(),
            reason: format!("can't open it: {error}"),
        })?;
        Ok(Self { file, reader: BufReader::new(opened), number: 0, hasher: blake3::Hasher::new() })
    }

    pub(crate) fn next(&mut self) -> Result<Option<String>> {
        let mut line = Vec::new();
        let read = (&mut self.reader).take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        read.map_err(|error| io_error(self.file, &error))?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        self.hasher.update(&line);
        if line.pop() != Some(b'\n') {
            return Err(self.wrong("the line is cut off or too long"));
        }
        String::from_utf8(line).map(Some).map_err(|_| self.wrong("the line is not valid UTF-8"))
    }

    /// The hash of all bytes read so far.
    pub(crate) fn hash_so_far(&self) -> Hash {
        Hash::from_bytes(self.hasher.finalize().into())
    }

    pub(crate) fn parse(&self, line: &str) -> Result<ExportLine> {
        let no = |what: &str, error: &dyn std::fmt::Display| self.wrong(format!("not {what}: {error}"));
        if line.starts_with("{\"end\":") {
            return serde_json::from_str(line)
                .map(|EndLine { end }| ExportLine::End(end))
                .map_err(|error| no("an end", &error));
        }
        if !line.starts_with("{\"blob\":") {
            return serde_json::from_str(line)
                .map(ExportLine::Record)
                .map_err(|error| no("a record", &error));
        }
        let BlobLine { blob: hash, base64 } =
            serde_json::from_str(line).map_err(|error| no("a blob", &error))?;
        let Some(base64) = base64 else { return Ok(ExportLine::Blob(Blob::lost(hash))) };
        let blob = Blob::new(BASE64.decode(base64).map_err(|error| no("a blob", &error))?);
        if blob.hash() == hash {
            Ok(ExportLine::Blob(blob))
        } else {
            Err(self.wrong("a blob does not match its checksum"))
        }
    }

    pub(crate) fn changed(&self) -> Error {
        self.wrong("the file changed while it was read; import it again")
    }

    fn wrong(&self, reason: impl Into<String>) -> Error {
        let reason = format!("line {}: {}", self.number.max(1), reason.into());
        Error::BadFile { path: self.file.to_owned(), reason }
    }
}
