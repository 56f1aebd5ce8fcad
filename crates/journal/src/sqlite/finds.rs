//! Rows of a journal, told by their shape, and the streams that they belong to, told by their hashes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use longhaul_protocol::{At, Body, Hash, NamesRecord, Record, Seq, StreamName};
use serde_json::value::RawValue;

use crate::Result;
use crate::chain::{ChainCheck, Link};
use crate::home::io_error;
use crate::names::NameChange;
use crate::sqlite::pages::{Pages, Value};
use crate::sqlite::rows::{StreamNumber, decode_gone};

/// A file that may hold rows of a journal.
pub(crate) struct Source {
    path: PathBuf,
    pages: Pages,
}

impl Source {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let pages = File::open(path).and_then(Pages::of).map_err(|error| io_error(path, &error))?;
        Ok(Self { path: path.to_owned(), pages })
    }

    /// Everything in the file that has the shape of a row of ours and is not larger than this.
    pub(crate) fn each_row(&self, largest: usize, mut each: impl FnMut(Row<'_>) -> Result<()>) -> Result<()> {
        let said = |error| io_error(&self.path, &error);
        for number in 1..=self.pages.count() {
            let page = self.pages.page(number).map_err(said)?;
            for cell in page.cells() {
                if cell.size > largest {
                    continue;
                }
                let payload = self.pages.payload(&page, &cell).map_err(said)?;
                let values = payload.as_deref().and_then(|payload| cell.values(payload));
                if let Some(row) = values.and_then(|values| Row::recognise(cell.row, &values)) {
                    each(row)?;
                }
            }
        }
        Ok(())
    }
}

/// Something that has the shape of a row of ours, and whatever content.
pub(crate) enum Row<'bytes> {
    Stream(StreamNumber, StreamName),
    /// Without bytes, it is one that an earlier salvage has not found.
    Blob(Hash, Option<&'bytes [u8]>),
    Record(RecordRow<'bytes>),
}

pub(crate) struct RecordRow<'bytes> {
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

impl<'bytes> Row<'bytes> {
    /// The columns of the three tables are in `schema`. The first is the number of the row, which is not stored twice.
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
                let (number, seq) = Some(StreamNumber::of_row(row)).filter(|(_, seq)| *seq > 0)?;
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
                Some(Self::Record(RecordRow { number, seq, at, kind, key, prev, hash, gone, body }))
            }
            _ => None,
        }
    }
}

impl RecordRow<'_> {
    /// The record, as one of the stream `names` until it is known whose it is.
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

    /// What it changes in the index of keys, if it is indeed of the stream `names`.
    fn name_change(&self) -> Option<NameChange> {
        if !NamesRecord::KINDS.contains(&self.kind) {
            return None;
        }
        let record = self.decode()?;
        ChainCheck::from(record.seq).follow(&record).ok()?;
        NameChange::of(&record)
    }
}

/// Rows that tell which streams there are have no more bytes than this.
const SMALL: usize = 1 << 16;
/// So many records under one number are held against every name that a stream may have. If none of them fits, the
/// others won't, and there may be many of both.
const ATTEMPTS: usize = 16;

/// Which stream each number stands for. Rows say so, but damage may have struck them; a record's hash proves it.
pub(crate) struct Streams {
    said: BTreeMap<StreamNumber, Vec<StreamName>>,
    /// Every name that a stream may have.
    possible: BTreeSet<StreamName>,
    proven: BTreeMap<StreamNumber, Vec<StreamName>>,
    /// The places of records that can't be used: they are damaged, or the name of their stream is not known any more.
    unfit: BTreeMap<StreamNumber, BTreeSet<Seq>>,
}

impl Streams {
    /// Reads everything once, for the streams that there are and those that there may be besides these.
    pub(crate) fn survey(source: &Source, mut possible: BTreeSet<StreamName>) -> Result<Self> {
        let mut said: BTreeMap<StreamNumber, Vec<StreamName>> = BTreeMap::new();
        let (mut sessions, mut deleted) = (BTreeSet::new(), BTreeSet::new());
        source.each_row(SMALL, |row| {
            match row {
                Row::Stream(number, name) => said.entry(number).or_default().push(name),
                Row::Record(row) => match row.name_change() {
                    Some(NameChange::Forget { id }) => drop(deleted.insert(id)),
                    Some(
                        NameChange::Bind { id, .. }
                        | NameChange::Rename { id, .. }
                        | NameChange::Trash { id }
                        | NameChange::Restore { id }
                        | NameChange::Pin { id, .. },
                    ) => drop(sessions.insert(id)),
                    None => {}
                },
                Row::Blob(..) => {}
            }
            Ok(())
        })?;
        possible.extend(said.values().flatten().cloned());
        sessions.extend(possible.iter().filter_map(StreamName::session_id));
        // What was deleted must not come back from some remnant of it.
        for id in sessions.difference(&deleted) {
            possible.extend([StreamName::session(*id), StreamName::inbox(*id), StreamName::extract(*id)]);
        }
        possible.insert(StreamName::names());
        Ok(Self { said, possible, proven: BTreeMap::new(), unfit: BTreeMap::new() })
    }

    /// The record as one of its stream, if its hash is right.
    pub(crate) fn settle(&mut self, number: StreamNumber, record: Record) -> Option<Record> {
        let body_hash = match &record.body {
            Body::Here(body) => Hash::of(body.get()),
            Body::Gone(gone) => gone.body_hash?,
        };
        let fits = |stream: &&StreamName| {
            let Record { seq, at, ref kind, key, prev, hash, .. } = record;
            Link { stream, seq, at, kind, key, prev, body_hash }.hash() == hash
        };
        let proven = self.proven.get(&number).into_iter().flatten().find(fits).cloned();
        let stream = proven.or_else(|| {
            let unknown = !self.proven.contains_key(&number);
            let try_all = unknown && self.unfit.get(&number).is_none_or(|unfit| unfit.len() < ATTEMPTS);
            let possible = self.possible.iter().filter(|_| try_all);
            let stream = self.said.get(&number).into_iter().flatten().chain(possible).find(fits)?;
            self.proven.entry(number).or_default().push(stream.clone());
            Some(stream.clone())
        });
        if stream.is_none() {
            self.miss(number, record.seq);
        }
        Some(Record { stream: stream?, ..record })
    }

    /// Notes a record that can't be used.
    pub(crate) fn miss(&mut self, number: StreamNumber, seq: Seq) {
        self.unfit.entry(number).or_default().insert(seq);
    }

    /// What the stream of this number is probably called.
    pub(crate) fn likely(&self, number: StreamNumber) -> Option<&StreamName> {
        let names = [self.proven.get(&number), self.said.get(&number)];
        names.into_iter().flatten().flatten().next()
    }

    /// Streams of which no record was found.
    pub(crate) fn empty(&self) -> impl Iterator<Item = &StreamName> {
        self.said.iter().filter(|(number, _)| !self.proven.contains_key(number)).flat_map(|(_, names)| names)
    }

    /// The places of records that can't be used, with the streams that they are probably of.
    pub(crate) fn unfit(&self) -> impl Iterator<Item = (Option<&StreamName>, &BTreeSet<Seq>)> {
        self.unfit.iter().map(|(number, places)| (self.likely(*number), places))
    }
}
