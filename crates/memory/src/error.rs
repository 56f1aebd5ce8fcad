use longhaul_journal::Holder;
use longhaul_protocol::Seq;

/// Errors, by what the caller can do about them.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The journal refused.
    #[error(transparent)]
    Journal(#[from] longhaul_journal::Error),
    /// Another process has the lease.
    #[error("{holder} is at it")]
    Held { holder: Box<Holder> },
    /// The model call failed, or its answer can't be used.
    #[error("{0}")]
    Model(String),
    /// The model's window is too small for the smallest prompt.
    #[error(
        "the least that can be asked does not fit the model: {needs} tokens are needed, and {usable} are usable"
    )]
    TooSmall { needs: u64, usable: u64 },
    /// There is no such page.
    #[error("there is no page {name}{nearest}")]
    NoPage {
        /// What was asked for.
        name: String,
        /// What there is, as `; …`.
        nearest: String,
    },
    /// A name that no page may have.
    #[error("{name:?} can't be the name of a page: {reason}")]
    BadName {
        /// The name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// Text that a page can't take.
    #[error("{page} was not written: {reason}")]
    Unfit {
        /// The page.
        page: String,
        /// Why not.
        reason: String,
    },
    /// A scope that no stream can be named after.
    #[error("{scope:?} can't be the scope of a memory")]
    BadScope {
        /// The scope.
        scope: String,
    },
    /// There is no such change.
    #[error("there is no change {seq} in this memory")]
    NoChange {
        /// What was asked for.
        seq: Seq,
    },
    /// It changed no page.
    #[error("change {seq} changed no page: there is nothing to undo")]
    NothingToUndo {
        /// What should be undone.
        seq: Seq,
    },
    /// A newer change builds on it.
    #[error("{page} was changed again by {newer}, which builds on {seq}; nothing was undone:\n{both}")]
    BuiltUpon {
        /// The page.
        page: String,
        /// What should be undone.
        seq: Seq,
        /// The newer change.
        newer: Seq,
        /// Both changes, for people.
        both: String,
    },
    /// The page was changed between reading and writing.
    #[error("{page} was changed meanwhile (by change {newer}); nothing was written")]
    Changed {
        /// The page.
        page: String,
        /// The newest change.
        newer: Seq,
    },
    /// A file can't be read or written.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        reason: String,
    },
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
