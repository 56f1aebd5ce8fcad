use std::io;

use longhaul_protocol::TaskId;

/// What can go wrong with a command and its keeper. Each variant is something that a caller can act on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is a folder of this task already: somebody has started it, or is about to.
    #[error("{id} was started already; ask what became of it before it is started again")]
    Exists {
        /// The task.
        id: TaskId,
    },
    /// The command did not start, and will not.
    #[error("the command did not start: {reason}")]
    NotStarted {
        /// What stood in the way.
        reason: String,
    },
    /// The keeper ended before it said whether the command started.
    #[error("the keeper of {id} ended before it said that the command started; ask what became of it")]
    Interrupted {
        /// The task.
        id: TaskId,
    },
    /// The keeper lives and does not answer.
    #[error("the keeper of {id} does not answer; try again, or end its process")]
    NotAnswering {
        /// The task.
        id: TaskId,
    },
    /// The keeper does not take our token.
    #[error(
        "the keeper of {id} refused the token of {token_file}; it may have been replaced just now, so try again"
    )]
    Refused {
        /// The task.
        id: TaskId,
        /// Where the token was read.
        token_file: String,
    },
    /// There is no such task.
    #[error("there is no task {id}")]
    NoSuchTask {
        /// The task.
        id: TaskId,
    },
    /// A file of a task is not what a keeper writes.
    #[error(
        "{file} is damaged: {reason}; nothing is started again because of it, so look at what the command changed"
    )]
    Damaged {
        /// The file, by the folder of its task.
        file: String,
        /// How it shows.
        reason: String,
    },
    /// A newer version wrote the file.
    #[error("{file} has format {format} and this version knows up to {known}; use a newer longhaul")]
    Newer {
        /// The file, by the folder of its task.
        file: String,
        /// Its format.
        format: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// Anything else that the system said.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, and with what.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: what was tried when the system said no.
    pub(crate) fn io<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source: source.into() }
    }
}

/// The result of everything that is done with a task.
pub type Result<T> = std::result::Result<T, Error>;
