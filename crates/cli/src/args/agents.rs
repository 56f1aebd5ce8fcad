//! The options of `agents`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct AgentListOptions {
    /// Print a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum AgentsCommand {
    /// List subagents, each below the session that started it.
    List(AgentListOptions),
    /// Show a subagent and what it said last.
    Show(AgentShowOptions),
    /// Stop subagents with everything they run.
    Kill(AgentKillOptions),
}

#[derive(Args)]
pub(crate) struct AgentShowOptions {
    /// Subagent, by its session's key or id, or by its task.
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct AgentKillOptions {
    /// Subagents, each by its session's key or id, or by its task.
    #[arg(value_name = "NAME", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) names: Vec<String>,
    /// Print a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}
