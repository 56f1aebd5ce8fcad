//! Removes a folder that a command has filled, whatever it contains.
//!
//! A command can nest folders so deep that recursion would overflow the stack and paths would be too long. So nothing
//! here recurses or uses paths: the entries of a sub-folder are moved up into the top folder until every sub-folder
//! is empty. That needs only two open folders, whatever the depth. Links are removed and never followed. A folder
//! without permissions for its owner, as in a module cache, gets them first.
//!
//! `std::fs::remove_dir_all` is not enough. It recurses with one open folder for each level, which fails at 10,000
//! levels, and a chmod pass before it would have to walk the same depth.

use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmod, fchmod, openat, renameat, unlinkat};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

/// A process may keep filling the folder. The next cleanup removes what is left after this time.
const REMOVAL_TIME_LIMIT: Duration = Duration::from_secs(60);

/// Removes a folder with its content. Entries that can't be removed stay, with the folders above them.
pub(crate) fn remove_folder(path: &Path) -> Result<()> {
    let top = match open_with_chmod(CWD, path) {
        Ok(top) => top,
        // A link, or a file.
        Err(Errno::LOOP | Errno::NOTDIR) => return unlinkat(CWD, path, AtFlags::empty()),
        Err(error) => return Err(error),
    };
    let due = Instant::now() + REMOVAL_TIME_LIMIT;
    let mut removal = TreeRemoval { top: top.as_fd(), prefix: unique_prefix(), moved: 0 };
    while Instant::now() < due && removal.pass(due)? > 0 {}
    unlinkat(CWD, path, AtFlags::REMOVEDIR)
}

struct TreeRemoval<'a> {
    top: BorrowedFd<'a>,
    /// The prefix of the names of moved folders.
    prefix: String,
    moved: u64,
}

impl TreeRemoval<'_> {
    /// Goes through the folder once. Returns the number of changes.
    fn pass(&mut self, due: Instant) -> Result<u64> {
        let mut changed = 0;
        for entry in entries(self.top)? {
            if Instant::now() >= due {
                break;
            }
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if is_dots(name) {
                continue;
            }
            match remove_with_chmod(self.top, name) {
                Ok(()) => changed += 1,
                Err(Errno::NOTEMPTY | Errno::EXIST) => changed += self.flatten(name, due),
                Err(_) => {}
            }
        }
        Ok(changed)
    }

    /// Empties a sub-folder by one level: moves its folders up and removes everything else.
    fn flatten(&mut self, name: &CStr, due: Instant) -> u64 {
        let Ok(folder) = open_with_chmod(self.top, name) else { return 0 };
        let Ok(entries) = entries(folder.as_fd()) else { return 0 };
        let mut changed = 0;
        for entry in entries {
            let Ok(entry) = entry else { break };
            let inner = entry.file_name();
            if is_dots(inner) {
                continue;
            }
            let is_done = match remove_with_chmod(folder.as_fd(), inner) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => self.move_up(folder.as_fd(), inner),
                removed => removed.is_ok(),
            };
            changed += u64::from(is_done);
            if Instant::now() >= due {
                break;
            }
        }
        changed + u64::from(unlinkat(self.top, name, AtFlags::REMOVEDIR).is_ok())
    }

    fn move_up(&mut self, from: BorrowedFd<'_>, name: &CStr) -> bool {
        self.moved += 1;
        let to = format!("{}{}", self.prefix, self.moved);
        match renameat(from, name, self.top, &to) {
            // Moving a folder changes its `..`, so the folder itself must be writable.
            Err(Errno::ACCESS) => {
                grant_owner(from, name).is_ok() && renameat(from, name, self.top, &to).is_ok()
            }
            renamed => renamed.is_ok(),
        }
    }
}

/// Like [`remove`], but also from a folder that is not writable.
fn remove_with_chmod(within: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    match remove(within, name) {
        Err(Errno::ACCESS) => {
            fchmod(within, Mode::RWXU)?;
            remove(within, name)
        }
        removed => removed,
    }
}

/// Removes a file, a link or an empty folder.
fn remove(within: BorrowedFd<'_>, name: &CStr) -> Result<()> {
    match unlinkat(within, name, AtFlags::empty()) {
        // It is a folder. Systems report that in different ways.
        Err(Errno::ISDIR | Errno::PERM) => unlinkat(within, name, AtFlags::REMOVEDIR),
        removed => removed,
    }
}

fn entries(folder: BorrowedFd<'_>) -> Result<Dir> {
    match Dir::read_from(folder) {
        Err(Errno::ACCESS) => {
            fchmod(folder, Mode::RWXU)?;
            Dir::read_from(folder)
        }
        entries => entries,
    }
}

/// Opens a folder, even one that is not readable.
fn open_with_chmod(within: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<OwnedFd> {
    match open(within, name) {
        Err(Errno::ACCESS) => {
            grant_owner(within, name)?;
            open(within, name)
        }
        opened => opened,
    }
}

/// Gives the owner all permissions on a folder.
fn grant_owner(within: BorrowedFd<'_>, name: impl Arg) -> Result<()> {
    // `O_PATH` needs no permission. The handle stays the same folder, even if another file gets its name meanwhile.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = openat(within, name, flags, Mode::empty())?;
    chmod(format!("/proc/self/fd/{}", held.as_raw_fd()), Mode::RWXU)
}

fn open(within: impl AsFd, name: impl Arg) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(within, name, flags, Mode::empty())
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// A unique prefix, which can't clash with names from an interrupted removal.
fn unique_prefix() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("going-{}-{:x}-", std::process::id(), since.as_nanos())
}

/// When a folder or a direct entry of it was last changed. `None` if it can't be read.
pub(crate) fn changed_at(folder: &Path) -> Option<SystemTime> {
    let changed = |path: &Path| fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let inner = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| changed(&entry.path()).ok());
    let own = changed(folder).ok()?;
    Some(inner.fold(own, SystemTime::max))
}

#[cfg(test)]
#[path = "remove_tree_tests.rs"]
mod tests;
