//! The options of `config`, `trust` and `completions`.

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show each key, its value and what set it.
    Show {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show the config files and which of them exist.
    Path {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schema of the config.
    Schema,
}

#[derive(Args)]
pub(crate) struct CompletionsOptions {
    /// Shell; for bash, put eval "$(longhaul completions bash)" in ~/.bashrc.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args)]
pub(crate) struct TrustOptions {
    /// List trusted files.
    #[arg(long, conflicts_with = "remove")]
    pub(crate) list: bool,
    /// Stop trusting this project's longhaul.toml, .mcp.json, skills and subagents.
    #[arg(long)]
    pub(crate) remove: bool,
    /// Don't ask; required without a terminal.
    #[arg(long, short, conflicts_with_all = ["list", "remove"])]
    pub(crate) yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
