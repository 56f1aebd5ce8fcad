use std::path::PathBuf;

use longhaul_protocol::{Hash, PrintablePath, Seq, StreamName};

use crate::{Head, Holder};

/// What can go wrong with a journal. Each variant is something that a caller can act on, and each message says
/// what happened, to what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Another writer moved the head. Read what it wrote, then decide again.
    #[error("{stream} has moved on to seq {}: another writer appended", head.seq)]
    Conflict {
        /// The stream.
        stream: StreamName,
        /// Where its head is now.
        head: Head,
    },
    /// Another holder has taken the lease over. Stop: whatever this writer believes is out of date.
    #[error("the lease on {stream} was taken over{}", by(holder.as_deref()))]
    Fenced {
        /// The stream.
        stream: StreamName,
        /// Who holds it now, if anybody does.
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
    /// A record with the same key is there already, so this one was not appended.
    #[error("{stream} has a record with this key already, at seq {seq}")]
    Duplicate {
        /// The stream.
        stream: StreamName,
        /// Where the first one stands.
        seq: Seq,
    },
    /// A body refers to a blob that neither came along nor is there.
    #[error("a record of {stream} refers to the blob {hash}, which the journal does not have")]
    MissingBlob {
        /// The stream.
        stream: StreamName,
        /// The blob.
        hash: Hash,
    },
    /// A body or blob is larger than a journal takes.
    #[error("{what} of {bytes} bytes is too large for the journal, which takes {limit}")]
    TooLarge {
        /// What was too large.
        what: &'static str,
        /// How large it was.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// A record that says whose words those before it are, and what of them is closed.
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
        /// The place that was asked for.
        seq: Seq,
        /// The last place there is.
        head: Seq,
    },
    /// There is no such blob.
    #[error("the journal has no blob {hash}")]
    NoSuchBlob {
        /// The blob.
        hash: Hash,
    },
    /// A record is not what was committed. Others stay readable.
    #[error("{stream} seq {seq} is damaged: {reason}; `longhaul verify` shows the extent")]
    Damaged {
        /// The stream.
        stream: StreamName,
        /// The first place that is damaged.
        seq: Seq,
        /// How it shows.
        reason: String,
    },
    /// The file as a whole can't be used.
    #[error("{} is damaged: {reason}; `longhaul verify --salvage FILE` writes what can be read to FILE", path.printable())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// How it shows.
        reason: String,
    },
    /// The disk is full. Nothing that was acknowledged is lost; the append can be tried again.
    #[error("not saved: the disk that holds {} is full; free some space and it goes on", path.printable())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder can't be written.
    #[error("not saved: {} can't be written ({reason}); make it writable and it goes on", path.printable())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// What stands in the way.
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
    /// Anything else that the system said.
    #[error("{}: {reason}", path.printable())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file belongs to another program.
    #[error("{} is not a Longhaul journal ({reason}); choose another home with --home, or if it is a damaged one: `longhaul verify --salvage FILE`", path.printable())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// How it shows.
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
    /// Something needs the home for itself, and others use it.
    #[error("{why} needs the home {} for itself, and {by} uses it; end that process and try again", home.printable())]
    InUse {
        /// The home.
        home: PathBuf,
        /// What needs it.
        why: &'static str,
        /// Who uses it.
        by: String,
    },
    /// What is left of a journal is there, and the journal is not.
    #[error(
        "{} is missing, but {} shows that there was one; bring it back or `longhaul restore` a backup (to begin anew, move {} away)",
        path.printable(),
        left.printable(),
        left.printable()
    )]
    Missing {
        /// The journal's file.
        path: PathBuf,
        /// What is left: the noted heads, or the log.
        left: PathBuf,
    },
    /// A body was erased, and its bytes may still be in a file.
    #[error(
        "it is erased for every reader, but {} may still have its bytes ({reason}); erase it again to finish",
        path.printable()
    )]
    NotScrubbed {
        /// The file.
        path: PathBuf,
        /// What stood in the way.
        reason: String,
    },
    /// A restore was decided and could not be finished.
    #[error("the restore is decided but not finished ({reason}); the next command in this home finishes it")]
    Unfinished {
        /// What stood in the way.
        reason: String,
    },
    /// The folder that a new file should be in is not there.
    #[error("there is no folder {}; make it, or name another file", path.printable())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A record is not of the form that a journal keeps.
    #[error("a record for {stream} was refused: {reason}")]
    BadRecord {
        /// The stream.
        stream: StreamName,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file that would be written is there already.
    #[error("{} exists already; name another file", path.printable())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file that was to be imported or restored is not what it should be.
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
    /// Somebody works at the session.
    #[error("the session {key:?} is in use by {holder}; end that, and try again")]
    InUseBy {
        /// The key.
        key: String,
        /// Who holds it.
        holder: Box<Holder>,
    },
    /// The journal has been closed.
    #[error("the journal is closed")]
    Closed,
}

impl Error {
    /// Whether the same may work later without anybody changing what is asked for: a full disk, a file that is locked.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::DiskFull { .. } | Self::ReadOnly { .. } | Self::Locked { .. } | Self::Io { .. })
    }
}

fn by(holder: Option<&Holder>) -> String {
    holder.map(|holder| format!(" by {holder}")).unwrap_or_default()
}

/// The result of everything that a journal does.
pub type Result<T> = std::result::Result<T, Error>;
