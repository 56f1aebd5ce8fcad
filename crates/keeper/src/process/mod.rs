//! The keeper's own process: one thread, one command, a few hundred kilobytes.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `command` | starts the command: environment, shell, sandbox |
//! | `supervisor` | the loop: output, clients, timeout, grace period, kill, reaping |
//! | `output_pump` | output from the pipe to the files |
//! | `clients` | connections on the socket |
//! | `relay` | input and output of a command over the socket, to its owner |
//! | `signals` | signal handlers; what a child does between fork and exec |
//! | `sandbox` | namespaces, mounts, overlays, capabilities, Landlock, seccomp |
//!
//! The current directory is the task's folder, and every file name is relative to it. The order in which the files
//! appear ensures that a command starts exactly once. The table in the crate's documentation says what each step
//! leaves on disk.

mod clients;
mod command;
mod output_pump;
mod relay;
mod sandbox;
mod signals;
mod supervisor;

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process::exit;
use std::time::{Duration, Instant};

use longhaul_protocol::TaskStatus;
use rustix::process::{getpid, set_child_subreaper, setsid};

use crate::folder::{Folder, Reserved, name};
use crate::format::{FORMAT, KeeperFile, ProcessFile, Spec, StartReport, Status, decode, encode, line, now};
use crate::{Result, launcher, liveness};

use clients::Clients;
use command::Started;
pub use command::shell_for;
use output_pump::OutputPump;
use relay::Relay;
use sandbox::Placeholders;
use signals::Signals;
use supervisor::{Streams, Supervisor};

/// How long to retry writing the status. Its space is reserved, so it fails on a full disk only if the file system is
/// copy-on-write.
const STATUS_WRITE_TIMEOUT: Duration = Duration::from_secs(600);
const STATUS_RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long to wait for the last processes of a PID namespace before its placeholders are removed.
const NAMESPACE_EXIT_WAIT: Duration = Duration::from_millis(20);

/// Call this first in `main`: if this process was started as a keeper, it becomes one and never returns.
pub fn main_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == launcher::ARGUMENT) {
        keep_here();
    }
}

/// Runs the keeper of the task whose folder is the current directory, and never returns. For programs that can't check
/// their arguments first.
pub fn keep_here() -> ! {
    if std::env::var_os(launcher::PROBE).is_some() {
        sandbox::answer_probe();
        exit(0);
    }
    // This process has no output. The error was reported to the runtime, or is in the task's folder.
    exit(i32::from(keep().is_err()))
}

fn keep() -> Result<()> {
    detach();
    let folder = Folder::here()?;
    if !folder.has(name::SPEC)? {
        // A user has tried the hidden argument: this is not a task's folder.
        return Ok(());
    }
    let lock = folder.lock()?;
    if folder.has(name::VOID)? || folder.has(name::SPAWNING)? {
        // A runtime has voided this folder and may have run the command elsewhere, or the command already ran here.
        return Ok(());
    }
    let keeper = liveness::this_process();
    lock.write_holder(&encode(&keeper));
    match start(&folder, keeper) {
        Ok(Some(running)) => {
            report(None);
            finish(&folder, running)
        }
        Ok(None) => Ok(()),
        Err(error) => {
            report(Some(error.to_string()));
            Err(error)
        }
    }
}

/// Detaches from the runtime: its session, its terminal, its open files.
fn detach() {
    // It fails only if the process already leads a group, and then no terminal signal reaches it either.
    let _ = setsid();
    let _ = set_child_subreaper(Some(getpid()));
    let _ = rustix::thread::set_name(c"longhaul-keeper");
    signals::close_inherited_files();
}

/// A command that was started.
struct RunningCommand {
    supervisor: Supervisor,
    /// Reserved space for the status.
    room: Reserved,
    spec: Spec,
    placeholders: Placeholders,
}

/// Starts the command. `None` if it can't run: then the status says so, and the runtime has the report.
fn start(folder: &Folder, keeper: KeeperFile) -> Result<Option<RunningCommand>> {
    let file = folder.title(name::SPEC);
    let spec: Spec = decode(&file, &folder.read(name::SPEC)?.unwrap_or_default())?;
    let signals = Signals::catch().map_err(crate::Error::io("catching signals"))?;
    let listener =
        UnixListener::bind(name::SOCKET).map_err(crate::Error::io("binding the supervisor's socket"))?;
    listener.set_nonblocking(true).map_err(crate::Error::io("binding the supervisor's socket"))?;
    folder.make_private(name::SOCKET)?;
    let (pump, output) = OutputPump::start(folder, &spec)?;
    let (relay, pipes) = if spec.relay {
        Relay::new().map(|(relay, pipes)| (Some(relay), Some(pipes)))?
    } else {
        (None, None)
    };
    let room = folder.reserve(name::STATUS)?;

    folder.write(name::SPAWNING, b"")?;
    folder.sync()?;
    let (began, started_at) = (Instant::now(), now());
    let names = spec.bounds.as_ref().map_or(&[][..], |bounds| &bounds.placeholders);
    let made = Placeholders::make(names).map_err(|trouble| command::sandbox_failed(&trouble));
    let started = made.and_then(|placeholders| match command::start(&spec, output, pipes) {
        Ok(processes) => Ok((processes, placeholders)),
        Err(reason) => {
            placeholders.remove();
            Err(reason)
        }
    });
    let (processes, placeholders) = match started {
        Ok(started) => started,
        Err(reason) => {
            // If the status can't be written, the runtime still gets the reason. A later lookup gets `Unknown`.
            let written =
                folder.fill(&room, name::STATUS, &encode(&never_started(started_at, reason.clone())));
            report(Some(reason));
            return written.map(|()| None);
        }
    };
    let file = ProcessFile {
        format: FORMAT,
        command: liveness::process(processes.command.as_raw_nonzero().get()),
        init: processes.init.map(|init| liveness::process(init.as_raw_nonzero().get())),
        keeper: Some(keeper.keeper),
        system: Some(keeper.system),
    };
    // The command runs now. If this can't be written (a full disk), a later lookup is just less precise.
    let _ = folder.write(name::PID, &encode(&file));

    let started = Started { processes, began, started_at };
    let clients = Clients::new(listener, spec.token_file.clone());
    let supervisor = Supervisor::new(started, &spec, signals, Streams { pump, relay }, clients);
    Ok(Some(RunningCommand { supervisor, room, spec, placeholders }))
}

/// Supervises the command until it ends, writes its status, and only then notifies the waiting clients. Stays for its
/// orphans.
fn finish(folder: &Folder, running: RunningCommand) -> Result<()> {
    let RunningCommand { mut supervisor, room, spec, placeholders } = running;
    let status = supervisor.run_to_end(folder);
    // Most commands leave no orphans. Then the placeholders are gone before the clients learn of the end.
    let mut placeholders = Some(placeholders).filter(|placeholders| !placeholders.is_empty());
    if placeholders.is_some() && supervisor.wait_for_processes(folder, NAMESPACE_EXIT_WAIT) {
        placeholders.take().into_iter().for_each(Placeholders::remove);
    }
    let bytes = encode(&status);
    let since = Instant::now();
    while let Err(error) = folder.fill(&room, name::STATUS, &bytes) {
        // A removed folder needs no status.
        if folder.is_gone()
            || since.elapsed() > STATUS_WRITE_TIMEOUT
            || supervisor.serve_until(folder, Instant::now() + STATUS_RETRY_INTERVAL)
        {
            return Err(error);
        }
    }
    match status.status {
        TaskStatus::Killed => supervisor.clients.confirm_kill(true),
        _ => supervisor.clients.close_watching(),
    }
    supervisor.supervise_orphans(folder);
    // Not earlier: an orphan could have created these files.
    placeholders.into_iter().for_each(Placeholders::remove);
    let _ = std::fs::remove_file(name::SOCKET);
    supervisor.clients.confirm_kill(false);
    sandbox::clean_up_overlays(spec.bounds.as_ref().map_or(&[], |bounds| &bounds.overlays));
    Ok(())
}

fn never_started(at: longhaul_protocol::At, reason: String) -> Status {
    Status {
        format: FORMAT,
        status: TaskStatus::Failed,
        exit_code: None,
        signal: None,
        started_at: at,
        ended_at: at,
        duration_ms: 0,
        printed: 0,
        message: Some(reason),
        unasked: false,
    }
}

/// Reports the start to the runtime, which holds the other end of the standard input. The runtime may be gone, which
/// is fine.
fn report(failed: Option<String>) {
    let bytes = line(&StartReport { format: FORMAT, failed });
    let Ok(standard_input) = std::io::stdin().as_fd().try_clone_to_owned() else { return };
    let _ = std::fs::File::from(standard_input).write_all(&bytes);
}
