//! An open folder of the scope, and what can be done in it.

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

/// An open folder. Its entries are opened through its handle, never through a link.
#[derive(Debug)]
pub(crate) struct ScopedFolder {
    handle: OwnedFd,
    path: PathBuf,
    boundaries: Arc<Boundaries>,
}

/// The status of an entry without opening it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryStatus {
    pub(crate) kind: EntryKind,
    pub(crate) bytes: u64,
}

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
    /// Whether the folder has more names than the caller asked for.
    pub(crate) is_truncated: bool,
}

/// Why an entry of a folder may not be used.
#[derive(Debug)]
pub(crate) enum AccessError {
    Denied(DenialReason),
    /// It is of another kind than the caller needs.
    WrongKind(EntryKind),
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
    /// Opens `/`.
    pub(super) fn root(boundaries: Arc<Boundaries>) -> Result<Self, AccessError> {
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(CWD, "/", flags, Mode::empty())?;
        Self { handle, path: PathBuf::from("/"), boundaries }.unless_denied()
    }

    /// Opens the folder of this name, which must not be a link.
    pub(crate) fn enter(&self, name: &OsStr) -> Result<Self, AccessError> {
        let flags = PATH_ONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = self.path.join(name);
        // A protected folder may be passed on the way to an exception; its other entries stay denied.
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

    /// Creates a folder. `false` if another program created it at the same time.
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

    /// Removes a folder if it is empty.
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

    /// Its path when it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// The status of an entry. A link is not followed.
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

    /// Opens a regular file for reading. Nothing else is opened: opening a pipe can block for ever, and opening a
    /// device can have an effect. The kind is checked again on the open file.
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

    /// At most `most` names.
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

    /// Makes created, renamed and removed entries durable.
    pub(crate) fn sync(&self) -> rustix::io::Result<()> {
        match rustix::fs::fsync(self.readable()?) {
            // Some file systems can't, and there is no other way.
            Err(Errno::INVAL | Errno::NOTSUP) => Ok(()),
            other => other,
        }
    }

    /// The target of a link, as written in it.
    pub(crate) fn link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(&self.handle, name, Vec::new())?;
        Ok(PathBuf::from(OsStr::from_bytes(target.to_bytes())))
    }

    /// The path-only handle can't be read, so the folder is opened again.
    fn readable(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.handle, ".", flags, Mode::empty())
    }
}
