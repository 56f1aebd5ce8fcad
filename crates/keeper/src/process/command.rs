//! Starting the command itself.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use longhaul_protocol::{At, PrintablePath};
use rustix::fs::{Access, access};
use rustix::process::{Pid, getpid};

use super::bounds::{Ready, Reason, SiblingsPipe};
use super::signals::{become_command, die_with};
use crate::Bounds;
use crate::format::{MARK, Spec};

/// The only target that a keeper serves.
const LOCAL: &str = "local";

/// A command that runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) processes: CommandProcesses,
    pub(crate) began: Instant,
    pub(crate) started_at: At,
}

/// The processes that are children of the keeper.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandProcesses {
    /// The command's own.
    pub(crate) command: Pid,
    /// The first one of its PID namespace, if it has one and as long as that is not reaped.
    pub(crate) init: Option<Pid>,
}

/// Starts the command, in a process group of its own, or says in words for people why not. It prints to `output`.
pub(crate) fn start(spec: &Spec, output: OwnedFd) -> Result<CommandProcesses, String> {
    if spec.target != LOCAL {
        return Err(format!(
            "its target is {:?}, and this version runs commands on {LOCAL:?} only",
            spec.target
        ));
    }
    if !spec.work_dir.is_dir() {
        return Err(format!("the work folder {} is not there", spec.work_dir.printable()));
    }
    let errors = output.try_clone().map_err(|error| format!("its output can't be kept ({error})"))?;
    let shell = shell_for(spec.environment.get("PATH").map(String::as_str));
    let name = shell.file_name().unwrap_or(OsStr::new("sh"));
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
    let pipes = match &spec.bounds {
        Some(bounds) => Some(hold_to_bounds(&mut command, bounds, spec, keeper)?),
        None => {
            on_the_way(&mut command, move || become_command(keeper));
            None
        }
    };
    let started = command.spawn();
    // The child's ends of the pipes go with it, or nobody would ever have heard all of what it says.
    drop(command);
    let (reason, siblings) = pipes.map_or((None, None), |pipes| (Some(pipes.reason), pipes.siblings));
    let child = match started {
        Ok(child) => child,
        Err(error) => {
            siblings.into_iter().for_each(SiblingsPipe::end_namespace);
            return Err(match reason.and_then(Reason::heard) {
                Some(reason) => out_of_bounds(&reason),
                None => format!("{} can't be run ({error})", shell.printable()),
            });
        }
    };
    match siblings.map(SiblingsPipe::heard) {
        None => Ok(CommandProcesses { command: Pid::from_child(&child), init: None }),
        Some(Ok(siblings)) => Ok(CommandProcesses { command: siblings.command, init: Some(siblings.init) }),
        // Its processes end with this one.
        Some(Err(error)) => Err(format!("which processes were started is not known ({error})")),
    }
}

/// The pipes on which a child that is held to bounds says what became of it.
struct ChildPipes {
    reason: Reason,
    /// On which it says which processes it started in its place, if the command has a PID namespace.
    siblings: Option<SiblingsPipe>,
}

/// Why a command is not started, in words for people.
pub(super) fn out_of_bounds(trouble: &str) -> String {
    format!("it can't be held to its bounds ({trouble})")
}

/// Sees to it that the command begins within its bounds or not at all.
fn hold_to_bounds(
    command: &mut Command,
    bounds: &Bounds,
    spec: &Spec,
    keeper: Pid,
) -> Result<ChildPipes, String> {
    let ready = Ready::new(bounds, &spec.work_dir).map_err(|trouble| out_of_bounds(&trouble))?;
    let said = |error: std::io::Error| out_of_bounds(&error.to_string());
    let reason = Reason::new().map_err(said)?;
    let theirs = reason.theirs().map_err(said)?;
    let siblings = SiblingsPipe::new().map_err(said)?;
    let their_siblings = siblings.theirs().map_err(said)?;
    let has_own_processes = ready.has_own_processes();
    on_the_way(command, move || {
        become_command(keeper)?;
        ready.enter_or_say(keeper, &their_siblings, &theirs)?;
        match has_own_processes {
            // It ends with the first process of its namespace, and that with the keeper.
            true => Ok(()),
            // A change of rights can undo this.
            false => die_with(keeper),
        }
    });
    Ok(ChildPipes { reason, siblings: has_own_processes.then_some(siblings) })
}

#[allow(unsafe_code, reason = "between fork and exec only some things are allowed, and nothing checks that")]
fn on_the_way(command: &mut Command, step: impl FnMut() -> std::io::Result<()> + Send + Sync + 'static) {
    // SAFETY: the keeper has one thread, so nobody else holds a lock that the child could wait for: it may allocate.
    unsafe {
        command.pre_exec(step);
    }
}

/// The shell that runs commands with this `PATH`: the bash that the command itself would find, or `/bin/sh` where there is none.
pub fn shell_for(path: Option<&str>) -> PathBuf {
    let listed = path.unwrap_or_default().split(':').filter(|folder| folder.starts_with('/'));
    let mut places =
        listed.chain(["/bin", "/usr/bin", "/usr/local/bin"]).map(|folder| Path::new(folder).join("bash"));
    let bash =
        places.find(|bash| bash.is_file() && access(bash.as_os_str() as &OsStr, Access::EXEC_OK).is_ok());
    bash.unwrap_or_else(|| PathBuf::from("/bin/sh"))
}
