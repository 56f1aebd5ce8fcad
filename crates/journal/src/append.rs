use longhaul_protocol::{Hash, NewRecord, Seq, StreamName};

use crate::Lease;

/// Records to append to one stream, all or none of them.
#[derive(Debug, Clone)]
pub struct Append {
    pub stream: StreamName,
    pub expected: Expected,
    pub lease: Option<Lease>,
    pub records: Vec<NewRecord>,
    pub blobs: Vec<Blob>,
}

/// The head of the stream that the writer expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// Any head: the order between writers does not matter.
    Any,
    /// This head. Otherwise the append is refused with `Conflict`.
    Head(Seq),
}

/// The end of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Head {
    /// The position of the last record; 0 if there is none.
    pub seq: Seq,
    /// The hash of the last record.
    pub hash: Hash,
}

impl Head {
    /// The head of a stream without records.
    pub const EMPTY: Self = Self { seq: 0, hash: Hash::ZERO };
}

/// Bytes, addressed by their hash.
#[derive(Debug, Clone)]
pub struct Blob {
    pub(crate) hash: Hash,
    /// `None` if they were lost to damage.
    pub(crate) bytes: Option<Vec<u8>>,
}

impl Blob {
    /// A blob of these bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self { hash: Hash::of(&bytes), bytes: Some(bytes) }
    }

    /// A blob whose bytes were lost to damage. An import of a salvaged session has these.
    pub(crate) fn lost(hash: Hash) -> Self {
        Self { hash, bytes: None }
    }

    /// The bytes; `None` if they were lost to damage.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// The hash of the bytes.
    pub fn hash(&self) -> Hash {
        self.hash
    }
}

impl Append {
    /// An append to the end of a stream, whatever its head is.
    pub fn to(stream: &StreamName) -> Self {
        let stream = stream.clone();
        Self { stream, expected: Expected::Any, lease: None, records: Vec::new(), blobs: Vec::new() }
    }

    /// An append by the holder of a lease.
    pub fn under(lease: &Lease) -> Self {
        Self { lease: Some(lease.clone()), ..Self::to(&lease.stream) }
    }

    /// Refuses the append unless this is the head.
    #[must_use]
    pub fn expecting(self, head: Seq) -> Self {
        Self { expected: Expected::Head(head), ..self }
    }

    /// Adds a record.
    #[must_use]
    pub fn record(mut self, record: NewRecord) -> Self {
        self.records.push(record);
        self
    }

    pub fn stream(&self) -> &StreamName {
        &self.stream
    }

    pub fn records(&self) -> &[NewRecord] {
        &self.records
    }

    /// Adds a blob that the records refer to.
    #[must_use]
    pub fn blob(mut self, blob: Blob) -> Self {
        self.blobs.push(blob);
        self
    }
}
