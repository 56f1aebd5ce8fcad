//! Overlays (overlayfs): folders that a command changes in its own layer.
//!
//! An overlay costs more than all other mounts together. So a single overlay over a common folder serves all of its
//! parts that the command may write: it is mounted where a mask will cover it, and the parts are cloned from there.
//! This fails if other file systems are mounted in that folder, because an ordinary user may not clone what they
//! hide. Then each part gets its own overlay. The last fallback is an empty folder.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use longhaul_protocol::PrintablePath;
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, OpenTreeFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string,
    fsmount, fsopen, open_tree,
};
use rustix::process::getpid;

use super::mounts::{NOSUID_NODEV, find, mount_at, set};
use super::{PRIVATE, SandboxResult, context};
use crate::bounds::Overlay;

const CHANGES: &str = "changes";
const SCRATCH: &str = "scratch";
const INSTEAD: &str = "instead";

/// An overlay and its folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layers {
    overlay: Overlay,
    /// The `workdir` of overlayfs. Each mount has its own: sharing one is undefined behaviour.
    scratch: PathBuf,
}

/// A part that a command may write, and its mount.
pub(super) type Part = (PathBuf, OwnedFd);

impl Layers {
    pub(super) fn prepare(overlay: &Overlay) -> SandboxResult<Self> {
        let scratch = scratch(overlay);
        let said = |folder: &Path| context::<io::Error>(format!("making {}", folder.printable()));
        for folder in [&overlay.kept_in.join(CHANGES), &scratch] {
            make(folder).map_err(said(folder))?;
        }
        Ok(Self { overlay: overlay.clone(), scratch })
    }

    /// The mounts of all parts. `covered` is a folder that a later mount will cover.
    pub(super) fn mount(&self, covered: Option<&Path>) -> io::Result<Vec<Part>> {
        let together = covered.ok_or(Errno::NOENT.into()).and_then(|covered| self.mount_together(covered));
        match together {
            Ok(parts) => Ok(parts),
            Err(_) => {
                self.overlay.at.iter().enumerate().map(|(index, at)| self.mount_alone(index, at)).collect()
            }
        }
    }

    fn mount_together(&self, covered: &Path) -> io::Result<Vec<Part>> {
        let Overlay { over, at, kept_in } = &self.overlay;
        let whole = overlay(over, &kept_in.join(CHANGES), &self.scratch)?;
        mount_at(&whole, covered)?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let part = |at: &PathBuf| {
            let inside = at.strip_prefix(over).map_err(io::Error::other)?;
            let part = match inside.as_os_str().is_empty() {
                true => open_tree(&whole, "", flags | OpenTreeFlags::AT_EMPTY_PATH)?,
                false => open_tree(&whole, inside, flags | OpenTreeFlags::AT_SYMLINK_NOFOLLOW)?,
            };
            Ok((at.clone(), part))
        };
        at.iter().map(part).collect()
    }

    fn mount_alone(&self, index: usize, at: &Path) -> io::Result<Part> {
        let Overlay { over, kept_in, .. } = &self.overlay;
        let inside = at.strip_prefix(over).map_err(io::Error::other)?;
        let (changes, scratch) = (kept_in.join(CHANGES).join(inside), self.scratch.join(index.to_string()));
        let layered = || {
            make(&changes)?;
            make(&scratch)?;
            overlay(at, &changes, &scratch)
        };
        // A file can't be a layer.
        if at.is_dir()
            && let Ok(mount) = layered()
        {
            return Ok((at.to_owned(), mount));
        }
        let instead = kept_in.join(INSTEAD).join(inside);
        match at.is_dir() {
            true => make(&instead)?,
            false => make_file(&instead)?,
        }
        let flags =
            OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
        let mount = open_tree(find(&instead)?.ok_or(Errno::NOENT)?, "", flags)?;
        set(&mount, NOSUID_NODEV)?;
        Ok((at.to_owned(), mount))
    }
}

/// Removes the `workdir`s of a keeper's overlays. The command's changes stay.
pub(in crate::process) fn clean_up(overlays: &[Overlay]) {
    for overlay in overlays {
        let _ = remove(&scratch(overlay));
    }
}

/// The keeper's pid is part of the path. The child computes it before the fork, so both get the same path.
fn scratch(overlay: &Overlay) -> PathBuf {
    overlay.kept_in.join(SCRATCH).join(getpid().as_raw_nonzero().to_string())
}

fn make(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(PRIVATE).create(folder)
}

fn make_file(file: &Path) -> io::Result<()> {
    file.parent().map_or(Ok(()), make)?;
    OpenOptions::new().create(true).append(true).mode(PRIVATE & 0o666).open(file).map(drop)
}

/// Removes a folder. Overlayfs creates folders that even their owner may not list.
fn remove(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(PRIVATE))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => remove(&entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_dir(folder)
}

/// An overlayfs of `changes` on top of `over`, not mounted yet.
///
/// It is volatile, because otherwise each command's end would wait for a sync of the whole disk. Its folders are
/// passed as file descriptors, so symbolic links and special characters in a path do not matter.
fn overlay(over: &Path, changes: &Path, scratch: &Path) -> io::Result<OwnedFd> {
    let open = |folder: &Path| find(folder)?.ok_or_else(|| io::Error::from(Errno::NOENT));
    let folders = [("lowerdir", open(over)?), ("upperdir", open(changes)?), ("workdir", open(scratch)?)];
    let system = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (option, folder) in &folders {
        fsconfig_set_string(&system, *option, format!("/proc/self/fd/{}", folder.as_raw_fd()))?;
    }
    fsconfig_set_string(&system, "index", "off")?;
    fsconfig_set_flag(&system, "userxattr")?;
    fsconfig_set_flag(&system, "volatile")?;
    fsconfig_create(&system)?;
    Ok(fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, NOSUID_NODEV)?)
}
