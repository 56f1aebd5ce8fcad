//! Turns that go on without this process.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use longhaul_agent::Runtime;

use crate::args::GlobalArgs;
use crate::output::note;
use crate::suggested_command;

/// Starts a `longhaul resume` for each of these sessions, unless a `longhaul serve` finishes their turns. It ends with the turn, at a
/// question, and where the model stays out of reach, so it is not left behind.
pub(crate) async fn hand_over(
    globals: &GlobalArgs,
    runtime: &Runtime,
    keys: &[String],
) -> anyhow::Result<()> {
    if keys.is_empty() || runtime.other_host().await?.is_some() {
        return Ok(());
    }
    for key in keys {
        if let Err(error) = spawn_resume(globals, &runtime.config().work_dir, key) {
            let resume = suggested_command::resume(globals, key);
            note(format!("{key} is suspended ({error}); to resume: {resume}"));
        }
    }
    Ok(())
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
