//! What every engine checks and computes of an append before it commits it.

use longhaul_protocol::{Hash, NewRecord, blob_refs};

use crate::{Append, Error, Result};

/// The largest body of a record. Larger data belongs in a blob.
const MAX_BODY_BYTES: usize = 16 << 20;
/// The largest blob. Larger data belongs in a file.
const MAX_BLOB_BYTES: usize = 32 << 20;

/// An append, with everything that can be computed before an engine commits it.
pub struct PreparedAppend {
    pub append: Append,
    /// For each record, the hash of its body and of the blobs that it refers to.
    pub bodies: Vec<(Hash, Vec<Hash>)>,
}

impl PreparedAppend {
    /// Fails if something is too large, or has a form that no engine can keep.
    pub fn new(append: Append) -> Result<Self> {
        for blob in &append.blobs {
            check_size("a blob", blob.bytes.as_ref().map_or(0, Vec::len), MAX_BLOB_BYTES)?;
        }
        let body = |record: &NewRecord| {
            let text = record.body.get();
            check_size("a record", text.len(), MAX_BODY_BYTES)?;
            if text.contains('\n') {
                let (stream, reason) = (append.stream.clone(), "its body has more than one line");
                return Err(Error::BadRecord { stream, reason });
            }
            Ok((Hash::of(text), blob_refs(text).into_iter().map(|blob| blob.hash).collect()))
        };
        let bodies = append.records.iter().map(body).collect::<Result<_>>()?;
        Ok(Self { append, bodies })
    }
}

fn check_size(what: &'static str, bytes: usize, limit: usize) -> Result<()> {
    if bytes > limit { Err(Error::TooLarge { what, bytes, limit }) } else { Ok(()) }
}
