use std::path::PathBuf;

use longhaul_protocol::{Hash, PrintablePath, Seq, StreamName};

use crate::{Head, Holder};

/// An error of a journal. Each variant is something that a caller can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another writer moved the head. Read its records, then decide again.
    #[error("{stream} has moved on to seq {}: another writer appended", head.seq)]
    Conflict {
        /// The stream.
        stream: StreamName,
        /// Where its head is now.
        head: Head,
    },
    /// Another process has taken over the lease. Stop: this writer's state is out of date.
    #[error("the lease on {stream} was taken over{}", by(holder.as_deref()))]
    Fenced {
        /// The stream.
        stream: StreamName,
        /// The holder now, if there is one.
        holder: Option<Box<Holder>>,
    },
    /// The lease is not free.
    #[error("{stream} is held by {holder}; try again when it has let go")]
    Held {
        /// The stream.
        stream: StreamName,
        /// Who holds it.
        holder: Box<Holder>,
    },
    /// A record with the same key exists, so this one was not appended.
    #[error("{stream} has a record with this key already, at seq {seq}")]
    Duplicate {
        /// The stream.
        stream: StreamName,
        /// The position of the first one.
        seq: Seq,
    },
    /// A body refers to a blob that is neither in the append nor in the journal.
    #[error("a record of {stream} refers to the blob {hash}, which the journal does not have")]
    MissingBlob {
        /// The stream.
        stream: StreamName,
        /// The blob.
        hash: Hash,
    },
    /// A body or blob is larger than the limit.
    #[error("{what} of {bytes} bytes is too large for the journal, which takes {limit}")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The maximum.
        limit: usize,
    },
    /// The record marks the session as imported, and can't be erased.
    #[error(
        "{stream} seq {seq} marks the session as imported, and can't be erased; it holds nothing that was said"
    )]
    MarksImport {
        /// The stream.
        stream: StreamName,
        /// The record.
        seq: Seq,
    },
    /// There is no such record.
    #[error("{stream} has no seq {seq}; its head is {head}")]
    NoSuchRecord {
        /// The stream.
        stream: StreamName,
        /// The position that the caller asked for.
        seq: Seq,
        /// The last position of the stream.
        head: Seq,
    },
    /// There is no such blob.
    #[error("the journal has no blob {hash}")]
    NoSuchBlob {
        /// The blob.
        hash: Hash,
    },
    /// A record is not as it was committed. Other records stay readable.
    #[error("{stream} seq {seq} is damaged: {reason}; `longhaul verify` shows the extent")]
    Damaged {
        /// The stream.
        stream: StreamName,
        /// The first damaged place.
        seq: Seq,
        /// What is wrong.
        reason: String,
    },
    /// The file as a whole can't be used.
    #[error("{} is damaged: {reason}; `longhaul verify --salvage FILE` writes what can be read to FILE", path.printable())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The disk is full. No acknowledged record is lost; the append can be retried.
    #[error("not saved: the disk that holds {} is full; free some space and it goes on", path.printable())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder is read-only.
    #[error("not saved: {} can't be written ({reason}); make it writable and it goes on", path.printable())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// Another process keeps the file locked.
    #[error("not saved: {} is locked by {by}; it goes on when the lock is gone", path.printable())]
    Locked {
        /// The file.
        path: PathBuf,
        /// Who locks it.
        by: String,
    },
    /// Any other error of the system.
    #[error("{}: {reason}", path.printable())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// The file belongs to another program.
    #[error("{} is not a Longhaul journal ({reason}); choose another home with --home, or if it is a damaged one: `longhaul verify --salvage FILE`", path.printable())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A newer version wrote the file: it can be read, not written.
    #[error(
        "{} has format {format} and this version writes format {known}: it is open for reading only; use a newer longhaul to write",
        path.printable()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: u32,
        /// The newest format that this version knows.
        known: u32,
    },
    /// An operation needs the home exclusively, and another process uses it.
    #[error("{why} needs the home {} for itself, and {by} uses it; end that process and try again", home.printable())]
    InUse {
        /// The home.
        home: PathBuf,
        /// The operation.
        why: &'static str,
        /// The process that uses it.
        by: String,
    },
    /// The journal is missing, but other files show that there was one.
    #[error(
        "{} is missing, but {} shows that there was one; bring it back or `longhaul restore` a backup (to begin anew, move {} away)",
        path.printable(),
        left.printable(),
        left.printable()
    )]
    Missing {
        /// The journal's file.
        path: PathBuf,
        /// The file that is left: the known heads, or the log.
        left: PathBuf,
    },
    /// A body is erased, but its bytes may still be in a file.
    #[error(
        "it is erased for every reader, but {} may still have its bytes ({reason}); erase it again to finish",
        path.printable()
    )]
    NotScrubbed {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// A restore was decided and could not be finished.
    #[error("the restore is decided but not finished ({reason}); the next command in this home finishes it")]
    Unfinished {
        /// The cause.
        reason: String,
    },
    /// The folder for a new file doesn't exist.
    #[error("there is no folder {}; make it, or name another file", path.printable())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A record has a form that a journal can't keep.
    #[error("a record for {stream} was refused: {reason}")]
    BadRecord {
        /// The stream.
        stream: StreamName,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file to write exists already.
    #[error("{} exists already; name another file", path.printable())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file to import or restore is not valid.
    #[error("{}: {reason}; nothing was changed", path.printable())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// A text that can't be the key of a session.
    #[error("{key:?} can't be the key of a session: {reason}")]
    BadKey {
        /// The text.
        key: String,
        /// Why not.
        reason: &'static str,
    },
    /// No session has this key.
    #[error("there is no session {key:?}; `longhaul sessions list` shows those that there are")]
    NoSuchSession {
        /// The key.
        key: String,
    },
    /// The key or id is taken.
    #[error("there is a session {key:?} already; choose another key with --as")]
    SessionExists {
        /// The key.
        key: String,
    },
    /// Another process runs the session.
    #[error("the session {key:?} is in use by {holder}; end that, and try again")]
    InUseBy {
        /// The key.
        key: String,
        /// The holder of its lease.
        holder: Box<Holder>,
    },
    /// The journal has been closed.
    #[error("the journal is closed")]
    Closed,
}

impl Error {
    /// Whether a retry may succeed once the cause has passed, such as a full disk or a locked file.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::ReadOnly { .. } | Self::Locked { .. } | Self::Io { .. })
    }
}

fn by(holder: Option<&Holder>) -> String {
    holder.map(|holder| format!(" by {holder}")).unwrap_or_default()
}

/// The result of a journal's operations.
pub type Result<T> = std::result::Result<T, Error>;
