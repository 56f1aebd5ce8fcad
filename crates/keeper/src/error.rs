use std::io;

use longhaul_protocol::TaskId;

/// An error with a command or its keeper. Each variant is something that a caller can act on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The task's folder exists: the command was started, or a start is under way.
    #[error("{id} was started already; ask what became of it before it is started again")]
    Exists { id: TaskId },
    /// The command did not start, and will not.
    #[error("the command did not start: {reason}")]
    NotStarted { reason: String },
    /// The keeper ended before it reported whether the command started.
    #[error("the keeper of {id} ended before it said that the command started; ask what became of it")]
    Interrupted { id: TaskId },
    /// The keeper is alive but does not answer.
    #[error("the keeper of {id} does not answer; try again, or end its process")]
    NotAnswering { id: TaskId },
    /// The keeper rejects the token.
    #[error(
        "the keeper of {id} refused the token of {token_file}; it may have been replaced just now, so try again"
    )]
    Refused { id: TaskId, token_file: String },
    /// There is no such task.
    #[error("there is no task {id}")]
    NoSuchTask { id: TaskId },
    /// A file of a task is damaged.
    #[error(
        "{file} is damaged: {reason}; nothing is started again because of it, so look at what the command changed"
    )]
    Damaged {
        /// The file and the name of its task's folder.
        file: String,
        reason: String,
    },
    /// A newer version wrote the file.
    #[error("{file} has format {format} and this version knows up to {known}; use a newer longhaul")]
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
