//! The options of `verify`, `backup`, `restore`, `journal` and `erase`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

/// The streams that a session has.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    /// The conversation.
    Session,
    /// Messages and commands sent to the session.
    #[value(name = "inputs", alias = "inbox")]
    Inbox,
    /// What memory took from it.
    Extract,
}

#[derive(Args)]
pub(crate) struct VerifyOptions {
    /// Copy what can be read to a new journal; the original stays as it is.
    #[arg(long, value_name = "FILE")]
    pub(crate) salvage: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct BackupOptions {
    /// File to create.
    pub(crate) file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct RestoreOptions {
    /// Backup to restore.
    pub(crate) file: PathBuf,
    /// Keep the tokens of the backup, for a move to another machine.
    #[arg(long)]
    pub(crate) keep_tokens: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum JournalCommand {
    /// Copy a journal between a home and a database.
    ///
    /// The target must be empty, or hold a part of the same copy: then the copy goes on. Every entry is compared afterwards. Stop what
    /// writes to FROM first.
    Copy(CopyOptions),
}

#[derive(Args)]
pub(crate) struct CopyOptions {
    /// Home, journal.db, backup, or database: postgres://… or env:NAME of a variable with the URL.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) from: String,
    /// Home, journal.db or database.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) to: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct EraseOptions {
    /// Session, by its key.
    pub(crate) key: String,
    /// Entry, by its number in `longhaul sessions show --records`.
    pub(crate) seq: u64,
    /// Reason, kept in the stub.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: String,
    /// Which part of the session the entry is in.
    #[arg(long, value_enum, default_value_t = Family::Session)]
    pub(crate) stream: Family,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
