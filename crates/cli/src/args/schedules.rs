//! The options of `schedules`.

use clap::{Args, Subcommand, ValueEnum};
use longhaul_protocol::{MissedPolicy, OverlapPolicy};

#[derive(Subcommand)]
pub(crate) enum SchedulesCommand {
    /// List schedules, with their next and last runs.
    List {
        /// Print a JSON array.
        #[arg(long)]
        json: bool,
    },
    /// Show one schedule.
    Show {
        name: String,
        /// Print a JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Make a schedule.
    ///
    /// With -s, its runs go to that session, else each run has a session of its own, in the folder of --work-dir or of
    /// `longhaul serve`.
    Add(Box<ScheduleAddOptions>),
    /// Pause a schedule; a run that has begun goes on.
    Pause { name: String },
    /// Let a paused schedule go on with its next time.
    Resume { name: String },
    /// Run a schedule now, whatever its times are.
    Run { name: String },
    /// Delete a schedule; a run that has begun goes on.
    #[command(aliases = ["remove", "rm"])]
    Delete { name: String },
}

#[derive(Args)]
pub(crate) struct ScheduleAddOptions {
    /// Name of the schedule.
    pub(crate) name: String,
    /// What the agent should do; `-` reads it from stdin.
    pub(crate) prompt: String,
    /// Times by the clock: minute, hour, day, month, weekday, such as "0 7 * * 1-5".
    #[arg(long, value_name = "C", group = "times")]
    pub(crate) cron: Option<String>,
    /// Time between two runs, such as 90s, 30m, 2h, 1d.
    #[arg(long, value_name = "D", group = "times")]
    pub(crate) every: Option<String>,
    /// Time of the only run, such as 2026-12-24T18:00.
    #[arg(long, value_name = "T", group = "times")]
    pub(crate) at: Option<String>,
    /// Time zone, such as Europe/Berlin [default: the system's].
    #[arg(long, value_name = "Z")]
    pub(crate) zone: Option<String>,
    /// Which runs to make up for after an outage.
    #[arg(long, value_enum, value_name = "M", default_value_t = Missed::Latest)]
    pub(crate) missed: Missed,
    /// What a run does while the one before it goes on.
    #[arg(long, value_enum, value_name = "O", default_value_t = Overlap::Queue)]
    pub(crate) overlap: Overlap,
    /// How late a run may still start.
    #[arg(long, value_name = "D", default_value = "1h")]
    pub(crate) grace: String,
    /// Longest delay of the runs, so that many schedules don't start together.
    #[arg(long, value_name = "D", default_value = "0s")]
    pub(crate) jitter: String,
    /// US dollars that a run may cost; 0 for no limit.
    #[arg(long, value_name = "USD", default_value_t = 0.0)]
    pub(crate) cost_per_run: f64,
    /// Failures in a row after which it pauses; 0 for never.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) max_failures: u32,
    /// A run may end with "nothing to do"; such runs don't stay in the session's context.
    #[arg(long)]
    pub(crate) heartbeat: bool,
    /// Print a JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Missed {
    Latest,
    All,
    None,
}

impl From<Missed> for MissedPolicy {
    fn from(missed: Missed) -> Self {
        match missed {
            Missed::Latest => Self::Latest,
            Missed::All => Self::All,
            Missed::None => Self::None,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Overlap {
    Queue,
    Skip,
    Interrupt,
}

impl From<Overlap> for OverlapPolicy {
    fn from(overlap: Overlap) -> Self {
        match overlap {
            Overlap::Queue => Self::Queue,
            Overlap::Skip => Self::Skip,
            Overlap::Interrupt => Self::Interrupt,
        }
    }
}
