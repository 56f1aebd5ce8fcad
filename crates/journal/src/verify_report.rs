use std::fmt;

use longhaul_protocol::{Seq, SessionId, StreamName};
use serde::Serialize;

/// The result of verifying a journal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Streams in the journal.
    pub streams: u64,
    /// Records read.
    pub records: u64,
    /// Blobs read.
    pub blobs: u64,
    /// Bodies erased on purpose.
    pub erased: u64,
    /// Records and blobs that a salvage replaced by stubs.
    pub lost: u64,
    /// Sessions without a key, which an interrupted import has left.
    pub unnamed: Vec<SessionId>,
    /// What is not as it was committed.
    pub damage: Vec<Damage>,
}

impl VerifyReport {
    /// Whether everything is as it was committed.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// One thing that is not as it was committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The stream, if the damage belongs to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamName>,
    /// The first damaged place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// The last damaged place, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<Seq>,
    /// What is wrong.
    pub reason: String,
}

impl Damage {
    /// Damage of one record.
    pub fn at(stream: &StreamName, seq: Seq, reason: impl Into<String>) -> Self {
        Self { stream: Some(stream.clone()), seq: Some(seq), through: None, reason: reason.into() }
    }

    /// Damage of a range of records.
    pub fn between(stream: &StreamName, from: Seq, through: Seq, reason: impl Into<String>) -> Self {
        let through = (through > from).then_some(through);
        Self { through, ..Self::at(stream, from, reason) }
    }

    /// Damage that belongs to no stream.
    pub fn of_file(reason: impl Into<String>) -> Self {
        Self { stream: None, seq: None, through: None, reason: reason.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.stream, self.seq, self.through) {
            (Some(stream), Some(seq), Some(through)) => write!(f, "{stream} entries {seq} to {through}: ")?,
            (Some(stream), Some(seq), None) => write!(f, "{stream} entry {seq}: ")?,
            (Some(stream), None, _) => write!(f, "{stream}: ")?,
            (None, ..) => write!(f, "the file: ")?,
        }
        f.write_str(&self.reason)
    }
}
