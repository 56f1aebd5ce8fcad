//! Landlock: what a process and its children may do with files, and which processes they may signal.
//!
//! It makes the system calls itself. The crate `landlock` hides the kernel's version, which the probe reports and the
//! rules depend on. It would only save the three calls at the end of this file.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::ptr;

use longhaul_protocol::PrintablePath;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};

use super::{SandboxResult, context};
use crate::Bounds;

/// `LANDLOCK_ACCESS_FS_*`.
mod access {
    pub(super) const EXECUTE: u64 = 1;
    pub(super) const WRITE_FILE: u64 = 1 << 1;
    pub(super) const READ_FILE: u64 = 1 << 2;
    pub(super) const READ_DIR: u64 = 1 << 3;
    pub(super) const MAKE_CHAR: u64 = 1 << 6;
    pub(super) const MAKE_BLOCK: u64 = 1 << 11;
    pub(super) const TRUNCATE: u64 = 1 << 14;
    pub(super) const IOCTL_DEV: u64 = 1 << 15;
    /// The rights that apply to files, not only to folders.
    pub(super) const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
    pub(super) const READING: u64 = EXECUTE | READ_FILE | READ_DIR;
    pub(super) const DEVICES: u64 = READ_FILE | WRITE_FILE | READ_DIR | TRUNCATE | IOCTL_DEV;
}

/// `LANDLOCK_SCOPE_*`: no signals to processes outside the sandbox, and none of their abstract sockets.
const SCOPE_ABSTRACT_SOCKETS: u64 = 1;
const SCOPE_SIGNALS: u64 = 1 << 1;
const VERSION: u32 = 1;
const PATH_BENEATH: u32 = 1;

/// `struct landlock_ruleset_attr`. An older kernel accepts fields that it doesn't know, if they are zero.
#[repr(C)]
struct Handled {
    files: u64,
    network: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

/// All file access rights of this version of Landlock.
fn known(version: u32) -> u64 {
    let bits = match version {
        0 | 1 => 13,
        2 => 14,
        3 | 4 => 15,
        _ => 16,
    };
    (1 << bits) - 1
}

/// The kernel's version of Landlock (its ABI).
#[allow(unsafe_code, reason = "the library has no such call")]
pub(super) fn version() -> io::Result<u32> {
    // SAFETY: with this flag the system reads no memory and creates nothing.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<Handled>(), 0_usize, VERSION) };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

/// Restricts this process and its children to the paths that the bounds allow.
pub(super) fn restrict(bounds: &Bounds) -> SandboxResult {
    let version = version().map_err(context("looking for Landlock"))?;
    let known = known(version);
    let rules = create(version, known).map_err(context("making Landlock's rules"))?;
    // Creating a device file would give access to the device.
    let writing = known & !(access::MAKE_CHAR | access::MAKE_BLOCK | access::IOCTL_DEV);
    let private = bounds.private.iter().map(|private| private.at.clone()).collect();
    let layered = bounds.overlays.iter().flat_map(|overlay| overlay.at.clone()).collect();
    let kinds = [
        (&bounds.read, access::READING),
        (&bounds.emptied, access::READ_FILE),
        (&bounds.write, writing),
        (&private, writing),
        (&layered, writing),
        (&bounds.devices, access::DEVICES),
    ];
    for (paths, allowed) in kinds {
        for path in paths {
            allow(&rules, path, allowed & known)
                .map_err(context(format!("allowing {}", path.printable())))?;
        }
    }
    restrict_self(&rules).map_err(context("setting Landlock's rules"))
}

/// Adds a rule for a path, if it exists and goes through no symbolic link.
fn allow(rules: &OwnedFd, path: &Path, allowed: u64) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let Ok(place) = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) else {
        return Ok(());
    };
    let is_folder = FileType::from_raw_mode(fstat(&place)?.st_mode) == FileType::Directory;
    let allowed = if is_folder { allowed } else { allowed & access::OF_FILES };
    if allowed == 0 { Ok(()) } else { add(rules, &place, allowed) }
}

#[allow(unsafe_code, reason = "the library has no such call")]
fn create(version: u32, files: u64) -> io::Result<OwnedFd> {
    let scoped = if version >= 6 { SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS } else { 0 };
    let handled = Handled { files, network: 0, scoped };
    // SAFETY: the system reads this struct, of this size, and returns a new descriptor that only this call owns.
    unsafe {
        let made =
            libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size_of::<Handled>(), 0_u32);
        match i32::try_from(made) {
            Ok(file) if file >= 0 => Ok(OwnedFd::from_raw_fd(file)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

#[allow(unsafe_code, reason = "the library has no such call")]
fn add(rules: &OwnedFd, place: &OwnedFd, allowed: u64) -> io::Result<()> {
    let rule = PathBeneath { allowed, parent: place.as_raw_fd() };
    // SAFETY: the system reads this struct; both files are open.
    let failed = unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), PATH_BENEATH, &raw const rule, 0_u32)
            != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[allow(unsafe_code, reason = "the library has no such call")]
fn restrict_self(rules: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: a plain system call on an open file.
    let failed = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0_u32) != 0 };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}
