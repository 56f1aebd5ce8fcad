use std::io;

use longhaul_protocol::TaskId;

/// An error with a command or its keeper. Each variant is something that a caller can act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The task's folder exists: the command was started, or a start is under way.
    #[error("task {id} was already started; check what became of it first")]
    Exists { id: TaskId },
    /// The command did not start, and will not.
    #[error("could not start the command: {reason}")]
    NotStarted { reason: String },
    /// The keeper ended before it reported whether the command started.
    #[error(
        "the supervisor of task {id} ended before it reported that the command had started; check what became of it"
    )]
    Interrupted { id: TaskId },
    /// The keeper is alive but does not answer.
    #[error("the supervisor of task {id} does not answer; try again, or kill its process")]
    NotAnswering { id: TaskId },
    /// The keeper rejects the token.
    #[error(
        "the supervisor of task {id} refused the token in {token_file}; it may just have been replaced, so try again"
    )]
    Refused { id: TaskId, token_file: String },
    /// There is no such task.
    #[error("no task {id}")]
    NoSuchTask { id: TaskId },
    /// A file of a task is damaged.
    #[error("{file} is damaged: {reason}; the command is not started again, so check what it changed")]
    Damaged {
        /// The file and the name of its task's folder.
        file: String,
        reason: String,
    },
    /// A newer version wrote the file.
    #[error(
        "{file} was written by a newer longhaul (format {format}, this version knows {known}); update longhaul"
    )]
    Newer {
        file: String,
        format: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// Any other error of the system.
    #[error("{what}: {source}")]
    Io {
        /// The operation that failed.
        what: String,
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: adds the operation that failed.
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source: source.into() }
    }
}

/// The result of operations on tasks.
pub type Result<T> = std::result::Result<T, Error>;
