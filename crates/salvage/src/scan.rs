//! Finds rows of a journal by their shape, and the streams of these rows by their hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use longhaul_journal::Result;
use longhaul_journal::rebuild::{ChainLink, StreamNumber, decode_gone, io_error};
use longhaul_protocol::{At, Body, Hash, NamesRecord, Record, Seq, SessionId, StreamName};
use serde_json::value::RawValue;

use crate::file_format::{PageFile, Value};

/// A file that may hold rows of a journal.
pub(crate) struct FileScan {
    path: PathBuf,
    pages: PageFile,
}

impl FileScan {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let pages = File::open(path).and_then(PageFile::open).map_err(|error| io_error(path, &error))?;
        Ok(Self { path: path.to_owned(), pages })
    }

    /// Passes everything in the file that has the shape of a row of ours, up to a size, to `each`.
    pub(crate) fn each_row(
        &self,
        largest: usize,
        mut each: impl FnMut(RawRow<'_>) -> Result<()>,
    ) -> Result<()> {
        let said = |error| io_error(&self.path, &error);
        for number in 1..=self.pages.count() {
            let page = self.pages.page(number).map_err(said)?;
            for cell in page.cells() {
                if cell.size > largest {
                    continue;
                }
                let payload = self.pages.payload(&page, &cell).map_err(said)?;
                let values = payload.as_deref().and_then(|payload| cell.values(payload));
                if let Some(row) = values.and_then(|values| RawRow::recognise(cell.row, &values)) {
                    each(row)?;
                }
            }
        }
        Ok(())
    }
}

/// Something with the shape of a row of ours. Its content is not checked.
pub(crate) enum RawRow<'bytes> {
    Stream(StreamNumber, StreamName),
    /// Without bytes if an earlier salvage lost them.
    Blob(Hash, Option<&'bytes [u8]>),
    Record(RawRecord<'bytes>),
}

pub(crate) struct RawRecord<'bytes> {
    pub(crate) number: StreamNumber,
    pub(crate) seq: Seq,
    at: At,
    kind: &'bytes str,
    key: Option<Hash>,
    prev: Hash,
    hash: Hash,
    gone: Option<&'bytes [u8]>,
    body: Option<&'bytes str>,
}

impl<'bytes> RawRow<'bytes> {
    /// The columns of the three tables are in `schema`. The first is the row id, which SQLite stores as null here.
    fn recognise(row: i64, values: &[Value<'bytes>]) -> Option<Self> {
        let text = |bytes| std::str::from_utf8(bytes).ok();
        let hash = |bytes: &[u8]| bytes.try_into().ok().map(Hash::from_bytes);
        let blob = |value| match value {
            Value::Null => Some(None),
            Value::Blob(bytes) => Some(Some(bytes)),
            _ => None,
        };
        match *values {
            [Value::Null, Value::Text(name)] => {
                Some(Self::Stream(StreamNumber(row), text(name)?.parse().ok()?))
            }
            [Value::Null, Value::Blob(address), bytes] => Some(Self::Blob(hash(address)?, blob(bytes)?)),
            [
                Value::Null,
                Value::Integer(at),
                Value::Text(kind),
                key,
                Value::Blob(prev),
                Value::Blob(own),
                gone,
                body,
            ] => {
                let (number, seq) = Some(StreamNumber::from_row_id(row)).filter(|(_, seq)| *seq > 0)?;
                let key = match blob(key)? {
                    Some(key) => Some(hash(key)?),
                    None => None,
                };
                let body = match body {
                    Value::Null => None,
                    Value::Text(body) => Some(text(body)?),
                    _ => return None,
                };
                let (at, kind, gone) = (At(at), text(kind)?, blob(gone)?);
                let (prev, hash) = (hash(prev)?, hash(own)?);
                Some(Self::Record(RawRecord { number, seq, at, kind, key, prev, hash, gone, body }))
            }
            _ => None,
        }
    }
}

impl RawRecord<'_> {
    /// The record; its stream is set to `names` until the real one is known.
    pub(crate) fn decode(&self) -> Option<Record> {
        let body = match (self.gone, self.body) {
            (None, Some(body)) => Body::Here(RawValue::from_string(body.to_owned()).ok()?),
            (Some(gone), None) => Body::Gone(decode_gone(gone)?),
            _ => return None,
        };
        let Self { seq, at, key, prev, hash, .. } = *self;
        Some(Record {
            stream: StreamName::names(),
            seq,
            at,
            kind: self.kind.to_owned(),
            key,
            body,
            prev,
            hash,
        })
    }

    /// The session that it names or deletes, if it really is of the stream `names`.
    fn named_session(&self) -> Option<NamedSession> {
        if !NamesRecord::KINDS.contains(&self.kind) {
            return None;
        }
        let record = self.decode()?;
        if !fits_stream(&record, &record.stream, body_hash(&record)?) {
            return None;
        }
        Some(match NamesRecord::decode(&record).ok()? {
            NamesRecord::Named(named) => NamedSession::Known(named.id),
            NamesRecord::Renamed(renamed) => NamedSession::Known(renamed.id),
            NamesRecord::Trashed(trashed) => NamedSession::Known(trashed.id),
            NamesRecord::Restored(restored) => NamedSession::Known(restored.id),
            NamesRecord::Pinned(pinned) => NamedSession::Known(pinned.id),
            NamesRecord::Placed(placed) => NamedSession::Known(placed.id),
            NamesRecord::Deleted(deleted) => NamedSession::Deleted(deleted.id),
            NamesRecord::ForkRequested(requested) => NamedSession::Known(requested.id),
            NamesRecord::Unknown { .. } => return None,
        })
    }
}

/// A session in the stream `names`.
enum NamedSession {
    Known(SessionId),
    Deleted(SessionId),
}

/// The hash of a record's body; `None` for the stub of a lost record.
fn body_hash(record: &Record) -> Option<Hash> {
    match &record.body {
        Body::Here(body) => Some(Hash::of(body.get())),
        Body::Gone(gone) => gone.body_hash,
    }
}

/// Whether the hash of a record is right if it belongs to this stream.
fn fits_stream(record: &Record, stream: &StreamName, body_hash: Hash) -> bool {
    let Record { seq, at, ref kind, key, prev, hash, .. } = *record;
    ChainLink { stream, seq, at, kind, key, prev, body_hash }.hash() == hash
}

/// The largest row to read for the names of streams.
const MAX_NAME_ROW_BYTES: usize = 1 << 16;
/// How many records with the same stream number are tried with every possible name. If none of these fits, the others
/// won't either, and there may be many records and names.
const MAX_NAME_ATTEMPTS: usize = 16;

/// Which stream each number stands for. The table `streams` says so, but may be damaged; a record's hash proves it.
pub(crate) struct StreamNames {
    /// According to the table.
    listed: BTreeMap<StreamNumber, Vec<StreamName>>,
    /// Every name that a stream may have.
    possible: BTreeSet<StreamName>,
    /// Names that the hash of a record proves.
    proven: BTreeMap<StreamNumber, Vec<StreamName>>,
    /// The positions of records that are damaged, or whose stream's name is lost.
    unusable: BTreeMap<StreamNumber, BTreeSet<Seq>>,
}

impl StreamNames {
    /// Scans the file once for the names of streams; `possible` are names from elsewhere.
    pub(crate) fn survey(source: &FileScan, mut possible: BTreeSet<StreamName>) -> Result<Self> {
        let mut listed: BTreeMap<StreamNumber, Vec<StreamName>> = BTreeMap::new();
        let (mut sessions, mut deleted) = (BTreeSet::new(), BTreeSet::new());
        source.each_row(MAX_NAME_ROW_BYTES, |row| {
            match row {
                RawRow::Stream(number, name) => listed.entry(number).or_default().push(name),
                RawRow::Record(row) => match row.named_session() {
                    Some(NamedSession::Deleted(id)) => drop(deleted.insert(id)),
                    Some(NamedSession::Known(id)) => drop(sessions.insert(id)),
                    None => {}
                },
                RawRow::Blob(..) => {}
            }
            Ok(())
        })?;
        possible.extend(listed.values().flatten().cloned());
        sessions.extend(possible.iter().filter_map(StreamName::session_id));
        // A deleted session must not come back from a remnant.
        for id in sessions.difference(&deleted) {
            possible.extend([StreamName::session(*id), StreamName::inbox(*id), StreamName::extract(*id)]);
        }
        possible.insert(StreamName::names());
        Ok(Self { listed, possible, proven: BTreeMap::new(), unusable: BTreeMap::new() })
    }

    /// The record with its stream, if its hash fits one.
    pub(crate) fn assign_stream(&mut self, number: StreamNumber, record: Record) -> Option<Record> {
        let body_hash = body_hash(&record)?;
        let fits = |stream: &&StreamName| fits_stream(&record, stream, body_hash);
        let proven = self.proven.get(&number).into_iter().flatten().find(fits).cloned();
        let stream = proven.or_else(|| {
            let unknown = !self.proven.contains_key(&number);
            let failed = self.unusable.get(&number).map_or(0, BTreeSet::len);
            let try_all = unknown && failed < MAX_NAME_ATTEMPTS;
            let possible = self.possible.iter().filter(|_| try_all);
            let stream = self.listed.get(&number).into_iter().flatten().chain(possible).find(fits)?;
            self.proven.entry(number).or_default().push(stream.clone());
            Some(stream.clone())
        });
        if stream.is_none() {
            self.add_unusable(number, record.seq);
        }
        Some(Record { stream: stream?, ..record })
    }

    pub(crate) fn add_unusable(&mut self, number: StreamNumber, seq: Seq) {
        self.unusable.entry(number).or_default().insert(seq);
    }

    /// The probable name of the stream with this number.
    pub(crate) fn likely(&self, number: StreamNumber) -> Option<&StreamName> {
        let names = [self.proven.get(&number), self.listed.get(&number)];
        names.into_iter().flatten().flatten().next()
    }

    /// Streams of which no record was found.
    pub(crate) fn empty(&self) -> impl Iterator<Item = &StreamName> {
        self.listed
            .iter()
            .filter(|(number, _)| !self.proven.contains_key(number))
            .flat_map(|(_, names)| names)
    }

    /// The places of unusable records with the probable names of their streams, and how many there are of each stream
    /// whose name is lost.
    pub(crate) fn into_unusable(mut self) -> (Vec<(StreamName, BTreeSet<Seq>)>, Vec<usize>) {
        let (mut named, mut unnamed) = (Vec::new(), Vec::new());
        for (number, places) in std::mem::take(&mut self.unusable) {
            match self.likely(number) {
                Some(stream) => named.push((stream.clone(), places)),
                None => unnamed.push(places.len()),
            }
        }
        (named, unnamed)
    }
}
