//! Starts the command.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use longhaul_protocol::{At, PrintablePath};
use rustix::fs::{Access, CWD, Mode, OFlags, ResolveFlags, access, openat2};
use rustix::io::Errno;
use rustix::process::{Pid, fchdir, getpid};

use super::relay::CommandPipes;
use super::sandbox::{FailurePipe, PreparedSandbox, SiblingsPipe};
use super::signals::{become_command, die_with};
use crate::Bounds;
use crate::format::{MARK, Spec};

/// The only target that a keeper supports.
const LOCAL: &str = "local";

/// A running command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) processes: CommandProcesses,
    pub(crate) began: Instant,
    pub(crate) started_at: At,
}

/// The keeper's children.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandProcesses {
    pub(crate) command: Pid,
    /// The init of its PID namespace, until the keeper reaps it.
    pub(crate) init: Option<Pid>,
}

/// Starts the command in its own process group. It prints to `output`, or only its errors if its input and output are
/// relayed. The error is a message for people.
pub(crate) fn start(
    spec: &Spec,
    output: OwnedFd,
    relayed: Option<CommandPipes>,
) -> Result<CommandProcesses, String> {
    if spec.target != LOCAL {
        return Err(format!(
            "its target is {:?}, but this version only runs commands on {LOCAL:?}",
            spec.target
        ));
    }
    let work_dir = open_work_dir(&spec.work_dir)?;
    let errors = output.try_clone().map_err(|error| format!("can't save its output: {error}"))?;
    let shell = shell_for(spec.environment.get("PATH").map(String::as_str));
    let name = shell.file_name().unwrap_or(OsStr::new("sh"));
    let keeper = getpid();
    let mut command = Command::new(&shell);
    command
        .arg0(name)
        .arg("-c")
        .arg(&spec.command)
        .env_clear()
        .envs(&spec.environment)
        .env(MARK, spec.task_id.to_string())
        .process_group(0)
        .stderr(Stdio::from(errors));
    match relayed {
        Some(pipes) => command.stdin(Stdio::from(pipes.input)).stdout(Stdio::from(pipes.output)),
        None => command.stdin(Stdio::null()).stdout(Stdio::from(output)),
    };
    let pipes = match &spec.bounds {
        Some(bounds) => Some(start_in_sandbox(&mut command, bounds, spec, keeper)?),
        None => {
            before_exec(&mut command, move || {
                become_command(keeper)?;
                Ok(fchdir(&work_dir)?)
            });
            None
        }
    };
    let started = command.spawn();
    // Closes the keeper's copies of the child's pipe ends. Otherwise reading from the pipes would never end.
    drop(command);
    let (reason, siblings) = pipes.map_or((None, None), |pipes| (Some(pipes.reason), pipes.siblings));
    let child = match started {
        Ok(child) => child,
        Err(error) => {
            siblings.into_iter().for_each(SiblingsPipe::end_namespace);
            return Err(match reason.and_then(FailurePipe::heard) {
                Some(reason) => sandbox_failed(&reason),
                None => format!("can't run {}: {error}", shell.printable()),
            });
        }
    };
    match siblings.map(SiblingsPipe::heard) {
        None => Ok(CommandProcesses { command: Pid::from_child(&child), init: None }),
        Some(Ok(siblings)) => Ok(CommandProcesses { command: siblings.command, init: Some(siblings.init) }),
        // The processes end with the keeper.
        Some(Err(error)) => Err(format!("can't tell which processes were started: {error}")),
    }
}

/// Opens the work folder of a command. Its path is canonical: a link on it was put there since, maybe by a command that
/// may write the folder above, and is not followed.
pub(super) fn open_work_dir(path: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let named = |trouble: &str| format!("the work folder {} {trouble}", path.printable());
    openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS).map_err(|error| match error {
        Errno::NOENT | Errno::NOTDIR => named("does not exist"),
        Errno::LOOP => named("was replaced by a link, which is not followed"),
        error => named(&format!("can't be opened: {}", std::io::Error::from(error))),
    })
}

/// The pipes on which a sandboxed child reports.
struct ChildPipes {
    reason: FailurePipe,
    /// For the pids of the processes that it started, if the command has a PID namespace.
    siblings: Option<SiblingsPipe>,
}

/// The message for a command whose sandbox failed.
pub(super) fn sandbox_failed(trouble: &str) -> String {
    format!("can't sandbox it: {trouble}")
}

/// Makes the command start inside its sandbox, or not at all.
fn start_in_sandbox(
    command: &mut Command,
    bounds: &Bounds,
    spec: &Spec,
    keeper: Pid,
) -> Result<ChildPipes, String> {
    let ready = PreparedSandbox::new(bounds, &spec.work_dir).map_err(|trouble| sandbox_failed(&trouble))?;
    let said = |error: std::io::Error| sandbox_failed(&error.to_string());
    let reason = FailurePipe::new().map_err(said)?;
    let theirs = reason.theirs().map_err(said)?;
    let siblings = SiblingsPipe::new().map_err(said)?;
    let their_siblings = siblings.theirs().map_err(said)?;
    let has_pid_namespace = ready.has_pid_namespace();
    before_exec(command, move || {
        become_command(keeper)?;
        ready.enter_or_report(keeper, &their_siblings, &theirs)?;
        match has_pid_namespace {
            // The command ends with the init of its namespace, and the init ends with the keeper.
            true => Ok(()),
            // The change of credentials has reset this.
            false => die_with(keeper),
        }
    });
    Ok(ChildPipes { reason, siblings: has_pid_namespace.then_some(siblings) })
}

#[allow(unsafe_code, reason = "between fork and exec only some things are allowed, and nothing checks that")]
fn before_exec(command: &mut Command, step: impl FnMut() -> std::io::Result<()> + Send + Sync + 'static) {
    // SAFETY: the keeper has one thread, so no other thread holds a lock that the child could wait for: it may allocate.
    unsafe {
        command.pre_exec(step);
    }
}

/// The shell for commands with this `PATH`: the bash that the command itself would find, or `/bin/sh` if there is none.
pub fn shell_for(path: Option<&str>) -> PathBuf {
    let listed = path.unwrap_or_default().split(':').filter(|folder| folder.starts_with('/'));
    let mut places =
        listed.chain(["/bin", "/usr/bin", "/usr/local/bin"]).map(|folder| Path::new(folder).join("bash"));
    let bash =
        places.find(|bash| bash.is_file() && access(bash.as_os_str() as &OsStr, Access::EXEC_OK).is_ok());
    bash.unwrap_or_else(|| PathBuf::from("/bin/sh"))
}
