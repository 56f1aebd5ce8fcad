//! Namespaces and capabilities: gives the command its own view of the system, and removes its rights to undo that.

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

use super::{SandboxResult, context};
use crate::bounds::{Network, ProcessNamespace};

/// The capabilities that a command keeps if it runs as root: over files and its own processes. Any other capability
/// could undo its bounds, or reach the system beneath them.
const KEPT_CAPABILITIES: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);
/// More than any kernel has. The kernel refuses the first capability that it does not know.
const MAX_CAPABILITIES: u32 = 64;

/// The names of namespaces, for messages.
const NAMESPACES: [(UnshareFlags, &str); 5] = [
    (UnshareFlags::NEWUSER, "user"),
    (UnshareFlags::NEWNS, "mount"),
    (UnshareFlags::NEWIPC, "IPC"),
    (UnshareFlags::NEWPID, "PID"),
    (UnshareFlags::NEWNET, "network"),
];

/// Moves this process to new mount and IPC namespaces, to a new network namespace if the network is closed, and its
/// children to a new PID namespace if that is wanted.
///
/// Without the privilege for that, it creates a user namespace first, with the same uid and gid.
pub(super) fn unshare_namespaces(network: Network, processes: ProcessNamespace) -> SandboxResult {
    let mut wanted = UnshareFlags::NEWNS | UnshareFlags::NEWIPC;
    if network == Network::Closed {
        wanted |= UnshareFlags::NEWNET;
    }
    if processes == ProcessNamespace::Own {
        wanted |= UnshareFlags::NEWPID;
    }
    match unshare(wanted) {
        Err(Errno::PERM) => unshare_with_user_namespace(wanted)?,
        left => left.map_err(context(unshare_title(wanted)))?,
    }
    // Mounts from here on must not propagate to other namespaces.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(context("making the mounts private"))?;
    match network {
        Network::Open => Ok(()),
        Network::Closed => raise_loopback().map_err(context("raising the loopback")),
    }
}

fn unshare_with_user_namespace(wanted: UnshareFlags) -> SandboxResult {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let wanted = wanted | UnshareFlags::NEWUSER;
    unshare(wanted).map_err(context(unshare_title(wanted)))?;
    let said = |file: &'static str| context::<io::Error>(format!("writing {file}"));
    // The kernel accepts a gid map from an ordinary user only after setgroups is denied.
    fs::write("/proc/self/setgroups", "deny").map_err(said("/proc/self/setgroups"))?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1")).map_err(said("/proc/self/uid_map"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1")).map_err(said("/proc/self/gid_map"))
}

/// The attempted step, for messages. The kernel creates all of the namespaces or none, and does not say which one it
/// refused.
fn unshare_title(wanted: UnshareFlags) -> String {
    let kinds = NAMESPACES.iter().filter(|(flag, _)| wanted.contains(*flag)).map(|(_, kind)| *kind);
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    match kinds.rsplit_once(", ") {
        Some((others, last)) => format!("making {others} and {last} namespaces"),
        None => format!("making a {kinds} namespace"),
    }
}

#[allow(unsafe_code, reason = "some flags of unshare are unsafe, such as that for the table of open files")]
fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // SAFETY: these flags only concern namespaces, and this process has one thread.
    unsafe { unshare_unsafe(flags) }
}

/// Brings the loopback up, which is down in a new network namespace.
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

/// Drops every capability that the command doesn't need, and sets `no_new_privs`: no program executed later gets them back.
pub(super) fn drop_privileges() -> SandboxResult {
    for number in 0..MAX_CAPABILITIES {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if KEPT_CAPABILITIES.contains(capability) {
            continue;
        }
        match remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The kernel has no more capabilities.
            Err(Errno::INVAL) => break,
            Err(error) => match capability_is_in_bounding_set(capability) {
                Ok(false) => {}
                _ => return Err(context(format!("giving up the capability {number}"))(error)),
            },
        }
    }
    clear_ambient_capability_set().map_err(context("giving up the ambient capabilities"))?;
    set_no_new_privs(true).map_err(context("giving up setuid programs"))
}
