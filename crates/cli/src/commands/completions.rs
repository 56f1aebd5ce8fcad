//! `longhaul completions SHELL`: a completion script, made from the clap definitions.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::generate;

use crate::args::{Arguments, CompletionsOptions};
use crate::exit;

pub(crate) fn run(options: &CompletionsOptions) -> anyhow::Result<u8> {
    // Into memory first: the generator panics on a closed pipe.
    let mut script = Vec::new();
    generate(options.shell, &mut Arguments::command(), "longhaul", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(exit::DONE)
}
