//! The process that keeps a task, as others know it: by its lock, by what it wrote into the folder, and by its socket.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Signal, getpid};

use crate::folder::{Folder, Locked, name};
use crate::format::{FORMAT, KeeperFile, Process, ProcessFile, decode};
use crate::process_table::{self, Entry};
use crate::{Error, Result};

/// What a folder says of the processes of its task.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Recorded {
    pub(crate) keeper: Option<Process>,
    pub(crate) command: Option<Process>,
    /// The first process of its PID namespace.
    pub(crate) init: Option<Process>,
}

/// What becomes of trying to reach a keeper.
#[derive(Debug)]
pub(crate) enum Reached {
    Open(UnixStream),
    /// It lives, and too many wait to be heard: it may have been stopped.
    Busy,
    /// There is no socket, or nobody listens.
    Nobody,
}

/// This process, for the folder that it keeps.
pub(crate) fn this_process() -> KeeperFile {
    let pid = getpid().as_raw_nonzero().get();
    KeeperFile { format: FORMAT, keeper: process(pid), system: system() }
}

/// A process by its number.
pub(crate) fn process(pid: i32) -> Process {
    Process { pid, start_time: process_table::look_up(pid).map_or(0, |entry| entry.start_time) }
}

/// Whether a keeper has this folder now, or for a moment somebody else who wants to know.
pub(crate) fn lives(folder: &Folder) -> Result<bool> {
    match folder.try_lock()? {
        Locked::Ours(_) => Ok(false),
        Locked::Theirs => Ok(true),
        Locked::Missing => Ok(living(folder).is_some()),
    }
}

/// The keeper of this folder, if it lives and can be told: by what it wrote, or by its socket.
pub(crate) fn living(folder: &Folder) -> Option<Entry> {
    by_record(folder).or_else(|| by_socket(folder))
}

/// The keeper that wrote itself down, if it lives.
pub(crate) fn by_record(folder: &Folder) -> Option<Entry> {
    let keeper = recorded(folder).keeper?;
    process_table::look_up(keeper.pid).filter(|entry| entry.start_time == keeper.start_time && !entry.is_over)
}

fn by_socket(folder: &Folder) -> Option<Entry> {
    let Ok(Reached::Open(stream)) = reach(folder) else { return None };
    let number = peer_of(&stream)?;
    let entry = process_table::look_up(number)?;
    // A number may have been given to somebody else since the socket was bound; but only a keeper works in this folder.
    let works_here = fs::metadata(format!("/proc/{number}/cwd")).is_ok_and(|at| folder.has_identity(&at));
    works_here.then_some(entry)
}

/// The process that listened for this connection. One that this system can't name from here has the number 0, for which rustix
/// has no type.
#[allow(unsafe_code, reason = "there is no safe way to ask for it that takes 0 for an answer")]
fn peer_of(stream: &UnixStream) -> Option<i32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    // SAFETY: both places live here, and `length` says how large the first is.
    let failed = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut length,
        ) != 0
    };
    (!failed && peer.pid > 0).then_some(peer.pid)
}

/// What the folder says of its processes, as far as it was said on this system since it was started.
pub(crate) fn recorded(folder: &Folder) -> Recorded {
    let here = system();
    let lock = read::<KeeperFile>(folder, name::LOCK).filter(|file| file.system == here);
    let pid = read::<ProcessFile>(folder, name::PID).filter(|file| file.system.as_ref() == Some(&here));
    let keeper = lock.map(|file| file.keeper).or_else(|| pid.as_ref()?.keeper);
    // A process of which it is not known when it started can't be told from another.
    let is_known = |process: &Process| process.start_time > 0;
    Recorded {
        keeper: keeper.filter(is_known),
        command: pid.as_ref().map(|file| file.command).filter(is_known),
        init: pid.and_then(|file| file.init),
    }
}

fn read<T: serde::de::DeserializeOwned>(folder: &Folder, name: &str) -> Option<T> {
    decode(&folder.title(name), &folder.read(name).ok()??).ok()
}

/// The boot and the namespace of this process: what a process's number is counted in.
fn system() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// Lets a keeper go on that somebody has stopped.
pub(crate) fn wake(folder: &Folder) {
    if let Some(keeper) = living(folder).filter(|keeper| keeper.is_stopped) {
        process_table::send(&keeper, Signal::CONT);
    }
}

/// Tries to connect to the keeper of this folder, and never waits for it.
pub(crate) fn reach(folder: &Folder) -> Result<Reached> {
    let said = || Error::io(format!("reaching {}", folder.title(name::SOCKET)));
    let address = SocketAddrUnix::new(folder.short_path().join(name::SOCKET)).map_err(said())?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(said())?;
    match connect(socket.as_fd(), &address) {
        Ok(()) => {}
        Err(Errno::AGAIN) => return Ok(Reached::Busy),
        Err(Errno::NOENT | Errno::CONNREFUSED) => return Ok(Reached::Nobody),
        Err(error) => return Err(said()(error)),
    }
    let stream = UnixStream::from(socket);
    stream
        .set_nonblocking(false)
        .map_err(|error| Error::Io { what: "reaching a keeper".to_owned(), source: error })?;
    Ok(Reached::Open(stream))
}
