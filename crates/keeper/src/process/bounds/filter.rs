//! Which system calls are refused: those that reach processes outside by their number, which nothing else guards, sockets to the
//! machine that this one runs in, and user namespaces.
//!
//! In a user namespace of its own a process has every capability over what it makes there. Nothing works in one here, because its map of
//! users can't be written (`/proc` is read-only), so all that is refused is a larger part of the kernel to attack.
//!
//! A filter sees the numbers that a call is made with and nothing behind them, so it can't tell a command's own processes from others.
//! A call with 0 is about whoever makes it, and passes. One with a number is refused, also where it is the caller's own: a library that
//! names its threads by number (`pthread_setaffinity_np` does, for the calling one too) gets an error.

use std::io;

use super::{Done, while_};
use crate::Bounds;
use crate::bounds::{Network, UnixSockets};

/// A system call, when it is refused, and the error that it gets then.
type Rule = (libc::c_long, When, libc::c_int);

/// What a call needs to be refused: an argument of it, and what that must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Whatever it is called with.
    Always,
    /// An argument is this.
    Is(usize, u32),
    /// An argument is none of these.
    IsNoneOf(usize, &'static [u32]),
    /// An argument has one of these bits.
    HasBits(usize, u32),
    /// An argument is not zero.
    IsNotZero(usize),
    /// An argument is not zero, and a second one, which is an address, leads somewhere.
    IsNotZeroWith(usize, usize),
}

/// `PRIO_USER` and `IOPRIO_WHO_USER`: everything that the user runs, also where no user is named.
const ALL_OF_USER: u32 = 2;
const ALL_OF_USER_FOR_DISKS: u32 = 3;

/// The calls that are refused to every command.
const REFUSED: &[Rule] = &[
    // Without a new limit it only reads the one that there is.
    (libc::SYS_prlimit64, When::IsNotZeroWith(0, 2), libc::EPERM),
    (libc::SYS_setpriority, When::Is(0, ALL_OF_USER), libc::EPERM),
    (libc::SYS_setpriority, When::IsNotZero(1), libc::EPERM),
    (libc::SYS_ioprio_set, When::Is(0, ALL_OF_USER_FOR_DISKS), libc::EPERM),
    (libc::SYS_ioprio_set, When::IsNotZero(1), libc::EPERM),
    (libc::SYS_sched_setaffinity, When::IsNotZero(0), libc::EPERM),
    (libc::SYS_sched_setscheduler, When::IsNotZero(0), libc::EPERM),
    (libc::SYS_sched_setparam, When::IsNotZero(0), libc::EPERM),
    (libc::SYS_sched_setattr, When::IsNotZero(0), libc::EPERM),
    (libc::SYS_socket, When::Is(0, libc::AF_VSOCK as u32), libc::EPERM),
    // It makes sockets that no filter sees. Programs do without where a system doesn't have it.
    (libc::SYS_io_uring_setup, When::Always, libc::ENOSYS),
    (libc::SYS_unshare, When::HasBits(0, libc::CLONE_NEWUSER as u32), libc::EPERM),
    (libc::SYS_clone, When::HasBits(0, libc::CLONE_NEWUSER as u32), libc::EPERM),
    // Its flags are behind an address, where no filter sees them. Libraries use `clone` where a system doesn't have it.
    (libc::SYS_clone3, When::Always, libc::ENOSYS),
];

/// Without a network: other families of sockets may lead to devices, or to other machines past the network namespace.
const WITHOUT_NETWORK: &[Rule] = &[(
    libc::SYS_socket,
    When::IsNoneOf(
        0,
        &[libc::AF_UNIX as u32, libc::AF_INET as u32, libc::AF_INET6 as u32, libc::AF_NETLINK as u32],
    ),
    libc::EAFNOSUPPORT,
)];

/// Without Unix sockets. A pair of streams or of packets is connected to itself and stays so; one of datagrams (type 2, or 3, which is
/// the same here) could send to any socket.
const WITHOUT_UNIX_SOCKETS: &[Rule] = &[
    (libc::SYS_socket, When::Is(0, libc::AF_UNIX as u32), libc::EACCES),
    (libc::SYS_socketpair, When::HasBits(1, libc::SOCK_DGRAM as u32), libc::EACCES),
];

/// The system's name for this processor, if the calls are known here.
const ARCHITECTURE: Option<u32> = if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
    Some(0xc000_003e)
} else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
    Some(0xc000_00b7)
} else {
    None
};
/// From this number on the calls of x86_64 are those of another kind of program, which have these numbers too. No other has as many.
const OF_OTHER_PROGRAMS: u32 = 0x4000_0000;

/// `struct seccomp_data`: where its parts begin.
const AT_NUMBER: u32 = 0;
const AT_ARCHITECTURE: u32 = 4;
/// The lower half of an argument, which is all that counts of numbers: those that are looked at are 32 bits wide.
const fn at_argument(index: usize) -> u32 {
    16 + 8 * index as u32
}
/// The upper half, which addresses have too.
const fn at_upper_half(index: usize) -> u32 {
    at_argument(index) + 4
}

const SET_FILTER: libc::c_uint = 1;
/// Without it, some systems slow down everything that is filtered.
const KEEP_SPEED: libc::c_ulong = 1 << 2;
const PASS: u32 = 0x7fff_0000;
const fn refuse(with: libc::c_int) -> u32 {
    0x0005_0000 | with as u32
}

/// Why calls can't be filtered here; none if they can be.
pub(super) fn missing() -> Option<String> {
    if ARCHITECTURE.is_none() {
        return Some("nobody has said which calls are refused on this processor".to_owned());
    }
    // A filter that is nowhere: a system that knows filters complains of that.
    let tried = install(None);
    let found = tried.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EFAULT));
    (!found).then(|| tried.err().map_or_else(String::new, |error| error.to_string()))
}

/// Refuses these calls from here on, to this process and all that it starts. Where calls can't be filtered, nothing happens, unless nothing
/// else would hold what the bounds say.
pub(super) fn set(bounds: &Bounds) -> Done {
    match (ARCHITECTURE, missing()) {
        (Some(architecture), None) => {
            install(Some(&program(architecture, bounds))).map_err(while_("filtering system calls"))
        }
        (_, why) if bounds.unix_sockets == UnixSockets::Refused => {
            Err(format!("refusing Unix sockets: {}", why.unwrap_or_default()))
        }
        _ => Ok(()),
    }
}

/// Everything that these bounds refuse.
fn rules(bounds: &Bounds) -> impl Iterator<Item = &'static Rule> {
    let network = match bounds.network {
        Network::Open => &[],
        Network::Closed => WITHOUT_NETWORK,
    };
    let unix_sockets = match bounds.unix_sockets {
        UnixSockets::Allowed => &[],
        UnixSockets::Refused => WITHOUT_UNIX_SOCKETS,
    };
    REFUSED.iter().chain(network).chain(unix_sockets)
}

/// The filter, as the system reads it: one check after the other, and what passes all of them passes.
fn program(architecture: u32, bounds: &Bounds) -> Vec<libc::sock_filter> {
    let mut program = vec![
        load(AT_ARCHITECTURE),
        unless_equal(architecture, 0, 1),
        jump_over(1),
        answer(refuse(libc::EPERM)),
        load(AT_NUMBER),
        unless_below(OF_OTHER_PROGRAMS),
        answer(refuse(libc::EPERM)),
    ];
    for (number, when, error) in rules(bounds) {
        let check = match *when {
            When::Always => Vec::new(),
            When::Is(index, value) => vec![load(at_argument(index)), unless_equal(value, 0, 1)],
            When::IsNoneOf(index, values) => {
                // The step after these refuses, so each value that passes jumps over it and what is left of these.
                let over = |position: usize| (values.len() - position) as u8;
                let checks = values
                    .iter()
                    .enumerate()
                    .map(|(position, value)| unless_equal(*value, over(position), 0));
                std::iter::once(load(at_argument(index))).chain(checks).collect()
            }
            When::HasBits(index, bits) => vec![load(at_argument(index)), unless_bits(bits)],
            When::IsNotZero(index) => vec![load(at_argument(index)), unless_equal(0, 1, 0)],
            When::IsNotZeroWith(index, address) => vec![
                load(at_argument(index)),
                unless_equal(0, 5, 0),
                load(at_argument(address)),
                unless_equal(0, 0, 2),
                load(at_upper_half(address)),
                unless_equal(0, 1, 0),
            ],
        };
        // After an argument was looked at, the number has to be loaded again.
        program.push(unless_equal(*number as u32, 0, check.len() as u8 + 1));
        program.extend(check);
        program.push(answer(refuse(*error)));
        program.push(load(AT_NUMBER));
    }
    program.push(answer(PASS));
    program
}

const fn step(code: u32, yes: u8, no: u8, value: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: yes, jf: no, k: value }
}

const fn load(at: u32) -> libc::sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at)
}

/// Passes over as many steps as are said for either outcome.
const fn unless_equal(value: u32, equal: u8, other: u8) -> libc::sock_filter {
    step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, equal, other, value)
}

/// Passes over the next step if none of these bits is set.
const fn unless_bits(bits: u32) -> libc::sock_filter {
    step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, bits)
}

/// Passes over the next step below a value.
const fn unless_below(value: u32) -> libc::sock_filter {
    step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, value)
}

const fn jump_over(steps: u32) -> libc::sock_filter {
    step(libc::BPF_JMP | libc::BPF_JA, 0, 0, steps)
}

const fn answer(with: u32) -> libc::sock_filter {
    step(libc::BPF_RET | libc::BPF_K, 0, 0, with)
}

#[allow(unsafe_code, reason = "the library has no such call")]
fn install(program: Option<&[libc::sock_filter]>) -> io::Result<()> {
    let filter = program.map(|program| libc::sock_fprog {
        len: program.len() as libc::c_ushort,
        filter: program.as_ptr().cast_mut(),
    });
    let filter = filter.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the system reads as many steps as are said, or finds that there is no filter; it writes nothing.
    let failed = unsafe { libc::syscall(libc::SYS_seccomp, SET_FILTER, KEEP_SPEED, filter) != 0 };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
