//! `longhaul completions SHELL`: a script that lets a shell complete commands and flags, from the same definition as they are read by.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::generate;

use crate::args::{Arguments, CompletionsOptions};
use crate::exit;

pub(crate) fn run(options: &CompletionsOptions) -> anyhow::Result<u8> {
    // Into memory first: the generator panics when nobody reads any more.
    let mut script = Vec::new();
    generate(options.shell, &mut Arguments::command(), "longhaul", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(exit::DONE)
}
