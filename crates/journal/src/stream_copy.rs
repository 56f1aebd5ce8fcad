//! Copies records to the beginning of another stream, with a new hash chain. A fork of a session begins this way.

use longhaul_protocol::{At, Body, Hash, Record};

use crate::chain::ChainLink;
use crate::{Head, Journal, Lease, Result};

/// A record to copy, without its place and its hashes.
#[derive(Debug, Clone)]
pub struct RecordCopy {
    /// When the record was first committed. The copy keeps this time.
    pub at: At,
    /// Its kind.
    pub kind: String,
    /// The hash of its key; `None` to copy it without one.
    pub key: Option<Hash>,
    /// Its body, or the stub of an erased one.
    pub body: Body,
}

/// Begins a stream with these records, all or none of them. The journal must already have their blobs.
pub async fn begin_with_copies(
    journal: &dyn Journal,
    lease: &Lease,
    copies: impl IntoIterator<Item = RecordCopy>,
) -> Result<Head> {
    let mut head = Head::EMPTY;
    let mut records = Vec::new();
    for RecordCopy { at, kind, key, body } in copies {
        let (stream, seq, prev) = (lease.stream.clone(), head.seq + 1, head.hash);
        let body_hash = match &body {
            Body::Here(body) => Some(Hash::of(body.get())),
            Body::Gone(gone) => gone.body_hash,
        };
        // The body of a record that was lost to damage has no known hash.
        let body_hash = body_hash.unwrap_or(Hash::ZERO);
        let hash = ChainLink { stream: &stream, seq, at, kind: &kind, key, prev, body_hash }.hash();
        head = Head { seq, hash };
        records.push(Record { stream, seq, at, kind, key, body, prev, hash });
    }
    journal.adopt(lease, records, vec![]).await?;
    Ok(head)
}
