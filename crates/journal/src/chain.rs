//! The hash that ties each record to the one before it.
//!
//! A record's hash is blake3 over its fields, each framed by its length: format, stream, seq, at, kind, prev, the
//! hash of the body, and the hash of the key if the record has one. Only the hash of the body's stored bytes goes in,
//! so the body can be erased and the chain still verifies. The chain detects damage. It does not prevent forgery.

use longhaul_protocol::{At, Body, Hash, Record, Seq, StreamName};

const FORMAT: u32 = 1;

/// The fields that a record's hash is made of.
pub struct ChainLink<'a> {
    pub stream: &'a StreamName,
    pub seq: Seq,
    pub at: At,
    pub kind: &'a str,
    pub key: Option<Hash>,
    pub prev: Hash,
    pub body_hash: Hash,
}

impl ChainLink<'_> {
    pub fn hash(&self) -> Hash {
        let mut hasher = blake3::Hasher::new();
        let mut field = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        field(&FORMAT.to_le_bytes());
        field(self.stream.as_str().as_bytes());
        field(&self.seq.to_le_bytes());
        field(&self.at.0.to_le_bytes());
        field(self.kind.as_bytes());
        field(self.prev.as_bytes());
        field(self.body_hash.as_bytes());
        if let Some(key) = self.key {
            field(key.as_bytes());
        }
        Hash::from_bytes(hasher.finalize().into())
    }
}

/// The hash that a record should have; `None` for the stub of a lost record.
fn expected_hash(record: &Record) -> Option<Hash> {
    let body_hash = match &record.body {
        Body::Here(body) => Hash::of(body.get()),
        Body::Gone(gone) => gone.body_hash?,
    };
    let Record { stream, seq, at, kind, key, prev, .. } = record;
    Some(ChainLink { stream, seq: *seq, at: *at, kind, key: *key, prev: *prev, body_hash }.hash())
}

/// Follows a stream record by record and finds where the chain breaks.
#[derive(Debug, Clone)]
pub struct ChainCheck {
    /// The hash of the record before the next one, if known.
    prev: Option<Hash>,
    next: Seq,
}

impl ChainCheck {
    /// Begins at the record at `seq`, whatever stands before it.
    pub fn from(seq: Seq) -> Self {
        Self { prev: (seq <= 1).then_some(Hash::ZERO), next: seq.max(1) }
    }

    /// The position of the next record.
    pub fn next_seq(&self) -> Seq {
        self.next
    }

    /// Checks one record and moves to the next one, even after an error.
    pub fn follow(&mut self, record: &Record) -> Result<(), String> {
        let verdict = if record.seq != self.next {
            Err(format!("entry {} is missing", self.next))
        } else if expected_hash(record).is_some_and(|hash| hash != record.hash) {
            Err("content does not match its hash".to_owned())
        } else if self.prev.is_some_and(|prev| prev != record.prev) {
            Err("does not follow the entry before it".to_owned())
        } else {
            Ok(())
        };
        self.next = record.seq + 1;
        self.prev = Some(record.hash);
        verdict
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
