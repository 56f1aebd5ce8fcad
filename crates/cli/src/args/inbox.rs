//! The options of `send` and `cancel`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};

#[derive(Args)]
pub(crate) struct SendOptions {
    /// If a turn is running: join it at its next step, run after it, or interrupt it.
    #[arg(long, value_enum, default_value_t = Mode::Join)]
    pub(crate) mode: Mode,
    /// Idempotency key: the same key twice is one message.
    #[arg(long = "key", value_name = "K", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) idempotency: Option<String>,
    /// Message; - reads it from standard input.
    pub(crate) text: String,
    /// Print JSON.
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
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
