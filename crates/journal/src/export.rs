//! A session as one file of lines: a header, then every record of its streams with its hash, every blob before the
//! first record that refers to it, and at the end the hash of all that. The bytes of a body stand in the line as they
//! stand in the journal, so whoever has the file can verify the chain.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
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
use crate::import::{Brought, EarlierImports, ImportMark, ImportOptions, mark_imported};
use crate::{Blob, Error, Head, Journal, Lease, Page, Result, names, records};

const FORMAT: u32 = 1;
/// No line that an export writes is longer; one that is, is not ours and not read into memory.
const LONGEST_LINE: u64 = 64 << 20;
/// So many bytes of blobs may stand before the record that refers to them.
const MOST_BLOBS: usize = 256 << 20;

#[derive(Serialize, Deserialize)]
struct Header {
    longhaul_export: u32,
    key: String,
    id: SessionId,
    streams: BTreeMap<StreamName, Head>,
}

#[derive(Serialize, Deserialize)]
struct BlobLine {
    blob: Hash,
    /// Absent if the bytes were lost to damage before the export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

/// The last line: the hash of every byte before it.
#[derive(Serialize, Deserialize)]
struct EndLine {
    end: Hash,
}

/// What an export holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exported {
    /// The session's key.
    pub key: String,
    /// Its id.
    pub id: SessionId,
    /// How many records of all its streams were written.
    pub records: u64,
    /// How many blobs.
    pub blobs: u64,
}

/// What an import brought.
pub type Imported = Exported;

/// Writes a session, as it stands now, to `out`.
pub async fn export_session(
    journal: &dyn Journal,
    key: &str,
    out: &mut (dyn Write + Send),
) -> Result<Exported> {
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
    let mut exported = Exported { key: session.key.clone(), id: session.id, records: 0, blobs: 0 };
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

/// Hashes what is written.
struct HashingWriter<'a> {
    out: &'a mut (dyn Write + Send),
    hasher: blake3::Hasher,
}

fn write_line(writer: &mut HashingWriter<'_>, line: &impl Serialize) -> Result<()> {
    let mut json =
        serde_json::to_vec(line).expect("the lines of an export are plain structs with string keys");
    json.push(b'\n');
    writer.hasher.update(&json);
    writer.out.write_all(&json).map_err(|error| io_error(Path::new("the export"), &error))
}

/// Brings a session back from an export, under its own key or another. Everything is verified before anything is
/// written; the session can be found only when all of it is there and marked as imported.
pub async fn import_session(journal: &dyn Journal, file: &Path, options: &ImportOptions) -> Result<Imported> {
    let verified = verify(file)?;
    let header = &verified.header;
    let key = &key_for(file, header, options)?;
    if journal.session(key).await?.is_some() {
        return Err(Error::SessionExists { key: key.to_owned() });
    }
    refuse_twice(journal, file, header).await?;
    let lease = make_way(journal, header).await?;
    if let Err(refused) = refuse_twice(journal, file, header).await {
        journal.release(&lease).await?;
        return Err(refused);
    }
    if let Err(error) = bring(journal, &lease, file, &verified, key, options).await {
        // Whoever has taken over goes on with what is there. What can't be undone now, the next import removes; what
        // stood in the way is what the caller needs to know.
        let is_ours = !matches!(error, Error::Fenced { .. });
        if is_ours && matches!(key_of(journal, header.id).await, Ok(None)) {
            let _ = remove_all(journal, &lease, header).await;
        }
        let _ = journal.release(&lease).await;
        return Err(error);
    }
    journal.release(&lease).await?;
    Ok(Imported { key: key.to_owned(), id: header.id, records: verified.records, blobs: verified.blobs })
}

/// The key that the session gets.
fn key_for(file: &Path, header: &Header, options: &ImportOptions) -> Result<String> {
    if let Some(key) = &options.key {
        names::check_key(key)?;
        return Ok(key.clone());
    }
    let key = &header.key;
    let reason = match names::check_key(key) {
        Err(Error::BadKey { reason, .. }) => Some(reason),
        _ if key.starts_with('-') => Some("it begins with a dash, as an option does"),
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

/// A session can't be here under two names.
async fn refuse_twice(journal: &dyn Journal, file: &Path, header: &Header) -> Result<()> {
    let Some(known) = key_of(journal, header.id).await? else { return Ok(()) };
    let reason = format!("its session {} is here already, as {known:?}", header.id);
    Err(Error::BadFile { path: file.to_owned(), reason })
}

/// Takes the lease on a session. What an import that was cut short has left has no name, and is removed; another
/// import that is under way has the lease.
async fn make_way(journal: &dyn Journal, header: &Header) -> Result<Lease> {
    let session = StreamName::session(header.id);
    loop {
        let lease = journal.acquire(&session).await?;
        if key_of(journal, header.id).await?.is_some() || is_empty(journal, header).await? {
            return Ok(lease);
        }
        remove_all(journal, &lease, header).await?;
    }
}

async fn is_empty(journal: &dyn Journal, header: &Header) -> Result<bool> {
    // An import that was cut short may have marked a session whose own stream is not in the file.
    for stream in header.streams.keys().chain([&StreamName::session(header.id)]) {
        if journal.head(stream).await? != Head::EMPTY {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Removes what there is of a session without a name. The lease goes with its stream, which comes last.
async fn remove_all(journal: &dyn Journal, lease: &Lease, header: &Header) -> Result<()> {
    for stream in header.streams.keys().filter(|stream| **stream != lease.stream) {
        journal.remove(stream, None).await?;
    }
    journal.remove(&lease.stream, Some(lease)).await
}

async fn key_of(journal: &dyn Journal, id: SessionId) -> Result<Option<String>> {
    Ok(journal.session_with_id(id).await?.map(|entry| entry.key))
}

/// Adds what the file holds in parts, then the mark, then the name.
async fn bring(
    journal: &dyn Journal,
    lease: &Lease,
    file: &Path,
    verified: &Verified,
    key: &str,
    options: &ImportOptions,
) -> Result<()> {
    let header = &verified.header;
    let mut lines = Lines::open(file)?;
    lines.next()?;
    let (mut records, mut blobs, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let Some(line) = lines.next()? {
        bytes += line.len();
        match lines.parse(&line)? {
            Line::Blob(blob) => blobs.push(blob),
            Line::Record(record) if !header.streams.contains_key(&record.stream) => {
                return Err(lines.changed());
            }
            Line::Record(record) => {
                records.push(record);
                // Only here: a blob must come with the record that refers to it.
                if bytes > Page::default().bytes {
                    journal.adopt(lease, std::mem::take(&mut records), std::mem::take(&mut blobs)).await?;
                    bytes = 0;
                }
            }
            Line::End(_) => break,
        }
    }
    // What is adopted is what was verified: the file may have been replaced between the two readings.
    if lines.hash_so_far() != verified.file_hash {
        return Err(lines.changed());
    }
    journal.adopt(lease, records, blobs).await?;
    let head_of = |stream: StreamName| header.streams.get(&stream).map_or(0, |head| head.seq);
    let brought = Brought {
        id: header.id,
        key,
        file_hash: verified.file_hash,
        session_head: head_of(StreamName::session(header.id)),
        inbox_head: head_of(StreamName::inbox(header.id)),
        extract_head: head_of(StreamName::extract(header.id)),
        earlier: &verified.earlier,
    };
    mark_imported(journal, lease, &brought, options).await?;
    match names::bind(journal, key, header.id).await? {
        id if id == header.id => Ok(()),
        _ => Err(Error::SessionExists { key: key.to_owned() }),
    }
}

struct Verified {
    header: Header,
    records: u64,
    blobs: u64,
    /// The hash of all bytes of the file.
    file_hash: Hash,
    /// What the newest import on record in the file says.
    earlier: ImportMark,
}

/// Verifies an export without a journal to bring it to.
pub fn verify_export(file: &Path) -> Result<()> {
    verify(file).map(|_| ())
}

/// Reads a whole file and checks every line of it.
fn verify(file: &Path) -> Result<Verified> {
    let mut lines = Lines::open(file)?;
    let first = lines.next()?.ok_or_else(|| lines.wrong("it is empty"))?;
    let Ok(header) = serde_json::from_str::<Header>(&first) else {
        return Err(lines.wrong("this is not the header of an export"));
    };
    if header.longhaul_export > FORMAT {
        let format = header.longhaul_export;
        return Err(lines.wrong(format!("format {format} is newer than this version knows ({FORMAT})")));
    }
    if let Some(foreign) = header.streams.keys().find(|stream| stream.session_id() != Some(header.id)) {
        return Err(lines.wrong(format!("the stream {foreign} does not belong to session {}", header.id)));
    }
    let mut chains: HashMap<StreamName, (ChainCheck, Hash)> =
        header.streams.keys().map(|stream| (stream.clone(), (ChainCheck::from(1), Hash::ZERO))).collect();
    let (mut records, mut blobs, mut waiting) = (0, HashSet::new(), 0);
    let mut earlier = EarlierImports::none();
    loop {
        let hash = lines.hash_so_far();
        let Some(line) = lines.next()? else { return Err(lines.wrong("the end is missing")) };
        match lines.parse(&line)? {
            Line::Blob(blob) => {
                waiting += line.len();
                if waiting > MOST_BLOBS {
                    return Err(lines.wrong("there are too many blobs before a record"));
                }
                blobs.insert(blob.hash());
            }
            Line::End(end) if end == hash => break,
            Line::End(_) => return Err(lines.wrong("the file was changed: it does not match its hash")),
            Line::Record(record) => {
                waiting = 0;
                let Some((chain, last)) = chains.get_mut(&record.stream) else {
                    return Err(lines.wrong(format!("the stream {} is not in the header", record.stream)));
                };
                chain.follow(&record).map_err(|reason| {
                    lines.wrong(format!("{} seq {}: {reason}", record.stream, record.seq))
                })?;
                *last = record.hash;
                check_form(&record).map_err(|error| lines.wrong(error.to_string()))?;
                if record.stream == StreamName::session(header.id) {
                    check_beginning(&record).map_err(|reason| lines.wrong(reason))?;
                    earlier
                        .note(&record)
                        .map_err(|reason| lines.wrong(format!("seq {}: {reason}", record.seq)))?;
                }
                let missing = record.text().map(blob_refs).unwrap_or_default();
                if let Some(blob) = missing.iter().find(|blob| !blobs.contains(&blob.hash)) {
                    return Err(lines.wrong(format!("the blob {} is missing", blob.hash)));
                }
                records += 1;
            }
        }
    }
    if lines.next()?.is_some() {
        return Err(lines.wrong("there is something after the end"));
    }
    for (stream, head) in &header.streams {
        let (chain, last) = &chains[stream];
        let found = Head { seq: chain.next_seq() - 1, hash: *last };
        if found != *head {
            return Err(
                lines.wrong(format!("{stream} ends at seq {}, the header says {}", found.seq, head.seq))
            );
        }
    }
    let (blobs, file_hash) = (blobs.len() as u64, lines.hash_so_far());
    Ok(Verified { header, records, blobs, file_hash, earlier: earlier.newest })
}

/// A session begins with its creation, which says where it works; or with a stub, if that was erased or lost.
fn check_beginning(record: &Record) -> std::result::Result<(), String> {
    const CREATED: &str = "session_created";
    let is_stub = matches!(record.body, Body::Gone(_)) && record.kind == "lost";
    if record.seq > 1 || record.kind == CREATED || is_stub {
        return Ok(());
    }
    Err(format!("the session begins with {:?}, not with {CREATED:?}", record.kind))
}

/// Whether a record can be decoded. A session with one that can't could not be opened.
fn check_form(record: &Record) -> std::result::Result<(), DecodeError> {
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

enum Line {
    Blob(Blob),
    Record(Record),
    End(Hash),
}

/// The lines of a file, none of them larger than an export writes.
struct Lines<'a> {
    file: &'a Path,
    reader: BufReader<File>,
    number: u64,
    hasher: blake3::Hasher,
}

impl<'a> Lines<'a> {
    fn open(file: &'a Path) -> Result<Self> {
        if file.is_dir() {
            return Err(Error::BadFile { path: file.to_owned(), reason: "it is a folder".to_owned() });
        }
        let opened = File::open(file).map_err(|error| Error::BadFile {
            path: file.to_owned(),
            reason: format!("it can't be opened: {error}"),
        })?;
        Ok(Self { file, reader: BufReader::new(opened), number: 0, hasher: blake3::Hasher::new() })
    }

    fn next(&mut self) -> Result<Option<String>> {
        let mut line = Vec::new();
        let read = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut line);
        read.map_err(|error| io_error(self.file, &error))?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        self.hasher.update(&line);
        if line.pop() != Some(b'\n') {
            return Err(self.wrong("the line is cut off, or longer than an export has them"));
        }
        String::from_utf8(line).map(Some).map_err(|_| self.wrong("the line is not text"))
    }

    /// The hash of every line so far.
    fn hash_so_far(&self) -> Hash {
        Hash::from_bytes(self.hasher.finalize().into())
    }

    fn parse(&self, line: &str) -> Result<Line> {
        let no = |what: &str, error: &dyn std::fmt::Display| self.wrong(format!("not {what}: {error}"));
        if line.starts_with("{\"end\":") {
            return serde_json::from_str(line)
                .map(|EndLine { end }| Line::End(end))
                .map_err(|error| no("an end", &error));
        }
        if !line.starts_with("{\"blob\":") {
            return serde_json::from_str(line).map(Line::Record).map_err(|error| no("a record", &error));
        }
        let BlobLine { blob: hash, base64 } =
            serde_json::from_str(line).map_err(|error| no("a blob", &error))?;
        let Some(base64) = base64 else { return Ok(Line::Blob(Blob::lost(hash))) };
        let blob = Blob::new(BASE64.decode(base64).map_err(|error| no("a blob", &error))?);
        if blob.hash() == hash {
            Ok(Line::Blob(blob))
        } else {
            Err(self.wrong("the blob does not match its hash"))
        }
    }

    fn changed(&self) -> Error {
        self.wrong("the file was changed while it was read; import it again")
    }

    fn wrong(&self, reason: impl Into<String>) -> Error {
        let reason = format!("line {}: {}", self.number.max(1), reason.into());
        Error::BadFile { path: self.file.to_owned(), reason }
    }
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
