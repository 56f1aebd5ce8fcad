//! `longhaul acp`: serves an editor over standard input and output.
//!
//! While the editor is there, this process runs its sessions. When the input ends, a `longhaul resume` that does not belong to this process
//! finishes each open turn, unless a `longhaul serve` does: it starts before this process lets the sessions go, so that an editor which kills
//! its agents right after closing their input does not stop a turn. It ends with the turn, at a question, and where the
//! model stays out of reach, so it is not left behind. The table of kills is in `longhaul_acp`.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use longhaul_agent::{Config, RetryMode, Runtime};
use tokio::io::BufReader;

use crate::args::GlobalArgs;
use crate::handover::hand_over;
use crate::signals::ExitSignals;
use crate::{config, exit, panics, suggested_command};

/// When the process ends, whatever still hangs. What is committed stays.
const SHUTDOWN_DEADLINE: Duration = Duration::from_millis(4_800);

pub(crate) async fn run(globals: &GlobalArgs) -> anyhow::Result<u8> {
    let mut signals = ExitSignals::new()?;
    let opened = RefCell::new(None);
    let open: longhaul_acp::OpenRuntime<'_> =
        Box::new(|folder| Box::pin(open_runtime(globals, folder, &opened)));
    let (input, output) = (BufReader::new(tokio::io::stdin()), tokio::io::stdout());
    let (code, unfinished) = tokio::select! {
        unfinished = longhaul_acp::serve(input, output, open) => (exit::DONE, unfinished),
        // The turn is suspended. It goes on when the editor loads the session.
        number = signals.next() => (exit::SIGNAL + number, vec![]),
    };
    let Some(runtime) = opened.take() else { return Ok(code) };
    hand_over(globals, &runtime, &unfinished).await?;
    match tokio::time::timeout(SHUTDOWN_DEADLINE, runtime.shutdown()).await {
        Ok(ended) => ended?,
        Err(_) => std::process::exit(i32::from(code)),
    }
    Ok(code)
}

/// Opens the runtime with the config of this folder.
async fn open_runtime(
    globals: &GlobalArgs,
    folder: PathBuf,
    opened: &RefCell<Option<Runtime>>,
) -> Result<Runtime, String> {
    let mut globals = globals.clone();
    globals.work_dir.get_or_insert(folder);
    let open = async {
        let config = config::with_model(&globals, RetryMode::Interactive).await?;
        let runtime = Runtime::open(Config { is_attended: true, ..config }).await?;
        panics::register_runtime(&runtime, suggested_command::command(&globals, &["resume"]));
        anyhow::Ok(runtime)
    };
    let runtime = open.await.map_err(|error| format!("{error:#}"))?;
    *opened.borrow_mut() = Some(runtime.clone());
    Ok(runtime)
}
