//! Landlock: what a process and its children may do with files, and which processes they may signal.
//!
//! The crate `landlock` drops the rights that the kernel doesn't know yet, and those of folders where a rule is for a file.

use std::io;
use std::path::Path;
use std::ptr;

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, make_bitflags,
};
use longhaul_protocol::PrintablePath;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

use super::SandboxResult;
use crate::Bounds;

const READING: BitFlags<AccessFs> = make_bitflags!(AccessFs::{Execute | ReadFile | ReadDir});
const DEVICES: BitFlags<AccessFs> =
    make_bitflags!(AccessFs::{ReadFile | WriteFile | ReadDir | Truncate | IoctlDev});
/// Creating a device file would give access to the device.
const NOT_FOR_WRITING: BitFlags<AccessFs> = make_bitflags!(AccessFs::{MakeChar | MakeBlock | IoctlDev});
/// The rights of this version are refused where no rule allows them.
const HANDLED_VERSION: ABI = ABI::V5;

/// The kernel's version of Landlock (its ABI), which the crate doesn't tell.
#[allow(unsafe_code, reason = "the library has no such call")]
pub(super) fn version() -> io::Result<u32> {
    const VERSION: u32 = 1;
    // SAFETY: with this flag nothing is read and nothing is made.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, ptr::null::<u64>(), 0_usize, VERSION) };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

/// Restricts this process and its children to the paths that the bounds allow.
pub(super) fn restrict(bounds: &Bounds) -> SandboxResult {
    let handled = AccessFs::from_all(HANDLED_VERSION);
    let writing = handled & !NOT_FOR_WRITING;
    let private = bounds.private.iter().map(|private| private.at.clone()).collect();
    let layered = bounds.overlays.iter().flat_map(|overlay| overlay.at.clone()).collect();
    let kinds = [
        (&bounds.read, READING),
        (&bounds.emptied, AccessFs::ReadFile.into()),
        (&bounds.write, writing),
        (&private, writing),
        (&layered, writing),
        (&bounds.devices, DEVICES),
    ];
    let mut rules = create(handled).map_err(|error| format!("making Landlock's rules: {error}"))?;
    for (paths, allowed) in kinds {
        for path in paths {
            rules = allow(rules, path, allowed)
                .map_err(|error| format!("allowing {}: {error}", path.printable()))?;
        }
    }
    let set = rules.restrict_self().map_err(|error| format!("setting Landlock's rules: {error}"))?;
    if set.ruleset == RulesetStatus::NotEnforced {
        return Err("setting Landlock's rules: this kernel has no Landlock".to_owned());
    }
    Ok(())
}

/// Rules that allow nothing yet: no access to files, no signals to and no abstract sockets of processes outside.
fn create(handled: BitFlags<AccessFs>) -> Result<RulesetCreated, RulesetError> {
    Ruleset::default().handle_access(handled)?.scope(Scope::AbstractUnixSocket | Scope::Signal)?.create()
}

/// Adds a rule for a path, if it exists and leads through no symbolic link.
fn allow(
    rules: RulesetCreated,
    path: &Path,
    allowed: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(place) => rules.add_rule(PathBeneath::new(place, allowed)),
        Err(_) => Ok(rules),
    }
}
