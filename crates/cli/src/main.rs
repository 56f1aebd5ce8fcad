//! The `longhaul` program. It only wires: what it does is in the crates below it.

mod arguments;
mod care;
mod demo;
mod output;
mod sessions;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::{CommandFactory, Parser};
use longhaul_journal::Error;

/// What the program ends with, as scripts rely on it.
mod exit {
    pub(crate) const DONE: u8 = 0;
    pub(crate) const FAILED: u8 = 1;
    pub(crate) const BAD_USAGE: u8 = 2;
}

/// Something that the caller has to say differently.
#[derive(Debug)]
struct BadUsage(String);

impl std::fmt::Display for BadUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadUsage {}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments) {
        Ok(code) => ExitCode::from(code),
        // Whoever read the output has seen enough of it.
        Err(error) if output::is_closed_pipe(&error) => ExitCode::from(exit::DONE),
        Err(error) => {
            eprintln!("longhaul: {error:#}");
            ExitCode::from(code_of(&error))
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<u8> {
    let Some(command) = arguments.command else {
        // The conversation in the terminal will begin here.
        Arguments::command().print_long_help()?;
        return Ok(exit::BAD_USAGE);
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let place = arguments.place;
        match command {
            Command::Verify(options) => care::verify(&place, &options),
            Command::Backup(options) => care::backup(&place, options).await,
            Command::Restore(options) => care::restore(&place, &options),
            Command::Erase(options) => care::erase(&place, options).await,
            Command::Sessions { command, json } => sessions::run(&place, command, json).await,
            Command::Demo(options) => demo::run(&options).await,
            Command::DemoWriter => demo::write(&place).await,
        }
    })
}

/// Bad input is the caller's to mend; everything else is a failure.
fn code_of(error: &anyhow::Error) -> u8 {
    if error.is::<BadUsage>() {
        return exit::BAD_USAGE;
    }
    match error.downcast_ref::<Error>() {
        Some(
            Error::Foreign { .. }
            | Error::Newer { .. }
            | Error::BadFile { .. }
            | Error::Exists { .. }
            | Error::NoFolder { .. }
            | Error::NoSuchSession { .. }
            | Error::SessionExists { .. }
            | Error::NoSuchRecord { .. },
        ) => exit::BAD_USAGE,
        _ => exit::FAILED,
    }
}
