//! A PID namespace for the command, and its init process.
//!
//! When the init process of a PID namespace ends, the kernel kills everything in the namespace. The command can't be
//! that process: its orphans (`server &`) would end with it, and the kernel ignores most signals to an init. So a
//! separate process does nothing but reap orphans. It ends when its namespace has no other process, or with the
//! keeper.
//!
//! Both are children of the keeper, so the kernel gives the command's exit status to the keeper:
//!
//! ```text
//! keeper ─┬─ the child that was forked for the command: creates the namespace, starts the two others, ends
//!         ├─ init of the namespace: reaps orphans
//!         └─ command
//! ```

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, set_parent_process_death_signal, setpgid,
    wait,
};

use super::{SandboxResult, context};

/// Tells the init that the keeper has reaped a child: the command, or a process that the command made its sibling. It
/// may have been the last other process of the namespace, and the kernel tells only the parent. The signal is only a
/// hint to check, so nothing changes if the command sends it.
pub(crate) const CHILD_REAPED: Signal = Signal::USR1;

/// The two processes that the keeper's child started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Siblings {
    pub(crate) init: Pid,
    pub(crate) command: Pid,
}

/// The pipe on which the child reports their pids.
#[derive(Debug)]
pub(crate) struct SiblingsPipe {
    theirs: PipeWriter,
    ours: PipeReader,
}

impl SiblingsPipe {
    pub(crate) fn new() -> io::Result<Self> {
        let (ours, theirs) = io::pipe()?;
        Ok(Self { theirs, ours })
    }

    /// The end of the pipe for the child.
    pub(crate) fn theirs(&self) -> io::Result<PipeWriter> {
        self.theirs.try_clone()
    }

    /// The pids that the child reported. The child ended before the command began.
    pub(crate) fn heard(self) -> io::Result<Siblings> {
        let mut said = self.into_reader();
        Ok(Siblings { init: read_pid(&mut said)?, command: read_pid(&mut said)? })
    }

    /// After a failed start: kills the init, if there is one, and with it everything in its namespace. Returns when
    /// all children of this process are reaped, because the kernel keeps the init until its namespace is empty.
    pub(crate) fn end_namespace(self) {
        let Ok(init) = read_pid(&mut self.into_reader()) else { return };
        let _ = kill_process(init, Signal::KILL);
        while matches!(wait(WaitOptions::empty()), Ok(_) | Err(Errno::INTR)) {}
    }

    /// Closes this process's copy of the child's end, so that reading ends with the child.
    fn into_reader(self) -> PipeReader {
        self.ours
    }
}

fn read_pid(said: &mut PipeReader) -> io::Result<Pid> {
    let mut bytes = [0; size_of::<i32>()];
    said.read_exact(&mut bytes)?;
    Pid::from_raw(i32::from_ne_bytes(bytes)).ok_or_else(|| io::Error::other("a process without a pid"))
}

/// Starts the init of the new namespace, and the command. Returns in the command's process. The calling process ends.
pub(super) fn start_in_namespace(keeper: Pid, tell: &PipeWriter) -> SandboxResult {
    let keeper = pidfd_open(keeper, PidfdFlags::empty()).map_err(context("looking for the supervisor"))?;
    // Before any process exists that could get these signals.
    set_blocked(libc::SIG_BLOCK);
    let init = clone_sibling().map_err(context("starting the first process of a PID namespace"))?;
    if init == 0 {
        run_init(&keeper);
    }
    // Reported at once: if a later step fails, the keeper must kill the init.
    let mut tell = tell;
    tell.write_all(&init.to_ne_bytes()).map_err(context("reporting a process to the supervisor"))?;
    let command = clone_sibling().map_err(context("starting a process in a PID namespace"))?;
    if command == 0 {
        set_blocked(libc::SIG_UNBLOCK);
        return setpgid(None, None).map_err(context("making a process group"));
    }
    let told = tell.write_all(&command.to_ne_bytes());
    end(libc::c_int::from(told.is_err()))
}

/// Makes this process end with the keeper. Inside a PID namespace, the keeper's pid can't be compared with the
/// parent's.
fn die_with(keeper: &OwnedFd) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let mut polled = [PollFd::new(keeper, PollFlags::IN)];
    match poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))? {
        0 => Ok(()),
        _ => Err(io::Error::other("the supervisor has ended")),
    }
}

/// The init process. It closes all files of the keeper: an open lock would mean that the keeper is alive, and an open
/// pipe that more output may come.
#[allow(unsafe_code, reason = "there is no safe way to wait for a signal")]
fn run_init(keeper: &OwnedFd) -> ! {
    if die_with(keeper).is_err() || setpgid(None, None).is_err() || rustix::process::chdir("/").is_err() {
        end(1);
    }
    let _ = rustix::thread::set_name(c"longhaul-init");
    // SAFETY: plain system calls. After its files are closed, this process uses only numbers.
    unsafe {
        // The init still has the capabilities that the command drops, so the command must not trace it.
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::syscall(libc::SYS_close_range, 0_u32, u32::MAX, 0_u32);
        let signals = waited_for();
        loop {
            libc::sigwaitinfo(&raw const signals, std::ptr::null_mut());
            while libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) > 0 {}
            // `-1` is every other process of the namespace, including zombies.
            let is_alone = libc::kill(-1, 0) != 0 && *libc::__errno_location() == libc::ESRCH;
            if is_alone {
                libc::_exit(0);
            }
        }
    }
}

/// The signals that the init waits for. They are blocked before it starts, so that none is lost.
#[allow(unsafe_code, reason = "the library has no sets of signals")]
fn waited_for() -> libc::sigset_t {
    // SAFETY: all zeros is a valid set, and it lives in this function.
    unsafe {
        let mut signals: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, CHILD_REAPED.as_raw());
        libc::sigaddset(&raw mut signals, libc::SIGCHLD);
        signals
    }
}

#[allow(unsafe_code, reason = "the library has no sets of signals")]
fn set_blocked(how: libc::c_int) {
    let signals = waited_for();
    // SAFETY: the set lives in this function, and the system writes nowhere else.
    unsafe {
        libc::sigprocmask(how, &raw const signals, std::ptr::null_mut());
    }
}

/// Forks a child of this process's parent (`CLONE_PARENT`): 0 in the child, its pid here.
#[allow(unsafe_code, reason = "the library has no such call")]
fn clone_sibling() -> io::Result<i32> {
    // SAFETY: without its own stack the child continues with a copy of this one, as after a fork. There is one
    // thread.
    let number = unsafe {
        libc::syscall(libc::SYS_clone, libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD), 0, 0, 0, 0)
    };
    match i32::try_from(number) {
        Ok(number) if number >= 0 => Ok(number),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Exits without running exit handlers.
#[allow(unsafe_code, reason = "the library's exit runs handlers")]
fn end(code: libc::c_int) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(code) }
}
