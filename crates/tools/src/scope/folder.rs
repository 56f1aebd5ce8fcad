//! A folder that was reached on foot, and what can be done in it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::boundaries::{Boundaries, DenialReason, PATH_ONLY};

/// An open folder. Everything in it is opened through its handle and never through a link.
#[derive(Debug)]
pub(crate) struct ScopedFolder {
    handle: OwnedFd,
    path: PathBuf,
    boundaries: Arc<Boundaries>,
}

/// What is known of an entry without opening it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryStatus {
    pub(crate) kind: EntryKind,
    pub(crate) bytes: u64,
}

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    File,
    Folder,
    Link,
    Special(&'static str),
}

impl From<&Stat> for EntryStatus {
    fn from(status: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Folder,
            FileType::Symlink => EntryKind::Link,
            FileType::Fifo => EntryKind::Special("a pipe"),
            FileType::Socket => EntryKind::Special("a socket"),
            FileType::CharacterDevice | FileType::BlockDevice => EntryKind::Special("a device"),
            FileType::Unknown => EntryKind::Special("of an unknown kind"),
        };
        Self { kind, bytes: u64::try_from(status.st_size).unwrap_or(0) }
    }
}

/// The names in a folder, sorted.
pub(crate) struct FolderNames {
    pub(crate) names: Vec<OsString>,
    /// Whether there were more than could be held.
    pub(crate) is_truncated: bool,
}

/// Why something in a folder can't be used.
#[derive(Debug)]
pub(crate) enum AccessError {
    /// It is denied or protected.
    Denied(DenialReason),
    /// It is something else than what was wanted.
    WrongKind(EntryKind),
    /// The system says no.
    System(Errno),
}

impl From<Errno> for AccessError {
    fn from(error: Errno) -> Self {
        Self::System(error)
    }
}

impl AsFd for ScopedFolder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }
}

impl ScopedFolder {
    /// The folder that everything is under.
    pub(super) fn root(boundaries: Arc<Boundaries>) -> Result<Self, AccessError> {
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(CWD, "/", flags, Mode::empty())?;
        Self { handle, path: PathBuf::from("/"), boundaries }.unless_denied()
    }

    /// The folder of this name, which is no link.
    pub(crate) fn enter(&self, name: &OsStr) -> Result<Self, AccessError> {
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = self.path.join(name);
        // A protected folder is passed on the way to what the scope names in it; what else is in it stays closed.
        match self.boundaries.denial_of_path(&path) {
            Some(DenialReason::Protected) if self.boundaries.leads_to_exception(&path) => {}
            Some(barred) => return Err(AccessError::Denied(barred)),
            None => {}
        }
        let handle = match rustix::fs::openat(&self.handle, name, flags, Mode::empty()) {
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(AccessError::WrongKind(self.status(name)?.kind)),
            other => other?,
        };
        Self { handle, path, boundaries: Arc::clone(&self.boundaries) }.unless_denied()
    }

    /// Makes a folder of this name, and says whether it did: someone else may have made it at the same time.
    pub(super) fn make(&self, name: &OsStr) -> Result<bool, AccessError> {
        if let Some(barred) = self.boundaries.denial_of_path(&self.path.join(name)) {
            return Err(AccessError::Denied(barred));
        }
        match rustix::fs::mkdirat(&self.handle, name, Mode::from_raw_mode(0o777)) {
            Ok(()) => {
                self.sync()?;
                Ok(true)
            }
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a folder of this name, if nothing is in it.
    pub(super) fn remove_empty(&self, name: &OsStr) {
        let _ = rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR);
    }

    fn unless_denied(self) -> Result<Self, AccessError> {
        match self.boundaries.denial_of_identity(&rustix::fs::fstat(&self.handle)?) {
            Some(DenialReason::Protected) if self.boundaries.leads_to_exception(&self.path) => Ok(self),
            Some(barred) => Err(AccessError::Denied(barred)),
            None => Ok(self),
        }
    }

    /// Where it was when it was reached.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// For system calls on what is in it.
    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// What an entry is, without following it.
    pub(crate) fn status(&self, name: &OsStr) -> Result<EntryStatus, AccessError> {
        let status = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let barred = self
            .boundaries
            .denial_of_identity(&status)
            .or_else(|| self.boundaries.denial_of_path(&self.path.join(name)));
        match barred {
            Some(barred) => Err(AccessError::Denied(barred)),
            None => Ok(EntryStatus::from(&status)),
        }
    }

    /// Opens a file for reading. Only what is a regular file is opened at all, since opening a pipe can wait for ever
    /// and opening a device can do something; and it is looked at again once it is open.
    pub(crate) fn open(&self, name: &OsStr) -> Result<(File, Stat), AccessError> {
        let before = self.status(name)?;
        if before.kind != EntryKind::File {
            return Err(AccessError::WrongKind(before.kind));
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::empty())?;
        let status = rustix::fs::fstat(&handle)?;
        if let Some(barred) = self.boundaries.denial_of_identity(&status) {
            return Err(AccessError::Denied(barred));
        }
        match EntryStatus::from(&status).kind {
            EntryKind::File => Ok((File::from(handle), status)),
            other => Err(AccessError::WrongKind(other)),
        }
    }

    /// What is in it, sorted, at most so many.
    pub(crate) fn names(&self, most: usize) -> rustix::io::Result<FolderNames> {
        let mut names = Vec::new();
        for entry in Dir::new(self.readable()?)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if names.len() == most {
                names.sort();
                return Ok(FolderNames { names, is_truncated: true });
            }
            names.push(name.to_owned());
        }
        names.sort();
        Ok(FolderNames { names, is_truncated: false })
    }

    /// Makes what was created, renamed and removed in it durable.
    pub(crate) fn sync(&self) -> rustix::io::Result<()> {
        match rustix::fs::fsync(self.readable()?) {
            // Some file systems can't, and say so. There is nothing to be done about it.
            Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            other => other,
        }
    }

    /// Where a link leads, as it is written in it.
    pub(crate) fn link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.handle, name, Vec::new())?;
        Ok(PathBuf::from(OsStr::from_bytes(target.to_bytes())))
    }

    /// The handle that leads through it gives no right to read it.
    fn readable(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.handle, ".", flags, Mode::empty())
    }
}
