//! Whether a task's keeper is alive, and which process it is. The lock, the files in the folder and the socket tell
//! this. A pid alone is never enough.

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

/// The processes that a folder names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordedProcesses {
    pub(crate) keeper: Option<Process>,
    pub(crate) command: Option<Process>,
    /// The first process of its PID namespace.
    pub(crate) init: Option<Process>,
}

/// The result of connecting to a keeper.
#[derive(Debug)]
pub(crate) enum KeeperConnection {
    Open(UnixStream),
    /// Its queue is full. It is alive, but may be stopped.
    Busy,
    /// There is no socket, or no listener.
    Absent,
}

/// This process, for the `lock` of the folder that it keeps.
pub(crate) fn this_process() -> KeeperFile {
    let pid = getpid().as_raw_nonzero().get();
    KeeperFile { format: FORMAT, keeper: process(pid), system: system() }
}

pub(crate) fn process(pid: i32) -> Process {
    Process { pid, start_time: process_table::look_up(pid).map_or(0, |entry| entry.start_time) }
}

/// Whether a keeper holds the folder's lock. Also true for the moment in which another process checks the same.
pub(crate) fn is_alive(folder: &Folder) -> Result<bool> {
    match folder.try_lock()? {
        Locked::Ours(_) => Ok(false),
        Locked::Theirs => Ok(true),
        Locked::Missing => Ok(find_keeper(folder).is_some()),
    }
}

/// The living keeper of this folder, found by the files that it wrote or by its socket.
pub(crate) fn find_keeper(folder: &Folder) -> Option<Entry> {
    keeper_by_record(folder).or_else(|| keeper_by_socket(folder))
}

/// The keeper that the folder names, if it is alive.
pub(crate) fn keeper_by_record(folder: &Folder) -> Option<Entry> {
    let keeper = recorded_processes(folder).keeper?;
    process_table::look_up(keeper.pid).filter(|entry| entry.start_time == keeper.start_time && !entry.is_over)
}

fn keeper_by_socket(folder: &Folder) -> Option<Entry> {
    let Ok(KeeperConnection::Open(stream)) = connect_keeper(folder) else { return None };
    let number = peer_pid(&stream)?;
    let entry = process_table::look_up(number)?;
    // The pid may have been reused since the socket was bound. But only a keeper has this folder as its current
    // directory.
    let works_here = fs::metadata(format!("/proc/{number}/cwd")).is_ok_and(|at| folder.has_identity(&at));
    works_here.then_some(entry)
}

/// The pid of the process that listens on the socket. The system reports 0 for a process in another PID namespace,
/// and rustix has no type for that.
#[allow(unsafe_code, reason = "rustix can't represent the pid 0")]
fn peer_pid(stream: &UnixStream) -> Option<i32> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).ok()?;
    // SAFETY: both variables live in this function, and `length` is the size of the first.
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

/// The processes that the folder names, if they belong to this boot and PID namespace.
pub(crate) fn recorded_processes(folder: &Folder) -> RecordedProcesses {
    let here = system();
    let lock = read::<KeeperFile>(folder, name::LOCK).filter(|file| file.system == here);
    let pid = read::<ProcessFile>(folder, name::PID).filter(|file| file.system.as_ref() == Some(&here));
    let keeper = lock.map(|file| file.keeper).or_else(|| pid.as_ref()?.keeper);
    // Without its start time, a process can't be distinguished from a later one with its pid.
    let has_start_time = |process: &Process| process.start_time > 0;
    RecordedProcesses {
        keeper: keeper.filter(has_start_time),
        command: pid.as_ref().map(|file| file.command).filter(has_start_time),
        init: pid.and_then(|file| file.init),
    }
}

fn read<T: serde::de::DeserializeOwned>(folder: &Folder, name: &str) -> Option<T> {
    decode(&folder.title(name), &folder.read(name).ok()??).ok()
}

/// The boot and the PID namespace of this process, within which pids are unique.
fn system() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display())
}

/// Continues a keeper that was stopped (SIGSTOP).
pub(crate) fn continue_if_stopped(folder: &Folder) {
    if let Some(keeper) = find_keeper(folder).filter(|keeper| keeper.is_stopped) {
        process_table::send(&keeper, Signal::CONT);
    }
}

/// Connects to the keeper of this folder, without blocking.
pub(crate) fn connect_keeper(folder: &Folder) -> Result<KeeperConnection> {
    let said = || Error::io(format!("reaching {}", folder.title(name::SOCKET)));
    let address = SocketAddrUnix::new(folder.short_path().join(name::SOCKET)).map_err(said())?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(said())?;
    match connect(socket.as_fd(), &address) {
        Ok(()) => {}
        Err(Errno::AGAIN) => return Ok(KeeperConnection::Busy),
        Err(Errno::NOENT | Errno::CONNREFUSED) => return Ok(KeeperConnection::Absent),
        Err(error) => return Err(said()(error)),
    }
    let stream = UnixStream::from(socket);
    stream
        .set_nonblocking(false)
        .map_err(|error| Error::Io { what: "reaching a supervisor".to_owned(), source: error })?;
    Ok(KeeperConnection::Open(stream))
}
