//! A session as one file of lines: a header, then every record of its streams with its hash, and every blob before
//! the first record that refers to it. The bytes of a body stand in the line as they stand in the journal, so
//! whoever has the file can verify the chain.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use longhaul_protocol::{Hash, NamesRecord, Record, SessionId, SessionNamed, StreamName, blob_refs};
use serde::{Deserialize, Serialize};

use crate::chain::ChainCheck;
use crate::home::io_error;
use crate::{Append, Blob, Error, Head, Journal, Page, Result, names};

const FORMAT: u32 = 1;
/// No line that an export writes is longer; one that is, is not ours and not read into memory.
const LONGEST_LINE: u64 = 64 << 20;

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
    base64: String,
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
        let mut next = 1;
        while next <= head.seq {
            let page = journal.read(&stream, next, Page::default()).await?;
            // What was committed since the header was written belongs to the next export.
            let page = page.into_iter().take_while(|record| record.seq <= head.seq);
            for record in page {
                for blob in record.text().map(blob_refs).unwrap_or_default() {
                    if written.insert(blob.hash) {
                        let base64 = BASE64.encode(journal.blob(blob.hash).await?);
                        write_line(out, &BlobLine { blob: blob.hash, base64 })?;
                        exported.blobs += 1;
                    }
                }
                write_line(out, &record)?;
                next = record.seq + 1;
                exported.records += 1;
            }
        }
    }
    Ok(exported)
}

fn write_line(out: &mut (dyn Write + Send), line: &impl Serialize) -> Result<()> {
    let mut json =
        serde_json::to_vec(line).expect("the lines of an export are plain structs with string keys");
    json.push(b'\n');
    out.write_all(&json).map_err(|error| io_error(Path::new("the export"), &error))
}

/// Brings a session back from an export, under its own key or another. Everything is verified before anything is
/// written; the session can be found only when all of it is there.
pub async fn import_session(journal: &dyn Journal, file: &Path, key: Option<&str>) -> Result<Imported> {
    let verified = verify(file)?;
    let key = key.unwrap_or(&verified.header.key).to_owned();
    if journal.session(&key).await?.is_some() {
        return Err(Error::SessionExists { key });
    }
    if let Some(known) = key_of(journal, verified.header.id).await? {
        let reason = format!("its session {} is here already, as {known:?}", verified.header.id);
        return Err(Error::BadFile { path: file.to_owned(), reason });
    }
    // What an import that was cut short has left behind has no name, and makes way.
    for stream in verified.header.streams.keys() {
        journal.remove(stream, None).await?;
    }
    let brought = bring(journal, file, &verified.header, &key).await;
    if brought.is_err() {
        for stream in verified.header.streams.keys() {
            journal.remove(stream, None).await?;
        }
    }
    brought?;
    Ok(Imported { key, id: verified.header.id, records: verified.records, blobs: verified.blobs })
}

async fn key_of(journal: &dyn Journal, id: SessionId) -> Result<Option<String>> {
    let mut after: Option<String> = None;
    loop {
        let page = journal.sessions(after.as_deref(), 1_000).await?;
        let Some(last) = page.last() else { return Ok(None) };
        after = Some(last.key.clone());
        if let Some(entry) = page.into_iter().find(|entry| entry.id == id) {
            return Ok(Some(entry.key));
        }
    }
}

/// Adds what the file holds in parts, then the name.
async fn bring(journal: &dyn Journal, file: &Path, header: &Header, key: &str) -> Result<()> {
    let mut lines = Lines::open(file)?;
    lines.next()?;
    let (mut records, mut blobs, mut bytes) = (Vec::new(), Vec::new(), 0);
    while let Some(line) = lines.next()? {
        bytes += line.len();
        match lines.parse(&line)? {
            Line::Blob(blob) => blobs.push(blob),
            Line::Record(record) => records.push(record),
        }
        if bytes > Page::default().bytes && !records.is_empty() {
            journal.adopt(std::mem::take(&mut records), std::mem::take(&mut blobs)).await?;
            bytes = 0;
        }
    }
    journal.adopt(records, blobs).await?;
    let names = StreamName::names();
    loop {
        let head = journal.head(&names).await?;
        if journal.session(key).await?.is_some() {
            return Err(Error::SessionExists { key: key.to_owned() });
        }
        let named = NamesRecord::Named(SessionNamed { key: key.to_owned(), id: header.id }).encode();
        match journal.append(Append::to(&names).expecting(head.seq).record(named)).await {
            Err(Error::Conflict { .. }) => {}
            answer => return answer.map(|_| ()),
        }
    }
}

struct Verified {
    header: Header,
    records: u64,
    blobs: u64,
}

/// Reads a whole file and checks every line of it.
fn verify(file: &Path) -> Result<Verified> {
    let mut lines = Lines::open(file)?;
    let first = lines.next()?.ok_or_else(|| lines.wrong("it is empty"))?;
    let header: Header = serde_json::from_str(&first)
        .map_err(|error| lines.wrong(format!("this is not an export: {error}")))?;
    if header.longhaul_export > FORMAT {
        let format = header.longhaul_export;
        return Err(lines.wrong(format!("format {format} is newer than this version knows ({FORMAT})")));
    }
    if let Some(foreign) = header.streams.keys().find(|stream| stream.session_id() != Some(header.id)) {
        return Err(lines.wrong(format!("the stream {foreign} does not belong to session {}", header.id)));
    }
    let mut chains: HashMap<StreamName, (ChainCheck, Hash)> =
        header.streams.keys().map(|stream| (stream.clone(), (ChainCheck::from(1), Hash::ZERO))).collect();
    let (mut records, mut blobs) = (0, HashSet::new());
    while let Some(line) = lines.next()? {
        match lines.parse(&line)? {
            Line::Blob(blob) => drop(blobs.insert(blob.hash())),
            Line::Record(record) => {
                let Some((chain, last)) = chains.get_mut(&record.stream) else {
                    return Err(lines.wrong(format!("the stream {} is not in the header", record.stream)));
                };
                chain.follow(&record).map_err(|reason| {
                    lines.wrong(format!("{} seq {}: {reason}", record.stream, record.seq))
                })?;
                *last = record.hash;
                let missing = record.text().map(blob_refs).unwrap_or_default();
                if let Some(blob) = missing.iter().find(|blob| !blobs.contains(&blob.hash)) {
                    return Err(lines.wrong(format!("the blob {} is missing", blob.hash)));
                }
                records += 1;
            }
        }
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
    Ok(Verified { header, records, blobs: blobs.len() as u64 })
}

enum Line {
    Blob(Blob),
    Record(Record),
}

/// The lines of a file, none of them larger than an export writes.
struct Lines<'a> {
    file: &'a Path,
    reader: BufReader<File>,
    number: u64,
}

impl<'a> Lines<'a> {
    fn open(file: &'a Path) -> Result<Self> {
        let opened = File::open(file).map_err(|error| Error::BadFile {
            path: file.to_owned(),
            reason: format!("it can't be opened: {error}"),
        })?;
        Ok(Self { file, reader: BufReader::new(opened), number: 0 })
    }

    fn next(&mut self) -> Result<Option<String>> {
        let mut line = Vec::new();
        let read = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut line);
        read.map_err(|error| io_error(self.file, &error))?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if line.pop() != Some(b'\n') {
            return Err(self.wrong("the line does not end"));
        }
        String::from_utf8(line).map(Some).map_err(|_| self.wrong("the line is not text"))
    }

    fn parse(&self, line: &str) -> Result<Line> {
        if !line.starts_with("{\"blob\":") {
            let record =
                serde_json::from_str(line).map_err(|error| self.wrong(format!("not a record: {error}")))?;
            return Ok(Line::Record(record));
        }
        let BlobLine { blob: hash, base64 } =
            serde_json::from_str(line).map_err(|error| self.wrong(format!("not a blob: {error}")))?;
        let bytes = BASE64.decode(base64).map_err(|error| self.wrong(format!("not a blob: {error}")))?;
        let blob = Blob::new(bytes);
        if blob.hash() == hash {
            Ok(Line::Blob(blob))
        } else {
            Err(self.wrong("the blob does not match its hash"))
        }
    }

    fn wrong(&self, reason: impl Into<String>) -> Error {
        let reason = format!("line {}: {}", self.number.max(1), reason.into());
        Error::BadFile { path: self.file.to_owned(), reason }
    }
}
