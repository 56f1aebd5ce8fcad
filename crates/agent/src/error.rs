use std::path::PathBuf;
use std::sync::Arc;

use longhaul_protocol::{DecodeError, PrintablePath, Seq};

/// What can go wrong, by what the caller can do about it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The journal returned an error.
    #[error(transparent)]
    Journal(#[from] longhaul_journal::Error),
    /// There is no such model.
    #[error(transparent)]
    Model(#[from] longhaul_model::Error),
    /// The config is invalid.
    #[error("{origin}: {reason}")]
    Config {
        /// The source of the invalid value.
        origin: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A folder can't be used.
    #[error("{}: {reason}", path.printable())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// The latest records could not be written. They are kept in memory, and the write is retried.
    #[error("not saved: {reason}; it is kept in memory and tried again")]
    NotSaved {
        /// Why.
        reason: String,
    },
    /// No process runs the session, and this handle can't.
    #[error("no process runs {key}; what was sent waits in its inbox")]
    NotRunning {
        /// The session's key.
        key: String,
    },
    /// The order to cancel is in the inbox, but the turn has not ended within the grace period.
    #[error("the turn of {key} has not ended yet; the order to cancel it is in its inbox")]
    CancelPending {
        /// The session's key.
        key: String,
    },
    /// This home can't run keepers for commands.
    #[error(transparent)]
    Keeper(Arc<longhaul_keeper::Error>),
    /// This version can't read a record.
    #[error("{key} can't be opened: {reason}; a newer version may read it")]
    Unreadable {
        /// The session.
        key: String,
        /// What can't be read.
        reason: DecodeError,
    },
    /// The session can't be forked at this record.
    #[error("{key} can't be forked at record {seq}: {reason}; it has records 1 to {head}")]
    NoSuchPoint {
        /// The session.
        key: String,
        /// The record.
        seq: Seq,
        /// What is wrong with it.
        reason: String,
        /// The last record of the session.
        head: Seq,
    },
    /// The question is not open.
    #[error("{key} has no open question {question}: {known}")]
    NoSuchQuestion {
        /// The session.
        key: String,
        /// The question that the caller asked for.
        question: String,
        /// What happened to it, or the open questions.
        known: String,
    },
    /// The session has no such task.
    #[error("{key} has no task {task}: {known}")]
    NoSuchTask {
        /// The session.
        key: String,
        /// The task that the caller asked for.
        task: String,
        /// The tasks that the session has.
        known: String,
    },
    /// The context could not be made smaller, and is unchanged.
    #[error("the context could not be made smaller: {reason}")]
    NotCompacted {
        /// Why.
        reason: String,
    },
    /// Memory returned an error.
    #[error(transparent)]
    Memory(#[from] longhaul_memory::Error),
    /// The daily budget is spent: background calls are off until tomorrow.
    #[error("limits.cost_per_day is reached")]
    OutOfMoney,
    /// The runtime is about to end. The turn stays open, and the next runtime continues it.
    #[error("the runtime is ending: the turn stays open, and the next runtime goes on with it")]
    Suspended,
    /// The session's worker ended unexpectedly.
    #[error("the worker of {key} failed: {reason}; send anything to start it again")]
    Worker {
        /// The session.
        key: String,
        /// How it ended.
        reason: String,
    },
}

/// What calls of this crate come to.
pub type Result<T> = std::result::Result<T, Error>;
