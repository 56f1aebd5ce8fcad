//! Signal handlers, and what a child does between fork and exec. The standard library has neither.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

/// The caught signals. A keeper acts on the first two. The others would end the keeper: two come from a terminal, and
/// two from resource limits, where the failed write is already an error.
const CAUGHT: [libc::c_int; 6] =
    [libc::SIGCHLD, libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGXFSZ, libc::SIGXCPU];
const LAST_SIGNAL: libc::c_int = 64;

/// The end of the pipe to which the handler writes.
static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

/// Signals as bytes in a pipe, so that one `poll` waits for everything.
///
/// They are caught instead of blocked or ignored, because a command would inherit that.
#[derive(Debug)]
pub(crate) struct Signals {
    pipe: File,
}

impl Signals {
    #[allow(unsafe_code, reason = "there is no safe way to set a signal handler")]
    pub(crate) fn catch() -> io::Result<Self> {
        let (ours, handlers) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        SIGNAL_PIPE.store(OwnedFd::into_raw_fd(handlers), Ordering::SeqCst);
        for signal in CAUGHT {
            // SAFETY: all zeros is a valid `sigaction`; the handler does nothing but `write`, which a handler may do.
            let failed = unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = write_signal as extern "C" fn(libc::c_int) as usize;
                action.sa_flags = libc::SA_RESTART | libc::SA_NOCLDSTOP;
                libc::sigaction(signal, &raw const action, std::ptr::null_mut()) != 0
            };
            if failed {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Self { pipe: ours.into() })
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Empties the pipe; true if SIGTERM was among the signals.
    pub(crate) fn asked_to_end(&self) -> bool {
        let mut bytes = [0; 64];
        let mut asked = false;
        while let Ok(count) = (&self.pipe).read(&mut bytes) {
            asked |= bytes[..count].iter().any(|byte| libc::c_int::from(*byte) == libc::SIGTERM);
            if count < bytes.len() {
                break;
            }
        }
        asked
    }
}

#[allow(unsafe_code, reason = "a signal handler may use nothing but system calls")]
extern "C" fn write_signal(signal: libc::c_int) {
    let byte = u8::try_from(signal).unwrap_or(0);
    // SAFETY: `write` and `errno` are allowed in a handler; a full pipe wakes the reader anyway.
    unsafe {
        let error = *libc::__errno_location();
        libc::write(SIGNAL_PIPE.load(Ordering::SeqCst), (&raw const byte).cast(), 1);
        *libc::__errno_location() = error;
    }
}

/// Prepares a child for exec: it ends with its keeper, and no signal is blocked or ignored.
///
/// Runs between fork and exec, where only system calls are allowed.
#[allow(unsafe_code, reason = "there is no safe way to reset signals")]
pub(crate) fn become_command(keeper: Pid) -> io::Result<()> {
    die_with(keeper)?;
    // SAFETY: plain system calls on a local set. The kernel refuses signals that can't be changed, which is fine.
    unsafe {
        for signal in 1..=LAST_SIGNAL {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
    Ok(())
}

/// Makes this process end with its keeper.
pub(crate) fn die_with(keeper: Pid) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(keeper) { Ok(()) } else { Err(io::Error::other("the supervisor has ended")) }
}

/// Closes inherited files. Otherwise a pipe of the runtime's parents would stay open as long as the command runs.
#[allow(unsafe_code, reason = "closing files by number is not something that the library can check")]
pub(crate) fn close_inherited_files() {
    // SAFETY: the keeper has opened nothing yet. On a kernel without this call, the files stay open.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32);
    }
}
