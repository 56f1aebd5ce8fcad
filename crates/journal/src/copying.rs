//! Records of one stream, chained anew as those of another. This is how a session is forked.

use longhaul_protocol::{At, Body, Hash, Record};

use crate::chain::Link;
use crate::{Head, Journal, Lease, Result};

/// A record that is to stand in another stream.
#[derive(Debug, Clone)]
pub struct Copied {
    /// When it was committed first.
    pub at: At,
    /// Its kind.
    pub kind: String,
    /// The hash of its key, if it should be found by one.
    pub key: Option<Hash>,
    /// Its body, or the stub of one that was erased.
    pub body: Body,
}

/// Begins a stream with these records, all or none of them. Their blobs must be there. Times are kept: they say when something
/// happened, not when it was copied.
pub async fn begin_with_copies(
    journal: &dyn Journal,
    lease: &Lease,
    copies: impl IntoIterator<Item = Copied>,
) -> Result<Head> {
    let mut head = Head::EMPTY;
    let mut records = Vec::new();
    for Copied { at, kind, key, body } in copies {
        let (stream, seq, prev) = (lease.stream.clone(), head.seq + 1, head.hash);
        let body_hash = match &body {
            Body::Here(body) => Some(Hash::of(body.get())),
            Body::Gone(gone) => gone.body_hash,
        };
        // Of one that was lost to damage nothing is known that a hash could prove.
        let body_hash = body_hash.unwrap_or(Hash::ZERO);
        let hash = Link { stream: &stream, seq, at, kind: &kind, key, prev, body_hash }.hash();
        head = Head { seq, hash };
        records.push(Record { stream, seq, at, kind, key, body, prev, hash });
    }
    journal.adopt(lease, records, vec![]).await?;
    Ok(head)
}
