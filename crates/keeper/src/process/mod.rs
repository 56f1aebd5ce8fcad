//! The keeper's own process: one thread, one command, a few hundred kilobytes.
//!
//! The current directory is the task's folder, and every name is relative to it. The order in which the files appear is what
//! makes a start exactly once; the table on the first page of this crate says what each step leaves behind.

mod bounds;
mod clients;
mod command;
mod copying;
mod signals;
mod watch;

use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::process::exit;
use std::time::{Duration, Instant};

use longhaul_protocol::TaskStatus;
use rustix::process::{getpid, set_child_subreaper, setsid};

use crate::folder::{Folder, Reserved, name};
use crate::format::{FORMAT, KeeperFile, ProcessFile, Spec, StartReport, Status, decode, encode, line, now};
use crate::{Result, holder, launcher};

use bounds::Placeholders;
use clients::Clients;
use command::Started;
pub use command::shell_for;
use copying::Copying;
use signals::Signals;
use watch::Watch;

/// How long a status that can't be written is tried again, and how often. Room for it was set apart, so it is not that the
/// disk is full; unless it is one that never writes in the same place twice.
const PATIENCE_WITH_DISK: Duration = Duration::from_secs(600);
const PAUSE: Duration = Duration::from_secs(1);
/// How long the end of a command waits for its namespace to go, where names are to be freed then.
const LAST_PROCESSES: Duration = Duration::from_millis(20);

/// Call this first thing in `main`: if this process was started to be a keeper, it becomes one and never returns.
pub fn main_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == launcher::ARGUMENT) {
        keep_here();
    }
}

/// Plays the keeper for the task whose folder is the current directory, and never returns. For programs that can't look
/// at their arguments first.
pub fn keep_here() -> ! {
    if std::env::var_os(launcher::PROBE).is_some() {
        bounds::answer_probe();
        exit(0);
    }
    // Nobody is left who could read a message; what is to be said was reported or is in the task's folder.
    exit(i32::from(keep().is_err()))
}

fn keep() -> Result<()> {
    detach();
    let folder = Folder::here()?;
    if !folder.has(name::SPEC)? {
        // Somebody has tried out the hidden argument: this is no task's folder.
        return Ok(());
    }
    let lock = folder.lock()?;
    if folder.has(name::VOID)? || folder.has(name::SPAWNING)? {
        // A runtime has given this folder up and may have run the command elsewhere; or it was run here before.
        return Ok(());
    }
    let keeper = holder::this_process();
    lock.note(&encode(&keeper));
    match start(&folder, keeper) {
        Ok(Some(kept)) => {
            report(None);
            finish(&folder, kept)
        }
        Ok(None) => Ok(()),
        Err(error) => {
            report(Some(error.to_string()));
            Err(error)
        }
    }
}

/// Leaves everything behind that belongs to the runtime: its session, its terminal, its open files.
fn detach() {
    // It fails only where the process leads a group already, and then nothing of the terminal reaches it either.
    let _ = setsid();
    let _ = set_child_subreaper(Some(getpid()));
    let _ = rustix::thread::set_name(c"longhaul-keeper");
    signals::close_inherited_files();
}

/// What a keeper has while its command runs.
struct Kept {
    watch: Watch,
    /// For the status.
    room: Reserved,
    spec: Spec,
    placeholders: Placeholders,
}

/// Everything up to the running command. `None` if it can't run: that is on record then, and was reported.
fn start(folder: &Folder, keeper: KeeperFile) -> Result<Option<Kept>> {
    let file = folder.title(name::SPEC);
    let spec: Spec = decode(&file, &folder.read(name::SPEC)?.unwrap_or_default())?;
    let signals = Signals::catch().map_err(crate::Error::io("catching signals"))?;
    let listener =
        UnixListener::bind(name::SOCKET).map_err(crate::Error::io("binding the keeper's socket"))?;
    listener.set_nonblocking(true).map_err(crate::Error::io("binding the keeper's socket"))?;
    folder.make_private(name::SOCKET)?;
    let (copying, output) = Copying::begin(folder, &spec)?;
    let room = folder.reserve(name::STATUS)?;

    folder.write(name::SPAWNING, b"")?;
    folder.sync()?;
    let (began, started_at) = (Instant::now(), now());
    let names = spec.bounds.as_ref().map_or(&[][..], |bounds| &bounds.placeholders);
    let made = Placeholders::make(names).map_err(|trouble| command::out_of_bounds(&trouble));
    let started = made.and_then(|placeholders| match command::start(&spec, output) {
        Ok(processes) => Ok((processes, placeholders)),
        Err(reason) => {
            placeholders.remove();
            Err(reason)
        }
    });
    let (processes, placeholders) = match started {
        Ok(started) => started,
        Err(reason) => {
            // If it can't be written, the runtime is still told the reason; whoever asks later has to look.
            let written =
                folder.fill(&room, name::STATUS, &encode(&never_started(started_at, reason.clone())));
            report(Some(reason));
            return written.map(|()| None);
        }
    };
    let file = ProcessFile {
        format: FORMAT,
        command: holder::process(processes.command.as_raw_nonzero().get()),
        init: processes.init.map(|init| holder::process(init.as_raw_nonzero().get())),
        keeper: Some(keeper.keeper),
        system: Some(keeper.system),
    };
    // The command runs now. If this can't be written (the disk is full), that only makes a later message vaguer.
    let _ = folder.write(name::PID, &encode(&file));

    let started = Started { processes, began, started_at };
    let clients = Clients::new(listener, spec.token_file.clone());
    let watch = Watch::new(started, &spec, signals, copying, clients);
    Ok(Some(Kept { watch, room, spec, placeholders }))
}

/// Sees the command through, records how it ended, and only then tells whoever waits. Stays for what the command left behind.
fn finish(folder: &Folder, kept: Kept) -> Result<()> {
    let Kept { mut watch, room, spec, placeholders } = kept;
    let status = watch.until_the_end(folder);
    // Most commands leave nothing behind, and then the names are free before anybody hears of the end.
    let mut placeholders = Some(placeholders).filter(|placeholders| !placeholders.is_empty());
    if placeholders.is_some() && watch.has_nothing_left_within(folder, LAST_PROCESSES) {
        placeholders.take().into_iter().for_each(Placeholders::remove);
    }
    let bytes = encode(&status);
    let since = Instant::now();
    while let Err(error) = folder.fill(&room, name::STATUS, &bytes) {
        // Nobody will look for a status in a folder that is not there any more.
        if folder.is_gone()
            || since.elapsed() > PATIENCE_WITH_DISK
            || watch.serve_until(folder, Instant::now() + PAUSE)
        {
            return Err(error);
        }
    }
    match status.status {
        TaskStatus::Killed => watch.clients.say_ended(true),
        _ => watch.clients.close_watching(),
    }
    watch.keep_what_is_left(folder);
    // Something that was left behind could have taken the names as long as it ran.
    placeholders.into_iter().for_each(Placeholders::remove);
    let _ = std::fs::remove_file(name::SOCKET);
    watch.clients.say_ended(false);
    bounds::clean_up_overlays(spec.bounds.as_ref().map_or(&[], |bounds| &bounds.overlays));
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

/// Tells the runtime, which holds the other end of the standard input. It may be gone; that changes nothing.
fn report(failed: Option<String>) {
    let bytes = line(&StartReport { format: FORMAT, failed });
    let Ok(standard_input) = std::io::stdin().as_fd().try_clone_to_owned() else { return };
    let _ = std::fs::File::from(standard_input).write_all(&bytes);
}
