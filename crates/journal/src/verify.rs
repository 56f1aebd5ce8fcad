use std::fmt;

use longhaul_protocol::{Seq, SessionId, StreamName};
use serde::Serialize;

/// What reading everything has shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// How many streams there are.
    pub streams: u64,
    /// How many records were read.
    pub records: u64,
    /// How many blobs were read.
    pub blobs: u64,
    /// How many bodies were erased on purpose.
    pub erased: u64,
    /// How many records and blobs were lost to damage, and stood in for by a salvage.
    pub lost: u64,
    /// Sessions that no key leads to: what an import that was cut short has left.
    pub unnamed: Vec<SessionId>,
    /// What is not as it was committed.
    pub damage: Vec<Damage>,
}

impl Report {
    /// Whether everything is as it was committed.
    pub fn is_sound(&self) -> bool {
        self.damage.is_empty()
    }
}

/// One thing that is not as it was committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The stream, where the damage could be traced to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamName>,
    /// The first place that it touches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<Seq>,
    /// The last place, where it is more than one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub through: Option<Seq>,
    /// How it shows.
    pub reason: String,
}

impl Damage {
    pub(crate) fn at(stream: &StreamName, seq: Seq, reason: impl Into<String>) -> Self {
        Self { stream: Some(stream.clone()), seq: Some(seq), through: None, reason: reason.into() }
    }

    pub(crate) fn between(stream: &StreamName, from: Seq, through: Seq, reason: impl Into<String>) -> Self {
        let through = (through > from).then_some(through);
        Self { through, ..Self::at(stream, from, reason) }
    }

    pub(crate) fn of_file(reason: impl Into<String>) -> Self {
        Self { stream: None, seq: None, through: None, reason: reason.into() }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.stream, self.seq, self.through) {
            (Some(stream), Some(seq), Some(through)) => write!(f, "{stream} seq {seq} to {through}: ")?,
            (Some(stream), Some(seq), None) => write!(f, "{stream} seq {seq}: ")?,
            (Some(stream), None, _) => write!(f, "{stream}: ")?,
            (None, ..) => write!(f, "the file: ")?,
        }
        f.write_str(&self.reason)
    }
}
