//! The options of `tasks`, `answer` and `doctor`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};

#[derive(Args)]
pub(crate) struct TaskListOptions {
    /// Print one JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Subcommand)]
pub(crate) enum TasksCommand {
    /// List the tasks that run, and those that ended lately.
    List(TaskListOptions),
    /// Print what a task has printed so far.
    Output(TaskOutputOptions),
    /// Print what a task has printed and what it prints from now on, until it ends. Exits with 0 if it completed, else with 1.
    Follow(TaskFollowOptions),
    /// End tasks, with everything that they have started.
    Kill(TaskKillOptions),
}

#[derive(Args)]
pub(crate) struct TaskOutputOptions {
    /// The task: its id, or the beginning or the end of it, as long as that fits only one.
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) task: String,
    /// The byte to begin with, counted as printed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) offset: u64,
    /// How many bytes to print at most.
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
}

#[derive(Args)]
pub(crate) struct TaskFollowOptions {
    /// The task: its id, or the beginning or the end of it, as long as that fits only one.
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) task: String,
}

#[derive(Args)]
pub(crate) struct TaskKillOptions {
    /// The tasks: their ids, or the beginning or the end of each, as long as that fits only one.
    #[arg(value_name = "ID", required = true, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) tasks: Vec<String>,
    /// Print how they ended as one JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct AnswerOptions {
    /// The question, which need not be named if only one is open; then yes, no, or words, which are a no with its reason.
    #[arg(value_names = ["ID", "ANSWER"], num_args = 1..=2, required = true)]
    pub(crate) words: Vec<String>,
    /// Print what was answered as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct DoctorOptions {
    /// Print one JSON array.
    #[arg(long)]
    pub(crate) json: bool,
}
