//! What `longhaul sessions show` is told.

use std::path::PathBuf;

use clap::Args;

use super::Family;

#[derive(Args)]
pub(crate) struct ShowOptions {
    /// The session.
    pub(crate) key: String,
    /// Show every turn, not only the last ones.
    #[arg(long, conflicts_with_all = ["records", "json", "html"])]
    pub(crate) all: bool,
    /// Write the page as one HTML file, with charts of the context and the cost; a file there is replaced whole. Without FILE, or
    /// with -, to standard output.
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["records", "json", "from", "epoch", "limit", "stream"])]
    #[allow(clippy::option_option, reason = "a flag with a value that may be left out")]
    pub(crate) html: Option<Option<PathBuf>>,
    /// List the records in place of the page, from the newest epoch on.
    #[arg(long)]
    pub(crate) records: bool,
    /// The first record to list.
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// List the records of this epoch.
    #[arg(long, value_name = "N", conflicts_with_all = ["from", "stream"])]
    pub(crate) epoch: Option<u64>,
    /// How many records to list at most [default: 200].
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// List the records of this one of the session's streams [default: session].
    #[arg(long, value_enum)]
    pub(crate) stream: Option<Family>,
    /// Print the session with its records as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ShowOptions {
    /// Whether the conversation is wanted, and not its records.
    pub(crate) fn is_page(&self) -> bool {
        let of_records = self.from.is_some() || self.epoch.is_some() || self.limit.is_some();
        !(self.records || self.json || of_records || self.stream.is_some())
    }
}
