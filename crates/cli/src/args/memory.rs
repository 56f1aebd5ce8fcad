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
    /// The memory with this name, as `longhaul memory` shows it.
    #[arg(long, value_name = "NAME", global = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) scope: Option<String>,
}

#[derive(Subcommand)]
pub(crate) enum MemoryCommand {
    /// List the pages, what is not in them yet, and where they are as files.
    List,
    /// Print a page.
    Show {
        /// The page.
        page: String,
        /// As it was after this change.
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
    },
    /// Find something in pages, in what was extracted, and in what was said in the sessions of this memory.
    Search {
        /// What to look for.
        #[arg(required = true)]
        query: Vec<String>,
        /// How much to show at most.
        #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1_000))]
        limit: u16,
    },
    /// List the changes, the newest first: when, by whom, why, and what was not taken.
    Log {
        /// Only those of this page.
        page: Option<String>,
    },
    /// Show what a change did to its pages, line by line.
    Diff {
        /// The change, as `longhaul memory log` numbers it.
        seq: u64,
    },
    /// Take a change back: its pages are again what they were before. Exits with 1 if a newer change builds on it.
    Undo {
        /// The change, as `longhaul memory log` numbers it.
        seq: u64,
    },
    /// Write a page by hand, in $VISUAL or $EDITOR. What a person wrote stays until a person changes it.
    Edit(EditOptions),
    /// Write all pages as Markdown files into a new folder; with --json everything, each version too, as one object.
    Export {
        /// The new folder; with --json a file, which is replaced whole. Without it, or with -, standard output.
        #[arg(value_name = "DIR|FILE", required_unless_present = "json")]
        to: Option<PathBuf>,
    },
}

#[derive(Args)]
pub(crate) struct EditOptions {
    /// The page; a new one, if there is none with this name. The page `core` stands at the beginning of every context.
    pub(crate) page: String,
    /// Take the text from standard input.
    #[arg(value_name = "-", value_parser = ["-"], conflicts_with_all = ["file", "remove"])]
    pub(crate) input: Option<String>,
    /// Take the text from this file; - is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "remove")]
    pub(crate) file: Option<PathBuf>,
    /// Remove the page.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Why; it stands in the log.
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: Option<String>,
}

#[derive(Args)]
pub(crate) struct RememberOptions {
    /// What to remember, word for word. Without it, the model goes through what is new in the session.
    #[arg(value_name = "TEXT")]
    pub(crate) text: Vec<String>,
    /// Print what came of it as one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}
