//! The options of `nodes`.

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum NodesCommand {
    /// List the nodes.
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Hand a node's sessions over to the others.
    ///
    /// The node takes no new sessions and hands over those that it runs, each between two steps. Sessions whose work folder is on the node
    /// stay there. It stays drained when it is restarted.
    Drain {
        /// Node, by its id.
        id: String,
        /// Let it take sessions again.
        #[arg(long)]
        undo: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Give up a node that won't come back.
    ///
    /// Its running commands count as lost from then on, and the agent is told. It can join again.
    #[command(aliases = ["delete", "rm"])]
    Remove {
        /// Node, by its id.
        id: String,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}
