//! Starting the command itself.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use longhaul_protocol::At;
use rustix::fs::{Access, access};
use rustix::process::{Pid, getpid};

use super::signals::become_command;
use crate::format::{MARK, Spec};

/// The only target that a keeper serves.
const LOCAL: &str = "local";

/// A command that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) command: Pid,
    pub(crate) began: Instant,
    pub(crate) started_at: At,
}

/// Starts the command, in a process group of its own, or says in words for people why not. It prints to `output`.
pub(crate) fn start(spec: &Spec, output: OwnedFd) -> Result<Pid, String> {
    if spec.target != LOCAL {
        return Err(format!(
            "its target is {:?}, and this version runs commands on {LOCAL:?} only",
            spec.target
        ));
    }
    if !spec.work_dir.is_dir() {
        return Err(format!("the work folder {} is not there", spec.work_dir.display()));
    }
    let errors = output.try_clone().map_err(|error| format!("its output can't be kept ({error})"))?;
    let (shell, name) = shell(spec.environment.get("PATH").map(String::as_str));
    let keeper = getpid();
    let mut command = Command::new(&shell);
    command
        .arg0(name)
        .arg("-c")
        .arg(&spec.command)
        .current_dir(&spec.work_dir)
        .env_clear()
        .envs(&spec.environment)
        .env(MARK, spec.task_id.to_string())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(errors));
    on_the_way(&mut command, keeper);
    let child = command.spawn().map_err(|error| format!("{} can't be run ({error})", shell.display()))?;
    Ok(Pid::from_child(&child))
}

#[allow(unsafe_code, reason = "between fork and exec only system calls are allowed, and nothing checks that")]
fn on_the_way(command: &mut Command, keeper: Pid) {
    // SAFETY: `become_command` makes system calls only, and allocates only where it fails.
    unsafe {
        command.pre_exec(move || become_command(keeper));
    }
}

/// The bash that the command itself would find; where there is none, the shell that every system has.
fn shell(path: Option<&str>) -> (PathBuf, &'static str) {
    let listed = path.unwrap_or_default().split(':').filter(|folder| folder.starts_with('/'));
    let mut places =
        listed.chain(["/bin", "/usr/bin", "/usr/local/bin"]).map(|folder| Path::new(folder).join("bash"));
    let bash =
        places.find(|bash| bash.is_file() && access(bash.as_os_str() as &OsStr, Access::EXEC_OK).is_ok());
    bash.map_or((PathBuf::from("/bin/sh"), "sh"), |bash| (bash, "bash"))
}
