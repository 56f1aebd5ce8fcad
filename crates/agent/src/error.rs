use std::path::PathBuf;
use std::sync::Arc;

use longhaul_protocol::{DecodeError, PrintablePath, Seq};

/// What can go wrong, by what the caller can do about it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The journal refused.
    #[error(transparent)]
    Journal(#[from] longhaul_journal::Error),
    /// There is no such model.
    #[error(transparent)]
    Model(#[from] longhaul_model::Error),
    /// The config can't be used.
    #[error("{origin}: {reason}")]
    Config {
        /// Where it came from.
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
    /// What happened could not be written down. It is kept in memory and tried again.
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
    /// The order to cancel is in the inbox, and the turn has not ended within the grace period.
    #[error("the turn of {key} has not ended yet; the order to cancel it is in its inbox")]
    CancelPending {
        /// The session's key.
        key: String,
    },
    /// Commands can't be kept in this home.
    #[error(transparent)]
    Keeper(Arc<longhaul_keeper::Error>),
    /// A record says something that this version doesn't understand.
    #[error("{key} can't be opened: {reason}; a newer version may read it")]
    Unreadable {
        /// The session.
        key: String,
        /// What can't be read.
        reason: DecodeError,
    },
    /// There is no such record to fork at.
    #[error("{key} can't be forked at record {seq}: {reason}; it has records 1 to {head}")]
    NoSuchPoint {
        /// The session.
        key: String,
        /// The record.
        seq: Seq,
        /// What is wrong with it.
        reason: String,
        /// The last record that there is.
        head: Seq,
    },
    /// No such question is open.
    #[error("{key} has no open question {question}: {known}")]
    NoSuchQuestion {
        /// The session.
        key: String,
        /// What was asked for.
        question: String,
        /// What became of it, or which there are.
        known: String,
    },
    /// The session has no such task.
    #[error("{key} has no task {task}: {known}")]
    NoSuchTask {
        /// The session.
        key: String,
        /// What was asked for.
        task: String,
        /// Which there are.
        known: String,
    },
    /// The context could not be made smaller; it is as it was.
    #[error("the context could not be made smaller: {reason}")]
    NotCompacted {
        /// Why.
        reason: String,
    },
    /// Memory refused.
    #[error(transparent)]
    Memory(#[from] longhaul_memory::Error),
    /// The daily budget is spent: background calls are off until tomorrow.
    #[error("limits.cost_per_day is reached")]
    OutOfMoney,
    /// The runtime is about to end; the turn is open and the next one goes on with it.
    #[error("the runtime is ending: the turn stays open, and the next runtime goes on with it")]
    Suspended,
    /// The session's worker came to an end that it should not have come to.
    #[error("the worker of {key} failed: {reason}; send anything to start it again")]
    Worker {
        /// The session.
        key: String,
        /// How.
        reason: String,
    },
}

/// What calls of this crate come to.
pub type Result<T> = std::result::Result<T, Error>;
