//! `longhaul acp`: serves an editor over standard input and output.
//!
//! While the editor is there, this process runs its sessions. When the input ends, a `longhaul resume` that does not belong to this process
//! finishes each open turn, unless a `longhaul serve` does: it starts before this process lets the sessions go, so that an editor which kills
//! its agents right after closing their input does not stop a turn. It ends with the turn, at a question, and where the
//! model stays out of reach, so it is not left behind. The table of kills is in `longhaul_acp`.

use std::cell::RefCell;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use longhaul_agent::{Config, RetryMode, Runtime};
use tokio::io::BufReader;

use crate::args::GlobalArgs;
use crate::output::note;
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
    if !unfinished.is_empty() && runtime.other_host().await?.is_none() {
        for key in &unfinished {
            if let Err(error) = spawn_resume(globals, &runtime.config().work_dir, key) {
                let resume = suggested_command::resume(globals, key);
                note(format!("{key} is suspended ({error}); to resume: {resume}"));
            }
        }
    }
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

/// Starts a process that finishes the turn of a session. Signals to this process and its group don't reach it.
fn spawn_resume(globals: &GlobalArgs, work_dir: &Path, key: &str) -> std::io::Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    for (flag, value) in globals.flags() {
        command.args([flag, &value]);
    }
    command
        .args(["resume", key])
        .current_dir(work_dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map(drop)
}
