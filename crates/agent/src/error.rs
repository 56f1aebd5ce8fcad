use std::path::PathBuf;
use std::sync::Arc;

use longhaul_protocol::{DecodeError, PrintablePath, Seq, TaskId};

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
    #[error("not saved: {reason}; keeping it in memory and retrying")]
    NotSaved {
        /// Why.
        reason: String,
    },
    /// No process runs the session, and this handle can't.
    #[error("no process is running {key}; your message is saved and waits for one")]
    NotRunning {
        /// The session's key.
        key: String,
    },
    /// The order to cancel is in the inbox, but the turn has not ended within the grace period.
    #[error("the turn of {key} has not ended yet; it will be cancelled as soon as possible")]
    CancelPending {
        /// The session's key.
        key: String,
    },
    /// This home can't run keepers for commands.
    #[error(transparent)]
    Keeper(Arc<longhaul_keeper::Error>),
    /// This version can't read a record.
    #[error("can't open {key}: {reason}; try a newer longhaul")]
    Unreadable {
        /// The session.
        key: String,
        /// What can't be read.
        reason: DecodeError,
    },
    /// The session can't be forked at this record.
    #[error("can't fork {key} at entry {seq}: {reason}; it has entries 1 to {head}")]
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
    /// The question was answered, or withdrawn with its turn.
    #[error("{key} has no open question {question}: {known}")]
    QuestionSettled {
        /// The session.
        key: String,
        /// The question that the caller asked for.
        question: String,
        /// What happened to it.
        known: String,
    },
    /// An idempotency key was used before, with another content.
    #[error("this idempotency key was used before, by entry {seq}, which says something else")]
    KeyReused {
        /// The position of that entry.
        seq: Seq,
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
    /// Another node has the command of a running task, with its output.
    #[error("task {task} runs on node {node}, which alone can read its output or end it; ask that node")]
    TaskOnOtherNode {
        /// The task.
        task: TaskId,
        /// The node.
        node: String,
    },
    /// The context could not be made smaller, and is unchanged.
    #[error("could not compact the context: {reason}")]
    NotCompacted {
        /// Why.
        reason: String,
    },
    /// A schedule can't be used as it is written.
    #[error("schedule {name}: {reason}")]
    Schedule {
        /// The schedule.
        name: String,
        /// What is wrong with it.
        reason: longhaul_schedule::Error,
    },
    /// There is no schedule with this name.
    #[error("no schedule {name:?}; {known}")]
    NoSuchSchedule {
        /// The name that the caller asked for.
        name: String,
        /// The nearest name, or the names that there are.
        known: String,
    },
    /// The name of a new schedule is taken.
    #[error("there is a schedule {name:?} already; choose another name, or delete that one first")]
    ScheduleExists {
        /// The name.
        name: String,
    },
    /// The schedule is in the config, so only the config can change it.
    #[error("schedule {name:?} is in the config; change it there")]
    ScheduleInConfig {
        /// The schedule.
        name: String,
    },
    /// A session has as many schedules as an agent may make.
    #[error("{limit}; the user can add more with `longhaul schedules add`")]
    ScheduleLimit {
        /// The limit that was reached.
        limit: String,
    },
    /// Memory returned an error.
    #[error(transparent)]
    Memory(#[from] longhaul_memory::Error),
    /// The runtime is about to end. The turn stays open, and the next runtime continues it.
    #[error("longhaul is shutting down; the turn is saved and can be resumed")]
    Suspended,
    /// The session's worker ended unexpectedly.
    #[error("{key} stopped unexpectedly: {reason}; send anything to go on")]
    Worker {
        /// The session.
        key: String,
        /// How it ended.
        reason: String,
    },
}

/// What calls of this crate come to.
pub type Result<T> = std::result::Result<T, Error>;

impl From<longhaul_keeper::Error> for Error {
    fn from(error: longhaul_keeper::Error) -> Self {
        Self::Keeper(Arc::new(error))
    }
}
