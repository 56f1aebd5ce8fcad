//! `longhaul mcp serve`: offers the sessions of the home to another agent, over standard input and output.
//!
//! While the client is there, this process hosts the home: it goes on with open turns, also with those that a killed `mcp serve` has left.
//! When the input ends, a `longhaul resume` takes over each turn that is still open. The table of kills is in `longhaul_server`, module `mcp`.

use std::time::Duration;

use longhaul_agent::{Config, RetryMode, Runtime};
use longhaul_server::serve_mcp;
use tokio::io::BufReader;

use crate::args::GlobalArgs;
use crate::handover::hand_over;
use crate::output::note;
use crate::signals::ExitSignals;
use crate::{config, exit, panics, suggested_command};

/// When the process ends, whatever still hangs. What is committed stays.
const SHUTDOWN_DEADLINE: Duration = Duration::from_millis(4_800);

pub(super) async fn run(globals: &GlobalArgs) -> anyhow::Result<u8> {
    // Before the journal is opened, so that no signal is lost meanwhile.
    let mut signals = ExitSignals::new()?;
    // The client answers questions, or the user does from elsewhere.
    let config = Config { is_attended: true, ..config::with_model(globals, RetryMode::Interactive).await? };
    let runtime = Runtime::open(config).await?;
    panics::register_runtime(&runtime, suggested_command::command(globals, &["resume"]));
    runtime.start().await?;
    let (input, output) = (BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let go_on = async |keys: Vec<String>| {
        if let Err(error) = hand_over(globals, &runtime, &keys).await {
            note(format!("open turns are suspended: {error:#}"));
        }
    };
    let code = tokio::select! {
        () = serve_mcp(input, output, &runtime, go_on) => exit::DONE,
        // Turns that were not handed over are suspended. They go on with the next process.
        number = signals.next() => exit::SIGNAL + number,
    };
    match tokio::time::timeout(SHUTDOWN_DEADLINE, runtime.shutdown()).await {
        Ok(ended) => ended?,
        Err(_) => std::process::exit(i32::from(code)),
    }
    Ok(code)
}
