//! A view of the system of the command's own, and none of the rights by which that could be undone.

use std::fs;
use std::io;

use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use rustix::process::{getegid, geteuid};
use rustix::thread::{
    CapabilitySet, UnshareFlags, capability_is_in_bounding_set, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_no_new_privs, unshare_unsafe,
};

use super::{Done, while_};
use crate::bounds::{Network, ProcessNamespace};

/// What a command that runs as root may still do: to be root to files and to its own processes. Everything else could undo its bounds,
/// or reach the system beneath them.
const LEFT_TO_ROOT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);
/// More than the system has; it refuses the first that it does not know.
const MOST_CAPABILITIES: u32 = 64;

/// What the kinds of namespaces are called that can be wanted.
const NAMESPACES: [(UnshareFlags, &str); 5] = [
    (UnshareFlags::NEWUSER, "user"),
    (UnshareFlags::NEWNS, "mount"),
    (UnshareFlags::NEWIPC, "IPC"),
    (UnshareFlags::NEWPID, "PID"),
    (UnshareFlags::NEWNET, "network"),
];

/// Leaves the keeper's mounts, and its network if that is to be closed, for copies of them, and what it shares with other processes (System V
/// memory, queues) for nothing. Children of this process are in a PID namespace of their own, if that is wanted.
///
/// Whoever may do so does just that. Everybody else needs a user namespace first, in which they are what they were.
pub(super) fn leave(network: Network, processes: ProcessNamespace) -> Done {
    let mut wanted = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    if network == Network::Closed {
        wanted |= UnshareFlags::NEWNET;
    }
    if processes == ProcessNamespace::Own {
        wanted |= UnshareFlags::NEWPID;
    }
    match unshare(wanted) {
        Err(Errno::PERM) => as_an_ordinary_user(wanted)?,
        left => left.map_err(while_(making(wanted)))?,
    }
    // Nothing that is mounted from here on shows anywhere else.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(while_("making the mounts private"))?;
    match network {
        Network::Open => Ok(()),
        Network::Closed => raise_loopback().map_err(while_("raising the loopback")),
    }
}

fn as_an_ordinary_user(wanted: UnshareFlags) -> Done {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let wanted = wanted | UnshareFlags::NEWUSER;
    unshare(wanted).map_err(while_(making(wanted)))?;
    let said = |file: &'static str| while_::<io::Error>(format!("writing {file}"));
    // The system wants to know that no group will be dropped before it takes a map of groups from an ordinary user.
    fs::write("/proc/self/setgroups", "deny").map_err(said("/proc/self/setgroups"))?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(said("/proc/self/uid_map"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(said("/proc/self/gid_map"))
}

/// What was tried, in words for people: the system makes all of the namespaces or none, and does not say which it refused.
fn making(wanted: UnshareFlags) -> String {
    let kinds = NAMESPACES.iter().filter(|(flag, _)| wanted.contains(*flag)).map(|(_, kind)| *kind);
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    match kinds.rsplit_once(", ") {
        Some((others, last)) => format!("making {others} and {last} namespaces"),
        None => format!("making a {kinds} namespace"),
    }
}

#[allow(unsafe_code, reason = "to leave some things is unsafe, such as the table of open files")]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: these flags are of namespaces alone, and this process has one thread.
    unsafe { unshare_unsafe(flags) }
}

/// A network namespace begins with a loopback that is down.
#[allow(unsafe_code, reason = "the library has no call that raises an interface")]
fn raise_loopback() -> io::Result<()> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: all zeros is a valid request; the name ends with a zero; the system writes nothing beyond the request.
    let failed = unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[..2].copy_from_slice(&[b'l'.cast_signed(), b'o'.cast_signed()]);
        request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
        libc::ioctl(std::os::fd::AsRawFd::as_raw_fd(&socket), libc::SIOCSIFFLAGS, &raw const request) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives up every right that nothing in the bounds needs. What is given up so, no program that is executed later gets back.
pub(super) fn drop_privileges() -> Done {
    for number in 0..MOST_CAPABILITIES {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if LEFT_TO_ROOT.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The system has no more of them.
            Err(Errno::INVAL) => break,
            Err(error) => match capability_is_in_bounding_set(capability) {
                Ok(false) => {}
                _ => return Err(while_(format!("giving up the capability {number}"))(error)),
            },
        }
    }
    clear_ambient_capability_set().map_err(while_("giving up the ambient capabilities"))?;
    set_no_new_privs(true).map_err(while_("giving up setuid programs"))
}
