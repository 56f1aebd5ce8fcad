//! Why a file can't be used, in the words that the model reads.

use std::io;

use rustix::io::Errno;

/// Why a file or folder can't be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are the words of the message")]
#[non_exhaustive]
pub enum FileError {
    /// No allowed target covers it.
    #[error("{path} is outside of what is allowed. Allowed: {allowed}")]
    Outside { path: String, allowed: String },
    /// A denied target covers it.
    #[error("{path} is denied. Allowed, apart from what is denied: {allowed}")]
    Denied { path: String, allowed: String },
    /// It holds keys, and no allowed target names it.
    #[error(
        "{path} is protected: keys and credentials are neither read nor written. If the task needs it, ask the user to name it in \
         [[scope.allow]]"
    )]
    Protected { path: String },
    /// It may be read and not written.
    #[error("{path} may be read but not written. Allowed: {allowed}")]
    ReadOnly { path: String, allowed: String },
    /// What is there decides what git runs.
    #[error(
        "{path} is not written, because git runs programs by what is there. Use git commands; what they may not change is for \
         the user to change"
    )]
    RunByGit { path: String },
    /// The folder that everything is relative to is not there.
    #[error("the work folder {path} is gone; no file can be used until it is there again")]
    WorkFolderGone { path: String },
    /// The path of the folder that everything is relative to goes through a link by now.
    #[error(
        "the work folder {path} was replaced by a link, which is not followed; no file can be used until the folder is there again"
    )]
    WorkFolderMoved { path: String },
    /// No system has such a path.
    #[error("`{path}` can't be a path: it must have 1 to 4,096 bytes and no zero byte")]
    Malformed { path: String },
    /// There is nothing.
    #[error("{path} does not exist")]
    NotFound { path: String },
    /// It is a folder, and a file was wanted.
    #[error("{path} is a folder, not a file; list_files shows what is in it")]
    IsFolder { path: String },
    /// It is something else, and a folder was wanted.
    #[error("{path} is not a folder")]
    NotFolder { path: String },
    /// It ends as only the path of a folder does, and there is nothing.
    #[error("{path} can only be a folder, because of how it ends; a file's path has no / at its end")]
    OnlyFolder { path: String },
    /// It is larger than what is done with it allows.
    #[error("{path} has {bytes} bytes; {doing} files up to {most}")]
    TooLarge { path: String, bytes: u64, doing: &'static str, most: u64 },
    /// A pipe, a device, a socket: reading it could wait for ever or do something.
    #[error("{path} is {kind}, not a file")]
    Special { path: String, kind: &'static str },
    /// A link where none was when the path was checked, or one that leads nowhere.
    #[error("{path} goes through a link that leads nowhere, or that changed while it was being looked at")]
    Link { path: String },
    /// It is a link where none is followed.
    #[error("{path} is a link, and is not followed")]
    IsLink { path: String },
    /// It is a link that leads to something outside of the work folder.
    #[error("{path} leads out of the work folder")]
    LeadsOut { path: String },
    /// It is not as it was.
    #[error("{path} {what}")]
    Changed { path: String, what: String },
    /// The system refused.
    #[error("can't {doing} {path}: {source}")]
    System { path: String, doing: &'static str, source: io::Error },
}

impl FileError {
    /// What the system said about a path.
    pub(crate) fn system(doing: &'static str, path: &str, source: impl Into<io::Error>) -> Self {
        let (path, source) = (path.to_owned(), source.into());
        if source.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
            return Self::Link { path };
        }
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { path },
            io::ErrorKind::NotADirectory => Self::NotFolder { path },
            _ => Self::System { path, doing, source },
        }
    }
}

impl From<FileError> for crate::ToolOutcome {
    fn from(error: FileError) -> Self {
        Self::error(error.to_string())
    }
}
