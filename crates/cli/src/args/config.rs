//! The options of `config`, `trust` and `completions`.

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every key with its value and what set it.
    Show {
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show the files that are looked for, and which of them are there.
    Path {
        /// Print one JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the config.
    Schema,
}

#[derive(Args)]
pub(crate) struct CompletionsOptions {
    /// The shell. For bash: eval "$(longhaul completions bash)" in ~/.bashrc.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args)]
pub(crate) struct TrustOptions {
    /// List the files that are trusted.
    #[arg(long, conflicts_with = "remove")]
    pub(crate) list: bool,
    /// Take back the trust in this folder's project.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Don't ask. Without a terminal nothing is trusted otherwise.
    #[arg(long, short, conflicts_with_all = ["list", "remove"])]
    pub(crate) yes: bool,
    /// Print what was done, or the list, as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
