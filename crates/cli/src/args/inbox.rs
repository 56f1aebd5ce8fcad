//! The options of `send` and `cancel`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

#[derive(Args)]
pub(crate) struct SendOptions {
    /// What happens if a turn is running: join it at its next step, wait until after it, or interrupt it.
    #[arg(long, value_enum, default_value_t = Mode::Join)]
    pub(crate) mode: Mode,
    /// A key of your own: the same one twice is one input.
    #[arg(long = "key", value_name = "K", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) idempotency: Option<String>,
    /// The words; - reads them from standard input.
    pub(crate) text: String,
    /// Print what was accepted as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What an input does when a turn is running.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    Join,
    After,
    Interrupt,
}

#[derive(Args)]
pub(crate) struct CancelOptions {
    /// Print how the turn ended as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
