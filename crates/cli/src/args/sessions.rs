//! The options of `sessions` and `fork`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::Family;

/// A session can be named by its key, by the beginning of that, or by its id or an end of it, as long as only one fits.
#[derive(Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest first.
    ///
    /// With WORDS, lists those whose key or conversation contains them.
    List(ListOptions),
    /// Show a session's conversation.
    Show(ShowOptions),
    /// Start a new session from a point in another.
    ///
    /// Running tasks stay with the original.
    Fork(ForkedOptions),
    /// Rename a session.
    Rename {
        /// Session, by its key or id.
        key: String,
        /// New key.
        #[arg(value_parser = NonEmptyStringValueParser::new(), required_unless_present = "session")]
        new: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Pin a session.
    ///
    /// A pinned session is listed first and never pruned.
    Pin {
        /// Session, by its key or id.
        key: Option<String>,
        /// Unpin it.
        #[arg(long)]
        off: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Let any node run a session.
    ///
    /// Where several nodes share a journal, a session with a work folder runs only on the node that has the folder. A portable session goes
    /// on at any node, in the folder of the same path there, if there is one.
    Portable {
        /// Session, by its key or id.
        key: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Move a session to the trash.
    ///
    /// It can be restored for two weeks.
    #[command(aliases = ["remove", "rm"])]
    Delete {
        /// Session, by its key or id; with --now, in full.
        key: Option<String>,
        /// Delete it for good, now.
        #[arg(long)]
        now: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Restore a session from the trash.
    Restore {
        /// Session, by its key or id.
        key: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Export a session to a file.
    ///
    /// The file holds JSON lines with checksums; `longhaul sessions import` reads it.
    Export {
        /// Session, by its key or id.
        key: String,
        /// File to write; an existing one is replaced [default: standard output].
        file: Option<PathBuf>,
        /// Export its subagents, too, each to a file of its own beside FILE.
        #[arg(long, requires = "file")]
        tree: bool,
        /// Print JSON; needs FILE.
        #[arg(long, requires = "file")]
        json: bool,
    },
    /// Import a session from an export.
    ///
    /// The whole file is checked first. The session works in this folder or in --work-dir. Unfinished work in it is
    /// stopped, and earlier approvals don't count.
    Import(ImportOptions),
    /// Apply the retention limits, and empty the trash.
    ///
    /// Trashes what exceeds the limits in `[sessions]` of the config, and deletes what has been in the trash for two weeks.
    Prune {
        /// Only show what would be done.
        #[arg(long)]
        dry_run: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Default)]
pub(crate) struct ListOptions {
    /// Words to search for in keys and conversations.
    pub(crate) words: Vec<String>,
    /// Include empty and trashed sessions.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

impl SessionsCommand {
    /// Whether the session can be named by `-s` in place of KEY.
    pub(crate) fn takes_session(&self) -> bool {
        matches!(
            self,
            Self::Show(_)
                | Self::Rename { .. }
                | Self::Pin { .. }
                | Self::Portable { .. }
                | Self::Delete { .. }
                | Self::Restore { .. }
        )
    }
}

#[derive(Args)]
pub(crate) struct ImportOptions {
    /// Export to read.
    pub(crate) file: PathBuf,
    /// Import it under this key.
    #[arg(long = "as", value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) key: Option<String>,
    /// The session is your own.
    ///
    /// Without this, its user messages count as someone else's: memory and the agent treat them as information only.
    #[arg(long)]
    pub(crate) mine: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ForkedOptions {
    /// Session, by its key or id.
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) at: ForkPoint,
}

#[derive(Args)]
pub(crate) struct ForkOptions {
    #[command(flatten)]
    pub(crate) at: ForkPoint,
}

/// Where a session is forked, and what comes of it.
#[derive(Args)]
pub(crate) struct ForkPoint {
    /// Last entry to include, by its number in `longhaul sessions show --records` [default: the end of the last turn].
    pub(crate) seq: Option<u64>,
    /// Key of the new session [default: the old key with -fork].
    #[arg(long = "as", value_name = "NEW", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) new: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ShowOptions {
    /// Session, by its key or id.
    pub(crate) key: Option<String>,
    /// Show every turn, not only the last ones.
    #[arg(long, conflicts_with_all = ["records", "json", "html"])]
    pub(crate) all: bool,
    /// Write an HTML page with charts of context and cost [default: to standard output].
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with_all = ["records", "json", "from", "epoch", "limit", "stream"])]
    #[allow(clippy::option_option, reason = "a flag with a value that may be left out")]
    pub(crate) html: Option<Option<PathBuf>>,
    /// List the session's entries, numbered, since the last compaction.
    #[arg(long)]
    pub(crate) records: bool,
    /// First entry to list.
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<u64>,
    /// List the entries of the Nth context: from one compaction to the next.
    #[arg(long = "context", alias = "epoch", value_name = "N", conflicts_with_all = ["from", "stream"])]
    pub(crate) epoch: Option<u64>,
    /// Maximum number of entries to list [default: 200].
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Which part of the session to list [default: session].
    #[arg(long, value_enum)]
    pub(crate) stream: Option<Family>,
    /// Print the session and its entries as one JSON object.
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
