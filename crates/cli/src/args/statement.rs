use clap::{Args, ValueEnum};
use longhaul_agent::StatementBy;

#[derive(Args)]
pub(crate) struct StatementOptions {
    /// Only calls since this day (UTC), such as 2026-11-17, or this many days ago, such as 7d.
    #[arg(long, value_name = "D")]
    pub(crate) since: Option<String>,
    /// What to add up by.
    #[arg(long, value_enum, default_value_t = GroupBy::Cause)]
    pub(crate) by: GroupBy,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum GroupBy {
    Cause,
    Session,
    Model,
    Day,
}

impl From<GroupBy> for StatementBy {
    fn from(by: GroupBy) -> Self {
        match by {
            GroupBy::Cause => Self::Cause,
            GroupBy::Session => Self::Session,
            GroupBy::Model => Self::Model,
            GroupBy::Day => Self::Day,
        }
    }
}
