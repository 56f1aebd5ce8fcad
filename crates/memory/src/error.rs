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
    #[error("{holder} is already doing it")]
    Held { holder: Box<Holder> },
    /// The model call failed, or its answer can't be used.
    #[error("{0}")]
    Model(String),
    /// The embedding model works, and does not take one of these texts.
    #[error("{0}")]
    RefusedTexts(String),
    /// The model answered, and again, without the structure that was asked for.
    #[error("the answer of {model} is not usable: {reason}")]
    Unstructured { model: String, reason: String },
    /// The model's window is too small for the smallest prompt.
    #[error(
        "the request does not fit the model's context: it needs {needs} tokens, and {usable} are available"
    )]
    TooSmall { needs: u64, usable: u64 },
    /// The page does not exist.
    #[error("no page {name}{nearest}")]
    NoPage {
        name: String,
        /// Pages with similar names, as `; …`.
        nearest: String,
    },
    /// The name is not valid for a page.
    #[error("{name:?} is not a valid page name: {reason}")]
    BadName { name: String, reason: String },
    /// The text is not valid for the page.
    #[error("could not write {page}: {reason}")]
    Unfit { page: String, reason: String },
    /// The scope can't be part of a stream name.
    #[error("{scope:?} is not a valid memory scope")]
    BadScope { scope: String },
    /// The change does not exist.
    #[error("no change {seq} in this memory")]
    NoChange { seq: Seq },
    /// The change changed no page.
    #[error("nothing to undo: change {seq} changed no page")]
    NothingToUndo { seq: Seq },
    /// A newer change builds on the one to undo.
    #[error("{page} was changed again by change {newer}, which builds on {seq}; nothing was undone:\n{both}")]
    BuiltUpon {
        page: String,
        /// The change to undo.
        seq: Seq,
        newer: Seq,
        /// Both changes, for people to read.
        both: String,
    },
    /// The page was changed between reading and writing.
    #[error("{page} was changed in the meantime by change {newer}; nothing was written")]
    Changed {
        page: String,
        /// The newest change.
        newer: Seq,
    },
    /// A file can't be read or written.
    #[error("{path}: {reason}")]
    File { path: String, reason: String },
}

pub type Result<T> = std::result::Result<T, Error>;
