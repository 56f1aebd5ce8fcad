//! The seccomp filter. It refuses sockets to the host of a virtual machine, user namespaces, and system calls that
//! act on other processes by pid, which no other mechanism restricts.
//!
//! In its own user namespace, a process has every capability over what it creates there. It could not use them here,
//! because its uid map can't be written (`/proc` is read-only). Refusing the namespace keeps the kernel's attack
//! surface small.
//!
//! A filter sees only the arguments, not the memory that they point to, so it can't distinguish a command's own
//! processes from others. A pid of 0 means the caller and is allowed. Any other pid is refused, even the caller's
//! own. So a library that names its threads by number gets an error (`pthread_setaffinity_np` does, even for the
//! calling thread).
//!
//! It is written by hand: `seccompiler` has one error number for a whole filter, lets the x32 calls through, kills a process of
//! another architecture instead of refusing its calls, and can't set the flag against the slow-down.

use std::io;

use super::{SandboxResult, context};
use crate::Bounds;
use crate::bounds::{Network, UnixSockets};

/// A system call, the condition for refusing it, and the error that it then returns.
type Rule = (libc::c_long, Condition, libc::c_int);

/// When a call is refused, by its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    /// The argument is this.
    Is(usize, u32),
    /// The argument is none of these.
    IsNoneOf(usize, &'static [u32]),
    /// The argument has one of these bits.
    HasBits(usize, u32),
    /// The argument is not zero.
    IsNotZero(usize),
    /// The first argument is not zero, and the second, a pointer, is not null.
    IsNotZeroWith(usize, usize),
}

/// `PRIO_USER` and `IOPRIO_WHO_USER`: all processes of the user, even with an id of 0.
const ALL_OF_USER: u32 = 2;
const ALL_OF_USER_FOR_DISKS: u32 = 3;

/// Calls refused to every command.
const REFUSED_CALLS: &[Rule] = &[
    // Without a new limit, the call only reads the current one.
    (libc::SYS_prlimit64, Condition::IsNotZeroWith(0, 2), libc::EPERM),
    (libc::SYS_setpriority, Condition::Is(0, ALL_OF_USER), libc::EPERM),
    (libc::SYS_setpriority, Condition::IsNotZero(1), libc::EPERM),
    (libc::SYS_ioprio_set, Condition::Is(0, ALL_OF_USER_FOR_DISKS), libc::EPERM),
    (libc::SYS_ioprio_set, Condition::IsNotZero(1), libc::EPERM),
    (libc::SYS_sched_setaffinity, Condition::IsNotZero(0), libc::EPERM),
    (libc::SYS_sched_setscheduler, Condition::IsNotZero(0), libc::EPERM),
    (libc::SYS_sched_setparam, Condition::IsNotZero(0), libc::EPERM),
    (libc::SYS_sched_setattr, Condition::IsNotZero(0), libc::EPERM),
    (libc::SYS_socket, Condition::Is(0, libc::AF_VSOCK as u32), libc::EPERM),
    // It creates sockets past the filter. Programs have a fallback for systems without it.
    (libc::SYS_io_uring_setup, Condition::Always, libc::ENOSYS),
    (libc::SYS_unshare, Condition::HasBits(0, libc::CLONE_NEWUSER as u32), libc::EPERM),
    (libc::SYS_clone, Condition::HasBits(0, libc::CLONE_NEWUSER as u32), libc::EPERM),
    // Its flags are in memory, where a filter can't see them. Libraries fall back to `clone`.
    (libc::SYS_clone3, Condition::Always, libc::ENOSYS),
];

/// Without a network: other socket families may reach devices, or other machines past the network namespace.
const WITHOUT_NETWORK: &[Rule] = &[(
    libc::SYS_socket,
    Condition::IsNoneOf(
        0,
        &[libc::AF_UNIX as u32, libc::AF_INET as u32, libc::AF_INET6 as u32, libc::AF_NETLINK as u32],
    ),
    libc::EAFNOSUPPORT,
)];

/// Without Unix sockets. A pair of stream or packet sockets stays connected to itself. A datagram pair could send to
/// any socket (type 2, or 3, which Linux treats alike).
const WITHOUT_UNIX_SOCKETS: &[Rule] = &[
    (libc::SYS_socket, Condition::Is(0, libc::AF_UNIX as u32), libc::EACCES),
    (libc::SYS_socketpair, Condition::HasBits(1, libc::SOCK_DGRAM as u32), libc::EACCES),
];

/// `AUDIT_ARCH_*` of this processor, if this file knows its system calls.
const ARCHITECTURE: Option<u32> = if cfg!(all(target_arch = "x86_64", target_pointer_width = "64")) {
    Some(0xc000_003e)
} else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
    Some(0xc000_00b7)
} else {
    None
};
/// `__X32_SYSCALL_BIT`: with this bit, x86_64 has the same calls again for x32 programs. No other architecture has
/// such high numbers.
const X32_CALLS: u32 = 0x4000_0000;

/// Offsets in `struct seccomp_data`.
const AT_NUMBER: u32 = 0;
const AT_ARCHITECTURE: u32 = 4;
/// The lower half of an argument. The checked numbers are 32 bits wide, so the other half does not matter for them.
const fn at_argument(index: usize) -> u32 {
    16 + 8 * index as u32
}
/// The upper half of an argument. Only pointers need it.
const fn at_upper_half(index: usize) -> u32 {
    at_argument(index) + 4
}

const PASS: u32 = libc::SECCOMP_RET_ALLOW;
const fn refuse(with: libc::c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | with as u32
}

/// Why seccomp is not available; `None` if it is.
pub(super) fn missing() -> Option<String> {
    if ARCHITECTURE.is_none() {
        return Some("not supported on this processor".to_owned());
    }
    // A null filter: a kernel with seccomp filters answers EFAULT.
    let tried = install(None);
    let found = tried.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::EFAULT));
    (!found).then(|| tried.err().map_or_else(String::new, |error| error.to_string()))
}

/// Installs the filter for this process and its children. Without seccomp this does nothing, unless the bounds refuse
/// Unix sockets, which only seccomp can do.
pub(super) fn install_filter(bounds: &Bounds) -> SandboxResult {
    match (ARCHITECTURE, missing()) {
        (Some(architecture), None) => {
            install(Some(&program(architecture, bounds))).map_err(context("filtering system calls"))
        }
        (_, why) if bounds.unix_sockets == UnixSockets::Refused => {
            Err(format!("refusing Unix sockets: {}", why.unwrap_or_default()))
        }
        _ => Ok(()),
    }
}

/// The rules for these bounds.
fn rules(bounds: &Bounds) -> impl Iterator<Item = &'static Rule> {
    let network = match bounds.network {
        Network::Open => &[],
        Network::Closed => WITHOUT_NETWORK,
    };
    let unix_sockets = match bounds.unix_sockets {
        UnixSockets::Allowed => &[],
        UnixSockets::Refused => WITHOUT_UNIX_SOCKETS,
    };
    REFUSED_CALLS.iter().chain(network).chain(unix_sockets)
}

/// The BPF program: one check after the other. A call that passes all checks is allowed.
fn program(architecture: u32, bounds: &Bounds) -> Vec<libc::sock_filter> {
    let mut program = vec![
        load(AT_ARCHITECTURE),
        unless_equal(architecture, 1, 0),
        answer(refuse(libc::EPERM)),
        load(AT_NUMBER),
        unless_below(X32_CALLS),
        answer(refuse(libc::EPERM)),
    ];
    for (number, when, error) in rules(bounds) {
        let check = match *when {
            Condition::Always => Vec::new(),
            Condition::Is(index, value) => vec![load(at_argument(index)), unless_equal(value, 0, 1)],
            Condition::IsNoneOf(index, values) => {
                // The step after these checks refuses. So a matching value jumps over the remaining checks and that
                // step.
                let over = |position: usize| (values.len() - position) as u8;
                let checks = values
                    .iter()
                    .enumerate()
                    .map(|(position, value)| unless_equal(*value, over(position), 0));
                std::iter::once(load(at_argument(index))).chain(checks).collect()
            }
            Condition::HasBits(index, bits) => vec![load(at_argument(index)), unless_bits(bits)],
            Condition::IsNotZero(index) => vec![load(at_argument(index)), unless_equal(0, 1, 0)],
            Condition::IsNotZeroWith(index, address) => vec![
                load(at_argument(index)),
                unless_equal(0, 5, 0),
                load(at_argument(address)),
                unless_equal(0, 0, 2),
                load(at_upper_half(address)),
                unless_equal(0, 1, 0),
            ],
        };
        // Checking an argument has replaced the loaded call number.
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

/// Skips `equal` steps if the loaded value equals `value`, otherwise `other` steps.
const fn unless_equal(value: u32, equal: u8, other: u8) -> libc::sock_filter {
    step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, equal, other, value)
}

/// Skips the next step if none of these bits is set.
const fn unless_bits(bits: u32) -> libc::sock_filter {
    step(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, bits)
}

/// Skips the next step if the loaded value is below this.
const fn unless_below(value: u32) -> libc::sock_filter {
    step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, value)
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
    // Without this flag, some kernels slow down a filtered process.
    let flags = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the system reads as many steps as are said, or finds that there is no filter; it writes nothing.
    let failed =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, filter) != 0 };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
#[path = "seccomp_tests.rs"]
mod tests;
