use std::path::PathBuf;

use longhaul_protocol::{Hash, PrintablePath, Seq, StreamName};

use crate::{Head, Holder};

/// An error of a journal. Each variant is something that a caller can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another writer moved the head. Read its records, then decide again.
    #[error("another process wrote to {stream} first (it is at {})", head.seq)]
    Conflict {
        /// The stream.
        stream: StreamName,
        /// Where its head is now.
        head: Head,
    },
    /// Another process has taken over the lease. Stop: this writer's state is out of date.
    #[error("another process took over {stream}{}", by(holder.as_deref()))]
    Fenced {
        /// The stream.
        stream: StreamName,
        /// The holder now, if there is one.
        holder: Option<Box<Holder>>,
    },
    /// The lease is not free.
    #[error("{stream} is in use by {holder}; try again when it is done")]
    Held {
        /// The stream.
        stream: StreamName,
        /// Who holds it.
        holder: Box<Holder>,
    },
    /// A record with the same key exists, so this one was not appended.
    #[error("{stream} already has an entry with this key, at {seq}")]
    Duplicate {
        /// The stream.
        stream: StreamName,
        /// The position of the first one.
        seq: Seq,
    },
    /// A body refers to a blob that is neither in the append nor in the journal.
    #[error("an entry of {stream} refers to blob {hash}, which the journal does not have")]
    MissingBlob {
        /// The stream.
        stream: StreamName,
        /// The blob.
        hash: Hash,
    },
    /// A body or blob is larger than the limit.
    #[error("{what} of {bytes} bytes is too large; the limit is {limit}")]
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
        "can't erase entry {seq} of {stream}: it marks the session as imported and holds no conversation"
    )]
    MarksImport {
        /// The stream.
        stream: StreamName,
        /// The record.
        seq: Seq,
    },
    /// There is no such record.
    #[error("no entry {seq} in {stream}; the last one is {head}")]
    NoSuchRecord {
        /// The stream.
        stream: StreamName,
        /// The position that the caller asked for.
        seq: Seq,
        /// The last position of the stream.
        head: Seq,
    },
    /// There is no such blob.
    #[error("no blob {hash} in the journal")]
    NoSuchBlob {
        /// The blob.
        hash: Hash,
    },
    /// A record is not as it was committed. Other records stay readable.
    #[error("entry {seq} of {stream} is damaged: {reason}; run `longhaul verify` for details")]
    Damaged {
        /// The stream.
        stream: StreamName,
        /// The first damaged place.
        seq: Seq,
        /// What is wrong.
        reason: String,
    },
    /// The file as a whole can't be used.
    #[error("{} is damaged: {reason}; to copy what can be read: `longhaul verify --salvage FILE`", path.printable())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The disk is full. No acknowledged record is lost; the append can be retried.
    #[error("not saved: the disk of {} is full; free some space to go on", path.printable())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// The file or its folder is read-only.
    #[error("not saved: can't write {}: {reason}; make it writable to go on", path.printable())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// Another process keeps the file locked.
    #[error("not saved: {} is locked by {by}; waiting for it", path.printable())]
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
    /// The database can't be used as it is set up. Nothing was changed.
    #[error("{database}: {reason}; {next_step}")]
    Database {
        /// The address of the database, without its password.
        database: String,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        next_step: String,
    },
    /// The database can't be reached. An append that gets this was committed whole or not at all.
    #[error("not saved: can't reach {database}: {reason}; waiting for it")]
    Unreachable {
        /// The address of the database, without its password.
        database: String,
        /// The cause.
        reason: String,
    },
    /// The file belongs to another program.
    #[error("{} is not a longhaul journal: {reason}; use another home with --home, or, if it is damaged, run `longhaul verify --salvage FILE`", path.printable())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A newer version wrote the file: it can be read, not written.
    #[error(
        "{} was written by a newer longhaul (format {format}, this version knows {known}) and is read-only; update longhaul",
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
    #[error("{why} needs exclusive use of {}, but {by} is using it; stop that process and try again", home.printable())]
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
        "{} is missing, although {} shows that it existed; put it back or run `longhaul restore` on a backup (to start over, move {} away)",
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
        "erased, but {} may still contain it ({reason}); run the same command again to finish",
        path.printable()
    )]
    NotScrubbed {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// A restore was decided and could not be finished.
    #[error("the restore is not finished ({reason}); the next command in this home will finish it")]
    Unfinished {
        /// The cause.
        reason: String,
    },
    /// The folder for a new file doesn't exist.
    #[error("no folder {}; create it, or choose another file", path.printable())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A record has a form that a journal can't keep.
    #[error("can't write to {stream}: {reason}")]
    BadRecord {
        /// The stream.
        stream: StreamName,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The file to write exists already.
    #[error("{} already exists; choose another file", path.printable())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file to import or restore is not valid.
    #[error("{}: {reason}; nothing changed", path.printable())]
    BadFile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// A journal can't be copied to this place.
    #[error("can't copy {from} to {to}: {reason}")]
    BadCopy {
        /// The journal that is copied.
        from: String,
        /// Where it should go.
        to: String,
        /// Why not.
        reason: String,
    },
    /// A text that can't be the key of a session.
    #[error("{key:?} is not a valid session key: {reason}")]
    BadKey {
        /// The text.
        key: String,
        /// Why not.
        reason: &'static str,
    },
    /// No session has this key.
    #[error("no session {key:?}; `longhaul sessions list` lists them")]
    NoSuchSession {
        /// The key.
        key: String,
    },
    /// The key or id is taken.
    #[error("a session {key:?} already exists; choose another key with --as")]
    SessionExists {
        /// The key.
        key: String,
    },
    /// Another process runs the session.
    #[error("session {key:?} is in use by {holder}; stop that process and try again")]
    InUseBy {
        /// The key.
        key: String,
        /// The holder of its lease.
        holder: Box<Holder>,
    },
    /// The work folder of the session is on another node, which alone runs it.
    #[error(
        "the session's work folder is on node {node}, {}{}", last_seen(*seen_ago_ms),
        if *is_live { "" } else {
            ": it waits for that node; to let other nodes run it without the folder: `longhaul sessions portable KEY`"
        }
    )]
    OtherNode {
        /// The stream of the session.
        stream: StreamName,
        /// The node.
        node: String,
        /// Whether the node is there and would run it.
        is_live: bool,
        /// How long ago the node was last seen; `None` if never.
        seen_ago_ms: Option<u64>,
    },
    /// This node hands its sessions over, and another one is there.
    #[error("node {node} is draining; {stream} goes on at another node")]
    Draining {
        /// The stream of the session.
        stream: StreamName,
        /// This node.
        node: String,
    },
    /// Another process uses the id of this node.
    #[error(
        "the node id {node:?} is in use by {other}, seen {} ago; give this node another one (node.id in config.toml)", seconds(*seen_ago_ms)
    )]
    NodeInUse {
        /// The id.
        node: String,
        /// The other process and its home.
        other: String,
        /// How long ago it was seen.
        seen_ago_ms: u64,
    },
    /// There is no node with this id.
    #[error("no node {node:?}; {}", match known.is_empty() {
        true => "there are none yet: `longhaul serve` on a database makes one".to_owned(),
        false => format!("there are: {}", known.join(", ")),
    })]
    NoSuchNode {
        /// The id.
        node: String,
        /// The ids that there are.
        known: Vec<String>,
    },
    /// The node is there, so it can't be given up.
    #[error("node {node} is running, seen {} ago; stop it first, or drain it: `longhaul nodes drain {node}`", seconds(*seen_ago_ms))]
    NodeIsLive {
        /// The id.
        node: String,
        /// How long ago it was seen.
        seen_ago_ms: u64,
    },
    /// The journal has been closed.
    #[error("the journal is closed")]
    Closed,
}

impl Error {
    /// Whether a retry may succeed once the cause has passed, such as a full disk, a locked file or a database that restarts.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::DiskFull { .. }
                | Self::ReadOnly { .. }
                | Self::Locked { .. }
                | Self::Io { .. }
                | Self::Unreachable { .. }
        )
    }
}

fn seconds(ms: u64) -> String {
    match ms / 1_000 {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7_199 => format!("{} min", seconds / 60),
        seconds @ 7_200..=172_799 => format!("{} h", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

/// When a node was last seen, as a part of a sentence.
pub(crate) fn last_seen(ago_ms: Option<u64>) -> String {
    ago_ms.map_or_else(|| "never seen".to_owned(), |ms| format!("last seen {} ago", seconds(ms)))
}

fn by(holder: Option<&Holder>) -> String {
    holder.map(|holder| format!(" by {holder}")).unwrap_or_default()
}

/// The result of a journal's operations.
pub type Result<T> = std::result::Result<T, Error>;
