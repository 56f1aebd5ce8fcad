//! The options of `memory` and `remember`.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct MemoryOptions {
    #[command(subcommand)]
    pub(crate) command: Option<MemoryCommand>,
    #[command(flatten)]
    pub(crate) scope: MemoryScopeArgs,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Which memory is meant: by default that of the folder that new sessions work in; with -s, that of the session.
#[derive(Args)]
pub(crate) struct MemoryScopeArgs {
    /// Use the memory with this name, as shown by `longhaul memory`.
    #[arg(long, value_name = "NAME", global = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) scope: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum MemoryCommand {
    /// List the pages.
    ///
    /// Also shows how much is not in a page yet, and where the pages are as files.
    List,
    /// Print a page.
    Show {
        /// Page, by its name.
        page: String,
        /// Show the page as it was after this change.
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
    },
    /// Search pages and past sessions.
    ///
    /// Searches the pages, items that are not in a page yet, and the conversations that share this memory.
    Search {
        /// Words to search for.
        #[arg(required = true)]
        query: Vec<String>,
        /// Maximum number of results.
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        limit: u16,
    },
    /// List changes, newest first.
    ///
    /// Shows when, by whom and why each change was made, and what it left out.
    Log {
        /// Only list changes to this page.
        page: Option<String>,
    },
    /// Show a change as a diff.
    Diff {
        /// Change, by its number in `longhaul memory log`.
        seq: u64,
    },
    /// Undo a change.
    ///
    /// Its pages go back to what they were before. Exits with 1 if a newer change builds on it.
    Undo {
        /// Change, by its number in `longhaul memory log`.
        seq: u64,
    },
    /// Edit a page in $VISUAL or $EDITOR.
    ///
    /// The agent never changes lines that you wrote.
    Edit(EditOptions),
    /// Export all pages as Markdown files.
    ///
    /// With --json, exports everything, older versions too, as one object.
    Export {
        /// Folder to create; with --json, file to write [default: standard output].
        #[arg(value_name = "DIR|FILE", required_unless_present = "json")]
        to: Option<PathBuf>,
    },
}

#[derive(Args)]
pub(crate) struct EditOptions {
    /// Page, by its name; created if there is none.
    ///
    /// The agent sees the page `core` at the start of every session.
    pub(crate) page: String,
    /// Read the text from standard input.
    #[arg(value_name = "-", value_parser = ["-"], conflicts_with_all = ["file", "remove"])]
    pub(crate) input: Option<String>,
    /// Read the text from a file; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "remove")]
    pub(crate) file: Option<PathBuf>,
    /// Remove the page.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Reason, shown in the log.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: Option<String>,
}

#[derive(Args)]
pub(crate) struct RememberOptions {
    /// What to remember, word for word.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
