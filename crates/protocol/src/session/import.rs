use serde::{Deserialize, Serialize};

use crate::{At, Hash, Seq};

/// The session came from a file of another home. Whatever was open before this record is closed by it: a turn, an answer, calls,
/// questions, a compaction, tasks. Answers to questions before it allow nothing any more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The hash of the file's bytes.
    pub file_hash: Hash,
    /// When it was imported.
    pub at: At,
    /// The key that it was given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// The importer's folder, in which the session works from here on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_dir: Option<String>,
    /// The importer said that it is their own session (`--mine`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mine: bool,
    /// The last record of the inbox that came with the file. Nothing of it is taken.
    #[serde(default)]
    pub inbox_through: Seq,
    /// The last record of the session whose user is not the importer. This record itself, unless the session is the importer's own; then what
    /// an earlier import said.
    #[serde(default)]
    pub foreign_through: Seq,
    /// The same for the extracts that came with the file: the last one that the importer's own runtime did not write.
    #[serde(default)]
    pub foreign_extracts_through: Seq,
}

impl Imported {
    /// An import whose body is gone, at this record: nothing before it counts as the importer's.
    pub fn unknown(seq: Seq) -> Self {
        Self {
            file_hash: Hash::ZERO,
            at: At(0),
            key: String::new(),
            work_dir: None,
            mine: false,
            inbox_through: 0,
            foreign_through: seq,
            foreign_extracts_through: Seq::MAX,
        }
    }
}
