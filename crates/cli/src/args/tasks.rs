//! The options of `tasks`, `answer` and `doctor`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct TaskListOptions {
    /// Print a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum TasksCommand {
    /// List running and recent tasks.
    List(TaskListOptions),
    /// Print a task's output so far.
    Output(TaskOutputOptions),
    /// Print a task's output until it ends.
    ///
    /// Exits with 0 if the task completed, else with 1.
    Follow(TaskFollowOptions),
    /// Kill tasks and every process they started.
    Kill(TaskKillOptions),
}

#[derive(Args)]
pub(crate) struct TaskOutputOptions {
    /// Task, by its id or an unambiguous start or end of it.
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) task: String,
    /// First byte to print.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) offset: u64,
    /// Maximum number of bytes to print.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
}

#[derive(Args)]
pub(crate) struct TaskFollowOptions {
    /// Task, by its id or an unambiguous start or end of it.
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) task: String,
}

#[derive(Args)]
pub(crate) struct TaskKillOptions {
    /// Tasks, each by its id or an unambiguous start or end of it.
    #[arg(value_name = "ID", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tasks: Vec<String>,
    /// Print a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct AnswerOptions {
    /// Question id (optional if only one is open), then yes, no, or the reason for a no.
    #[arg(value_names = ["ID", "ANSWER"], num_args = 1..=2, required = true)]
    pub(crate) words: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct DoctorOptions {
    /// Print a JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}
