use serde::{Deserialize, Serialize};

use crate::{At, Hash, Seq};

/// The session was imported from a file. This record closes everything that was open before it: a turn, an answer, calls,
/// questions, a compaction, tasks. Approvals before it are void.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// The hash of the file's bytes.
    pub file_hash: Hash,
    pub at: At,
    /// Its key in this home.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Its work folder from now on. The importer chooses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_dir: Option<String>,
    /// The importer said that it is their own session (`--mine`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mine: bool,
    /// The last record of the imported inbox. The session takes none of its records.
    #[serde(default)]
    pub inbox_through: Seq,
    /// The last record that a stranger wrote: this one, or that of an earlier import if this session is the
    /// importer's own.
    #[serde(default)]
    pub foreign_through: Seq,
    /// The last extract that the importer's own runtime didn't write.
    #[serde(default)]
    pub foreign_extracts_through: Seq,
}

impl Imported {
    /// Represents an import at this record whose body is gone: everything before it counts as a stranger's.
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
