use longhaul_protocol::{Hash, NewRecord, Seq, StreamName};

use crate::Lease;

/// Records to be added to the end of one stream, all or none of them.
#[derive(Debug, Clone)]
pub struct Append {
    pub(crate) stream: StreamName,
    pub(crate) expected: Expected,
    pub(crate) lease: Option<Lease>,
    pub(crate) records: Vec<NewRecord>,
    pub(crate) blobs: Vec<Blob>,
}

/// Where the writer believes the head of the stream to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// It doesn't matter: the order of what different writers append is nobody's business.
    Any,
    /// Here, or the append is refused with `Conflict`.
    Head(Seq),
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Head {
    /// The last place; 0 if there is no record.
    pub seq: Seq,
    /// The hash of the last record.
    pub hash: Hash,
}

impl Head {
    /// The head of a stream without records.
    pub const EMPTY: Self = Self { seq: 0, hash: Hash::ZERO };
}

/// Bytes with the hash that is their address.
#[derive(Debug, Clone)]
pub struct Blob {
    pub(crate) hash: Hash,
    /// None if they were lost to damage before.
    pub(crate) bytes: Option<Vec<u8>>,
}

impl Blob {
    /// The bytes and their address.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self { hash: Hash::of(&bytes), bytes: Some(bytes) }
    }

    /// An address whose bytes were lost to damage: it comes along with an import of what was salvaged.
    pub(crate) fn lost(hash: Hash) -> Self {
        Self { hash, bytes: None }
    }

    /// The address.
    pub fn hash(&self) -> Hash {
        self.hash
    }
}

impl Append {
    /// An append to the end of a stream, wherever that is.
    pub fn to(stream: &StreamName) -> Self {
        let stream = stream.clone();
        Self { stream, expected: Expected::Any, lease: None, records: Vec::new(), blobs: Vec::new() }
    }

    /// An append by the holder of a lease.
    pub fn under(lease: &Lease) -> Self {
        Self { lease: Some(lease.clone()), ..Self::to(&lease.stream) }
    }

    /// Refuse it unless the head is here.
    #[must_use]
    pub fn expecting(self, head: Seq) -> Self {
        Self { expected: Expected::Head(head), ..self }
    }

    /// With one more record.
    #[must_use]
    pub fn record(mut self, record: NewRecord) -> Self {
        self.records.push(record);
        self
    }

    /// The stream that it is for.
    pub fn stream(&self) -> &StreamName {
        &self.stream
    }

    /// The records that it would add.
    pub fn records(&self) -> &[NewRecord] {
        &self.records
    }

    /// With one more blob, for the records to refer to.
    #[must_use]
    pub fn blob(mut self, blob: Blob) -> Self {
        self.blobs.push(blob);
        self
    }
}
