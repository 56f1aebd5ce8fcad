//! Removing a folder that a command has filled, whatever it has put there.
//!
//! A command can nest folders deeper than any stack goes and any path is long, so nothing here calls itself and nothing is named
//! by a path: what stands in a sub-folder is moved up into the folder itself, until every sub-folder is empty. That takes two
//! open folders, however deep it goes. Links are removed and never followed.
//!
//! A folder may be closed to its owner, too: caches of modules are, so that nobody changes them. One that refuses is opened up first.

use std::ffi::CStr;
use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, chmod, fchmod, openat, renameat, unlinkat};
use rustix::io::{Errno, Result};
use rustix::path::Arg;

/// Somebody may go on filling it meanwhile. What is left after so long is for the next time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Removes a folder and all that is in it. What can't be removed stays, and so does what it is in.
pub(crate) fn remove_folder(path: &Path) -> Result<()> {
    let top = match open_closed(CWD, path) {
        Ok(top) => top,
        // A link, or a file.
        Err(Errno::LOOP | Errno::NOTDIR) => return unlinkat(CWD, path, AtFlags::empty()),
        Err(error) => return Err(error),
    };
    let due = Instant::now() + PATIENCE;
    let mut emptying = Emptying { top: top.as_fd(), prefix: prefix(), moved: 0 };
    while Instant::now() < due && emptying.pass(due)? > 0 {}
    unlinkat(CWD, path, AtFlags::REMOVEDIR)
}

/// What is needed to empty a folder.
struct Emptying<'a> {
    top: BorrowedFd<'a>,
    /// What the names begin with that moved folders get.
    prefix: String,
    moved: u64,
}

impl Emptying<'_> {
    /// Goes through the folder once, and says how much that has changed.
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
            match remove_from_closed(self.top, name) {
                Ok(()) => changed += 1,
                Err(Errno::NOTEMPTY | Errno::EXIST) => changed += self.raise_from(name, due),
                Err(_) => {}
            }
        }
        Ok(changed)
    }

    /// Empties a sub-folder by one level: its folders move up, all else goes.
    fn raise_from(&mut self, name: &CStr, due: Instant) -> u64 {
        let Ok(folder) = open_closed(self.top, name) else { return 0 };
        let Ok(entries) = entries(folder.as_fd()) else { return 0 };
        let mut changed = 0;
        for entry in entries {
            let Ok(entry) = entry else { break };
            let inner = entry.file_name();
            if is_dots(inner) {
                continue;
            }
            let is_done = match remove_from_closed(folder.as_fd(), inner) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => self.raise(folder.as_fd(), inner),
                removed => removed.is_ok(),
            };
            changed += u64::from(is_done);
            if Instant::now() >= due {
                break;
            }
        }
        changed + u64::from(unlinkat(self.top, name, AtFlags::REMOVEDIR).is_ok())
    }

    fn raise(&mut self, from: BorrowedFd<'_>, name: &CStr) -> bool {
        self.moved += 1;
        let to = format!("{}{}", self.prefix, self.moved);
        match renameat(from, name, self.top, &to) {
            // A folder that gets another one above it is written itself.
            Err(Errno::ACCESS) => open_up(from, name).is_ok() && renameat(from, name, self.top, &to).is_ok(),
            renamed => renamed.is_ok(),
        }
    }
}

/// Removes a file, a link or an empty folder, also from a folder in which nothing may be changed.
fn remove_from_closed(within: BorrowedFd<'_>, name: &CStr) -> Result<()> {
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
        // It is a folder: systems say so in different ways.
        Err(Errno::ISDIR | Errno::PERM) => unlinkat(within, name, AtFlags::REMOVEDIR),
        removed => removed,
    }
}

/// What is in a folder. To list it, it is entered.
fn entries(folder: BorrowedFd<'_>) -> Result<Dir> {
    match Dir::read_from(folder) {
        Err(Errno::ACCESS) => {
            fchmod(folder, Mode::RWXU)?;
            Dir::read_from(folder)
        }
        entries => entries,
    }
}

/// Opens a folder, also one that nobody may read.
fn open_closed(within: BorrowedFd<'_>, name: impl Arg + Copy) -> Result<OwnedFd> {
    match open(within, name) {
        Err(Errno::ACCESS) => {
            open_up(within, name)?;
            open(within, name)
        }
        opened => opened,
    }
}

/// Lets the owner of a folder do everything there.
fn open_up(within: BorrowedFd<'_>, name: impl Arg) -> Result<()> {
    // Whoever may not read it can still hold it, and what is held is a folder, whatever gets its name meanwhile.
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

/// Another one each time, so that nothing gets a name that something has from a pass that was broken off.
fn prefix() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("going-{}-{:x}-", std::process::id(), since.as_nanos())
}

/// When a folder, or what stands in it directly, was changed last. Nothing if nobody can tell.
pub(crate) fn changed_at(folder: &Path) -> Option<SystemTime> {
    let changed = |path: &Path| fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let inner = fs::read_dir(folder).ok()?.flatten().filter_map(|entry| changed(&entry.path()).ok());
    let own = changed(folder).ok()?;
    Some(inner.fold(own, SystemTime::max))
}

#[cfg(test)]
#[path = "remove_tree_tests.rs"]
mod tests;
