//! The options of `token`.

use clap::Subcommand;
use longhaul_server::Scope;

#[derive(Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it; it is not shown again.
    New {
        /// What the token allows: read, act (send, answer, cancel) or admin (everything).
        #[arg(long, value_name = "SCOPE")]
        scope: Scope,
        /// Name of the token, to list and revoke it by.
        #[arg(long)]
        name: String,
    },
    /// List tokens, without their text.
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token; a running server refuses it within a second.
    Revoke {
        /// Name of the token.
        name: String,
    },
}
