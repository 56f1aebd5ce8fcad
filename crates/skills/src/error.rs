use crate::folder::{MAX_DEPTH, MAX_ENTRIES, MAX_FOLDER_BYTES};

/// Why a skill can't be used. Paths are relative to the skill's folder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    #[error("its folder is gone")]
    Gone,
    #[error("it has no SKILL.md")]
    NoDocument,
    #[error("{path} is a link; put the file itself there")]
    DocumentLink { path: String },
    #[error("{path} is a link to {target}, outside of the skill's folder; copy the file there instead")]
    LeadsOut { path: String, target: String },
    #[error("it is a link that leads out of {base}; move the skill there, or add its folder to skills.paths")]
    Elsewhere { base: String },
    #[error("{path} is neither a file nor a folder")]
    Special { path: String },
    #[error("{reason}; only you should be able to write {path}")]
    Foreign { path: String, reason: String },
    #[error("SKILL.md has more than {} KiB; move parts of it to other files", .max_bytes >> 10)]
    DocumentTooLarge { max_bytes: u64 },
    #[error("its files have more than {} MiB together", MAX_FOLDER_BYTES >> 20)]
    FolderTooLarge,
    #[error("it has more than {MAX_ENTRIES} files")]
    TooManyFiles,
    #[error("its folders are nested more than {MAX_DEPTH} deep")]
    TooDeep,
    #[error("{path}: {reason}")]
    Unreadable { path: String, reason: String },
    /// Everything that is wrong with its SKILL.md.
    #[error("{}", reasons.join("; "))]
    Invalid { reasons: Vec<String> },
}

impl SkillError {
    pub(crate) fn unreadable(path: &str, reason: impl std::fmt::Display) -> Self {
        Self::Unreadable { path: path.to_owned(), reason: reason.to_string() }
    }

    pub(crate) fn invalid(reason: impl Into<String>) -> Self {
        Self::Invalid { reasons: vec![reason.into()] }
    }
}
