//! The temporary file that becomes the new file, under a name that says whose it is.
//!
//! It is locked while a write uses it. An unlocked one that has not changed for a while was left by a crash; the next
//! write in the folder removes it, if the folder may be written. Only a name exactly as we make it counts: users have
//! files that begin like ours.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use longhaul_protocol::CallId;
use rustix::fs::{AtFlags, FlockOperation, Gid, Mode, OFlags, RenameFlags, Stat, Uid};
use rustix::io::Errno;

use crate::display::display_name;
use crate::scope::{FileIdentity, ScopedFolder, ScopedPath};

const PREFIX: &str = ".longhaul-";

/// For this long after its last change a temporary file may be in use without a lock: after an exchange, the file that
/// came out has this name and is not locked.
const LEFTOVER_MIN_AGE: Duration = Duration::from_secs(60);

/// A folder with more entries is not searched for leftovers.
const MAX_SCANNED_ENTRIES: usize = 10_000;

/// The name of the temporary file of a call.
pub(super) fn name(call: CallId) -> OsString {
    format!("{PREFIX}{}", call.to_string().to_lowercase()).into()
}

/// A temporary file. Dropping it removes it, unless another program's file has its name by then.
pub(super) struct TemporaryFile<'a> {
    folder: &'a ScopedFolder,
    name: OsString,
    file: File,
    /// Whether its name now belongs to the file that was replaced.
    has_replaced: bool,
}

impl<'a> TemporaryFile<'a> {
    /// Creates an empty file, which only the owner can read. A leftover of the same call is replaced.
    pub(super) fn create(folder: &'a ScopedFolder, call: CallId, mode: Mode) -> io::Result<Self> {
        let name = name(call);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..8 {
            match rustix::fs::openat(folder.handle(), &name, flags, mode) {
                Ok(handle) => {
                    let file = File::from(handle);
                    if lock(&file) && is_named(folder, &name, &file) {
                        return Ok(Self { folder, name, file, has_replaced: false });
                    }
                }
                Err(Errno::EXIST) => remove_if_unlocked(folder, &name),
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::ResourceBusy, "another write of the same call goes on"))
    }

    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    pub(super) fn fill(&mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    pub(super) fn is_there(&self) -> bool {
        is_named(self.folder, &self.name, &self.file)
    }

    /// The identity of the file that has its name now.
    pub(super) fn now_under_its_name(&self) -> Option<FileIdentity> {
        let named = rustix::fs::statat(self.folder.handle(), &self.name, AtFlags::SYMLINK_NOFOLLOW);
        named.ok().map(|status| FileIdentity::from(&status))
    }

    /// Its name now belongs to the file that was replaced, which may be removed.
    pub(super) fn has_replaced(&mut self) {
        self.has_replaced = true;
    }

    /// Copies owner, mode and extended attributes of the file to replace. Set-user-id and set-group-id bits are
    /// dropped, as the system does when a program is written.
    pub(super) fn copy_metadata_from(&self, file: &File, status: &Stat) -> io::Result<()> {
        let own = rustix::fs::fstat(&self.file)?;
        if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid) {
            let (owner, group) = (Uid::from_raw(status.st_uid), Gid::from_raw(status.st_gid));
            rustix::fs::fchown(&self.file, Some(owner), Some(group))?;
        }
        copy_attributes(file, &self.file);
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(status.st_mode & 0o1777))?;
        Ok(())
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if self.has_replaced || self.is_there() {
            let _ = rustix::fs::unlinkat(self.folder.handle(), &self.name, AtFlags::empty());
        }
    }
}

/// Whether a name is exactly one that [`name`] makes.
fn is_ours(found: &OsStr) -> bool {
    let call = found.to_str().and_then(|found| found.strip_prefix(PREFIX)?.to_uppercase().parse().ok());
    call.is_some_and(|call| name(call) == found)
}

/// Removes the leftovers of crashes from the folder of a file that is about to be written.
pub(super) fn remove_leftovers(place: &ScopedPath, folder: &ScopedFolder) {
    remove_leftovers_older_than(place, folder, LEFTOVER_MIN_AGE);
}

fn remove_leftovers_older_than(place: &ScopedPath, folder: &ScopedFolder, age: Duration) {
    if !place.is_folder_writable() {
        return;
    }
    let Ok(found) = folder.names(MAX_SCANNED_ENTRIES) else { return };
    for name in found.names.iter().filter(|name| is_ours(name)) {
        let status = rustix::fs::statat(folder.handle(), name, AtFlags::SYMLINK_NOFOLLOW);
        if status.is_ok_and(|status| unchanged_for(&status) >= age) {
            remove_if_unlocked(folder, name);
        }
    }
}

#[allow(clippy::unnecessary_cast, reason = "these have other types on other systems")]
fn unchanged_for(status: &Stat) -> Duration {
    let changed = UNIX_EPOCH + Duration::from_secs(u64::try_from(status.st_ctime as i64).unwrap_or(0));
    SystemTime::now().duration_since(changed).unwrap_or_default()
}

/// Removes a call's leftover. The process that made it must be gone.
pub(super) fn discard(folder: &ScopedFolder, call: CallId) {
    remove_if_unlocked(folder, &name(call));
}

/// Renames a call's temporary file so that it is kept, and returns the new name.
pub(super) fn keep(folder: &ScopedFolder, call: CallId, beside: &OsStr) -> io::Result<String> {
    let mut kept = beside.to_owned();
    kept.push(format!(".kept-{}", call.to_string().to_lowercase()));
    rename_without_replacing(folder, &name(call), &kept)?;
    Ok(display_name(kept.as_bytes()))
}

/// Renames a file; an error if the new name is taken.
pub(super) fn rename_without_replacing(
    folder: &ScopedFolder,
    from: &OsStr,
    to: &OsStr,
) -> rustix::io::Result<()> {
    let handle = folder.handle();
    match rustix::fs::renameat_with(handle, from, handle, to, RenameFlags::NOREPLACE) {
        // Where the file system can't, a hard link does the same in two steps.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            rustix::fs::linkat(handle, from, handle, to, AtFlags::empty())?;
            rustix::fs::unlinkat(handle, from, AtFlags::empty())
        }
        other => other,
    }
}

fn remove_if_unlocked(folder: &ScopedFolder, name: &OsStr) {
    if let Ok((file, _)) = folder.open(name)
        && lock(&file)
        && is_named(folder, name, &file)
    {
        let _ = rustix::fs::unlinkat(folder.handle(), name, AtFlags::empty());
    }
}

/// `false` if another process holds the lock. Where there are no locks, it always succeeds.
fn lock(file: &File) -> bool {
    !matches!(rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive), Err(Errno::WOULDBLOCK))
}

/// Whether a name still belongs to this file.
fn is_named(folder: &ScopedFolder, name: &OsStr, file: &File) -> bool {
    let named = rustix::fs::statat(folder.handle(), name, AtFlags::SYMLINK_NOFOLLOW);
    let own = rustix::fs::fstat(file);
    matches!((named, own), (Ok(named), Ok(own)) if FileIdentity::from(&named) == FileIdentity::from(&own))
}

/// Copies access control lists and other attributes, as far as the system permits. Capabilities are not copied: they
/// were granted to the old content.
fn copy_attributes(from: &File, to: &File) {
    let mut names = vec![0; 64 << 10];
    let Ok(length) = rustix::fs::flistxattr(from, &mut names[..]) else { return };
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 64 << 10];
        if name != b"security.capability"
            && let Ok(length) = rustix::fs::fgetxattr(from, name, &mut value[..])
        {
            let _ = rustix::fs::fsetxattr(to, name, &value[..length], rustix::fs::XattrFlags::empty());
        }
    }
}

#[cfg(test)]
#[path = "temporary_file_tests.rs"]
mod tests;
