//! Placeholders: harmless files at paths that a command must not create.
//!
//! Several commands may need the same placeholder. Each keeper holds a shared lock on the file. At its end it removes
//! the file only if it gets an exclusive lock, because removing a mount point drops the mounts on it in every
//! namespace. A child shares the lock until it executes the command.
//!
//! Orphans of a command have the mounts but no lock. In a PID namespace, their keeper stays and holds it for them.
//! Otherwise, or if the keeper can't kill them, the file's mode marks it as one that stays until the next boot.

use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, SystemTime};

use longhaul_protocol::PrintablePath;
use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, ResolveFlags, flock, linkat, mkdirat, openat, openat2,
    unlinkat,
};
use rustix::io::Errno;
use rustix::process::{WaitOptions, getpid, wait};

use super::{SandboxResult, context};
use crate::bounds::Placeholder;

/// Attempts to create a placeholder that other keepers remove at the same time, and the time between them.
const MAX_ATTEMPTS: usize = 100;
const RETRY_INTERVAL: Duration = Duration::from_millis(2);
/// The mode of a placeholder that stays until the next boot.
const PERMANENT_MODE: u32 = 0o444;
const NORMAL_MODE: u32 = 0o644;

/// The placeholders that this keeper has locked.
#[derive(Debug, Default)]
pub(in crate::process) struct Placeholders {
    held: Vec<(Placeholder, File)>,
}

impl Placeholders {
    /// Creates the missing placeholders. If one can't be created, removes the others.
    pub(in crate::process) fn make(placeholders: &[Placeholder]) -> SandboxResult<Self> {
        let mut made = Self::default();
        for placeholder in placeholders {
            match make_one(placeholder) {
                Ok(file) => made.held.extend(file.map(|file| (placeholder.clone(), file))),
                Err(error) => {
                    made.remove();
                    return Err(context(format!("making {}", placeholder.at.printable()))(error));
                }
            }
        }
        Ok(made)
    }

    pub(in crate::process) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Removes the placeholders that no other keeper has locked. If the command has orphans, all of them stay until
    /// the next boot.
    pub(in crate::process) fn remove(self) {
        let has_children = has_children();
        for (placeholder, file) in self.held {
            // A placeholder that stays does no harm, and the next keeper that locks it tries again.
            if has_children {
                let _ = file.set_permissions(Permissions::from_mode(PERMANENT_MODE));
            } else {
                drop(file);
                let _ = remove_file(&placeholder);
            }
        }
    }
}

/// Creates a placeholder, unless it exists. A file that may be removed later is locked.
fn make_one(placeholder: &Placeholder) -> io::Result<Option<File>> {
    match &placeholder.text {
        None => make_folder(&placeholder.at).map(|()| None),
        Some(text) => hold_file(&placeholder.at, text),
    }
}

/// Whether the command has orphans.
fn has_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// The parent folder of a path, opened through no symbolic link, and the path's name in it.
fn parent(path: &Path) -> io::Result<(std::os::fd::OwnedFd, &std::ffi::OsStr)> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok((openat2(CWD, parent, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?, name))
}

fn make_folder(path: &Path) -> io::Result<()> {
    let (parent, name) = parent(path)?;
    match mkdirat(&parent, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        // If the user may not create it, neither may the command.
        Err(Errno::ACCESS | Errno::ROFS) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Creates a file, unless it exists, and locks it. `None` if the existing file is no placeholder and has to stay, or
/// if it can't be created.
fn hold_file(path: &Path, text: &str) -> io::Result<Option<File>> {
    for _ in 0..MAX_ATTEMPTS {
        let (parent, name) = parent(path)?;
        let mut file = match open(&parent, name) {
            Ok(file) => file,
            Err(Errno::NOENT) => match make_file(&parent, name, text) {
                Ok(()) => continue,
                Err(Errno::ACCESS | Errno::ROFS) => return Ok(None),
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) if !is_at(&file, path) => continue,
            Ok(()) => return Ok(has_text(&mut file, text)?.then_some(file)),
            Err(Errno::WOULDBLOCK) => std::thread::sleep(RETRY_INTERVAL),
            // A file system without locks. The keeper can't find out when to remove the file, so it stays.
            Err(_) => return Ok(None),
        }
    }
    Err(Errno::WOULDBLOCK.into())
}

fn open(parent: &std::os::fd::OwnedFd, name: &std::ffi::OsStr) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty()).map(File::from)
}

/// Creates a file atomically, because other programs may read it at any time.
fn make_file(parent: &std::os::fd::OwnedFd, name: &std::ffi::OsStr, text: &str) -> rustix::io::Result<()> {
    let partial = format!(".longhaul-{}", getpid().as_raw_nonzero());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let _ = unlinkat(parent, &partial, AtFlags::empty());
    let file = openat(parent, &partial, flags, Mode::from_raw_mode(NORMAL_MODE))?;
    let written = File::from(file).write_all(text.as_bytes());
    let linked = match written {
        Ok(()) => linkat(parent, &partial, parent, name, AtFlags::empty()),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    };
    unlinkat(parent, &partial, AtFlags::empty())?;
    match linked {
        // Another keeper was faster.
        Err(Errno::EXIST) => Ok(()),
        linked => linked,
    }
}

/// Whether a path still names this file.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    let (Ok(file), Ok(there)) = (file.metadata(), std::fs::symlink_metadata(path)) else { return false };
    identity(file) == identity(there)
}

fn has_text(file: &mut File, text: &str) -> io::Result<bool> {
    let mut found = Vec::new();
    file.take(text.len() as u64 + 1).read_to_end(&mut found)?;
    Ok(found == text.as_bytes())
}

/// Whether no process needs the file any more. A file that was marked before this boot has no processes left.
fn is_removable(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    if metadata.mode() & 0o200 != 0 {
        return Ok(true);
    }
    let uptime = std::fs::read_to_string("/proc/uptime")?;
    let seconds = uptime.split('.').next().and_then(|seconds| seconds.parse().ok());
    let started = SystemTime::now().checked_sub(Duration::from_secs(seconds.unwrap_or(u64::MAX)));
    let marked = u64::try_from(metadata.ctime()).map_err(io::Error::other)?;
    Ok(started.is_some_and(|started| started > SystemTime::UNIX_EPOCH + Duration::from_secs(marked)))
}

fn remove_file(placeholder: &Placeholder) -> io::Result<()> {
    let (parent, name) = parent(&placeholder.at)?;
    let mut file = open(&parent, name)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    let is_ours = has_text(&mut file, placeholder.text.as_deref().unwrap_or_default())?;
    if is_ours && is_removable(&file)? && is_at(&file, &placeholder.at) {
        unlinkat(&parent, name, AtFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "placeholders_tests.rs"]
mod tests;
