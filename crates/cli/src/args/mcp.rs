//! The options of `mcp`.

use clap::{Args, Subcommand};

#[derive(Subcommand)]
pub(crate) enum McpCommand {
    /// List the configured servers.
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Add a server to your config file.
    ///
    /// `longhaul mcp add files -- npx -y @modelcontextprotocol/server-filesystem .` adds a program, `longhaul mcp add docs --url
    /// https://…` an HTTP server.
    Add(McpAddOptions),
    /// Remove a server from your config file.
    Remove {
        /// Name of the server.
        name: String,
    },
    /// Start servers and show their tools.
    ///
    /// Exits with 1 if one of them can't be used.
    Check {
        /// Name of the server; all, if left out.
        name: Option<String>,
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show the servers that other agents have configured.
    ///
    /// Prints what to add to your config file. Nothing is changed.
    Import {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Args)]
pub(crate) struct McpAddOptions {
    /// Name of the server: letters, digits, `-` and `_`.
    pub(crate) name: String,
    /// Address of an HTTP server.
    #[arg(long, conflicts_with = "command")]
    pub(crate) url: Option<String>,
    /// Name of a variable that the program gets; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) env: Vec<String>,
    /// HTTP header, as `Name: value`; the value may contain `${VARIABLE}`. Can be repeated.
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,
    /// The program and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
