//! The options of `sessions` and `fork`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

use super::Family;

/// A session can be named by its key, by the beginning of that, or by its id or an end of it, as long as only one fits.
#[derive(Subcommand)]
pub(crate) enum SessionsCommand {
    /// List the sessions, the newest first; with words, those in which they were said or whose keys have them.
    List(ListOptions),
    /// Show a session: the conversation as a page, or its records.
    Show(ShowOptions),
    /// Begin another session with the past of one, up to a record. Running tasks stay where they are.
    Fork(ForkedOptions),
    /// Give a session another key.
    Rename {
        /// The session.
        key: String,
        /// The key that it gets.
        #[arg(value_parser = NonEmptyStringValueParser::new(), required_unless_present = "session")]
        new: Option<String>,
        /// Print the session as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Keep a session whatever retention says, and list it first.
    Pin {
        /// The session.
        key: Option<String>,
        /// Not any more.
        #[arg(long)]
        off: bool,
        /// Print the session as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Put a session into the trash, from where it can be brought back for two weeks.
    Delete {
        /// The session; with --now its whole key or id.
        key: Option<String>,
        /// For good, at once.
        #[arg(long)]
        now: bool,
        /// Print what was done as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Bring a session back from the trash.
    Restore {
        /// The session.
        key: Option<String>,
        /// Print the session as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a session to one file of JSON lines that can be verified and imported.
    Export {
        /// The session.
        key: String,
        /// Where to; a file there is replaced whole. Without it, or with -, standard output.
        file: Option<PathBuf>,
        /// Print what was exported as JSON. Needs FILE.
        #[arg(long, requires = "file")]
        json: bool,
    },
    /// Import a session from an export, after verifying all of it. It works in this folder (or --work-dir) and runs nothing by itself:
    /// whatever was unfinished is stopped, and earlier approvals don't count.
    Import(ImportOptions),
    /// Put away what `[sessions]` of the config says, and remove what has been in the trash for two weeks.
    Prune {
        /// Only say what would be done.
        #[arg(long)]
        dry_run: bool,
        /// Print what was done as JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args, Default)]
pub(crate) struct ListOptions {
    /// What to look for, in keys and in what was said.
    pub(crate) words: Vec<String>,
    /// Also those in the trash, and those in which nothing is yet.
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one JSON array.
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
                | Self::Delete { .. }
                | Self::Restore { .. }
        )
    }
}

#[derive(Args)]
pub(crate) struct ImportOptions {
    /// The export.
    pub(crate) file: PathBuf,
    /// The key to give it, if its own is taken.
    #[arg(long = "as", value_name = "KEY", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) key: Option<String>,
    /// The session is your own: what its user said stays yours, for memory and as directives. Without this it is somebody else's.
    #[arg(long)]
    pub(crate) mine: bool,
    /// Print what was imported as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ForkedOptions {
    /// The session.
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
    /// The last record to take along, as `sessions show` numbers them; without it, the end of the last turn.
    pub(crate) seq: Option<u64>,
    /// The key of the new session; without it, the old one with -fork.
    #[arg(long = "as", value_name = "NEW", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) new: Option<String>,
    /// Print what was made as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ShowOptions {
    /// The session. Without it, the one that was last used in this folder.
    pub(crate) key: Option<String>,
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
