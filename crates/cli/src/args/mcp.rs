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
    #[command(aliases = ["delete", "rm"])]
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
    /// Log in at an HTTP server that asks for it.
    ///
    /// Prints an address to open in a browser, and waits until you have agreed there. The token is kept in the home, private to you.
    Login {
        /// Name of the server.
        name: String,
        /// Read the address that the browser ends at from standard input, for a browser on another machine.
        #[arg(long)]
        paste: bool,
    },
    /// Forget the login at an HTTP server.
    Logout {
        /// Name of the server.
        name: String,
    },
    /// Show the servers that other agents have configured.
    ///
    /// Prints what to add to your config file. Nothing is changed.
    Import {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Offer the sessions of this home to another agent.
    ///
    /// An MCP server on standard input and output, with tools to send to a session, read it, answer its questions, and list sessions.
    /// Configure it in the other agent as the command `longhaul mcp serve`. Turns go on when that agent ends.
    Serve,
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
