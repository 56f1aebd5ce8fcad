//! The options of `verify`, `backup`, `restore` and `erase`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

/// The streams that a session has.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    /// What happened.
    Session,
    /// What was accepted.
    Inbox,
    /// What was worth remembering.
    Extract,
}

#[derive(Args)]
pub(crate) struct VerifyOptions {
    /// Write what can be read to a new journal in this file; the original is left alone.
    #[arg(long, value_name = "FILE")]
    pub(crate) salvage: Option<PathBuf>,
    /// Print what was found as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct BackupOptions {
    /// The new file.
    pub(crate) file: PathBuf,
    /// Print what was written as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RestoreOptions {
    /// The backup.
    pub(crate) file: PathBuf,
    /// Print what was done as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct EraseOptions {
    /// The session.
    pub(crate) key: String,
    /// The record, as `sessions show` numbers it.
    pub(crate) seq: u64,
    /// Why; it stands in the stub.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: String,
    /// Which of the session's streams.
    #[arg(long, value_enum, default_value_t = Family::Session)]
    pub(crate) stream: Family,
    /// Print what was erased as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
