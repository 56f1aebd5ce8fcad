//! A task's folder, accessed through an open handle.
//!
//! The runtime and the keeper both work through an open directory. So a home that is moved keeps working, and paths
//! can have any length. Each file is private to the user.

use std::fs::{File, Metadata};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use longhaul_protocol::At;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags, Stat, chmodat, flock, fstat,
    fsync, openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::{Error, Result};

/// The files in a task's folder. Formats only grow, and so does this list.
pub(crate) mod name {
    pub(crate) const SPEC: &str = "spec.json";
    pub(crate) const LOCK: &str = "lock";
    pub(crate) const VOID: &str = "void";
    pub(crate) const SPAWNING: &str = "spawning";
    pub(crate) const PID: &str = "pid";
    pub(crate) const HEAD: &str = "output.head";
    pub(crate) const TAIL: &str = "output.tail";
    pub(crate) const STATUS: &str = "status.json";
    pub(crate) const LOST: &str = "lost";
    pub(crate) const ASKED: &str = "asked";
    pub(crate) const SOCKET: &str = "socket";
}

/// The largest file that is read. A spec contains a whole environment and a command.
const MAX_FILE_BYTES: u64 = 16 << 20;
const PRIVATE: Mode = Mode::from_raw_mode(0o600);
/// The space to reserve for a file: one block of most file systems.
const RESERVED_BYTES: usize = 4096;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    handle: OwnedFd,
    /// Its name when it was opened, for messages.
    name: String,
}

/// The exclusive lock on the folder. It ends with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Writes into the lock file which process holds the lock. An error is ignored, because readers can do without
    /// it.
    pub(crate) fn write_holder(&self, bytes: &[u8]) {
        let _ = self.file.set_len(0).and_then(|()| self.file.write_all_at(bytes, 0));
    }
}

/// The result of trying to lock a folder.
#[derive(Debug)]
pub(crate) enum Locked {
    Ours(Lock),
    /// Another process holds the lock: a keeper, or briefly a runtime that looks up the task.
    Theirs,
    /// The lock file was removed, so it does not tell whether a keeper is alive.
    Missing,
}

/// Disk space that is reserved for a file which must be written later, even if the disk is full by then.
#[derive(Debug)]
pub(crate) struct Reserved {
    file: File,
}

impl Folder {
    /// The current directory.
    pub(crate) fn here() -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle =
            openat(CWD, ".", flags, Mode::empty()).map_err(Error::io("opening the task's folder"))?;
        Ok(Self { handle, name: "the task's folder".to_owned() })
    }

    /// The folder of this name in another, if there is one.
    pub(crate) fn within(parent: BorrowedFd<'_>, name: &str) -> Result<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(parent, name, flags, Mode::empty()) {
            Ok(handle) => Ok(Some(Self { handle, name: name.to_owned() })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(Error::io(format!("opening {name}"))(error)),
        }
    }

    /// The name of a file in messages.
    pub(crate) fn title(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }

    /// A short path to this folder, for this process and children that inherit the handle.
    pub(crate) fn short_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.handle.as_raw_fd()))
    }

    pub(crate) fn has(&self, name: &str) -> Result<bool> {
        match statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(self.said("looking for", name, error)),
        }
    }

    /// When a file was last modified; `None` if there is none.
    pub(crate) fn changed_at(&self, name: &str) -> Result<Option<At>> {
        match statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => Ok(Some(At(status.st_mtime * 1000 + status.st_mtime_nsec as i64 / 1_000_000))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.said("looking for", name, error)),
        }
    }

    /// Whether the folder still has this name in its parent.
    pub(crate) fn is(&self, parent: BorrowedFd<'_>, name: &str) -> bool {
        let same = |one: &Stat, other: &Stat| (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino);
        match (fstat(&self.handle), statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)) {
            (Ok(ours), Ok(theirs)) => same(&ours, &theirs),
            _ => false,
        }
    }

    /// Whether this is the metadata of this folder.
    pub(crate) fn has_identity(&self, other: &Metadata) -> bool {
        fstat(&self.handle).is_ok_and(|ours| (ours.st_dev, ours.st_ino) == (other.dev(), other.ino()))
    }

    /// Whether the folder was removed since it was opened.
    pub(crate) fn is_gone(&self) -> bool {
        fstat(&self.handle).is_ok_and(|status| status.st_nlink == 0)
    }

    /// Opens a file. `None` if there is none. Anything but a regular file counts as damage: a pipe could block
    /// forever.
    pub(crate) fn open(&self, name: &str) -> Result<Option<File>> {
        self.open_file(name, OFlags::RDONLY | OFlags::NOFOLLOW)
    }

    fn open_file(&self, name: &str, flags: OFlags) -> Result<Option<File>> {
        let damaged = || Error::Damaged { file: self.title(name), reason: "not a regular file".to_owned() };
        let file = match openat(&self.handle, name, flags | OFlags::NONBLOCK | OFlags::CLOEXEC, PRIVATE) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => return Err(damaged()),
            Err(error) => return Err(self.said("opening", name, error)),
        };
        let status = fstat(&file).map_err(|error| self.said("opening", name, error))?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::RegularFile => Ok(Some(file.into())),
            _ => Err(damaged()),
        }
    }

    /// The bytes of a small file; `None` if there is none.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(file) = self.open(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| self.said("reading", name, error))?;
        Ok(Some(bytes))
    }

    /// Creates a file, which must not exist, for reading and writing.
    pub(crate) fn make(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.handle, name, flags, PRIVATE)?.into())
    }

    /// Creates a file with these bytes and syncs it. Its name is durable only after [`Folder::sync`].
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let written = self.make(name).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(|error| self.said("writing", name, error))
    }

    /// Replaces a file atomically and durably.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let partial = format!("{name}.partial");
        match unlinkat(&self.handle, &*partial, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(self.said("removing", &partial, error)),
        }
        self.write(&partial, bytes)?;
        renameat(&self.handle, &*partial, &self.handle, name)
            .map_err(|error| self.said("putting in place", name, error))?;
        self.sync()
    }

    /// Reserves space for a file.
    pub(crate) fn reserve(&self, name: &str) -> Result<Reserved> {
        let partial = format!("{name}.partial");
        let made = self.make(&partial).and_then(|file| {
            file.write_all_at(&[b' '; RESERVED_BYTES], 0)?;
            Ok(Reserved { file })
        });
        made.map_err(|error| self.said("making room for", name, error))
    }

    /// Writes a file into its reserved space, atomically and durably. It can be retried.
    pub(crate) fn fill(&self, reserved: &Reserved, name: &str, bytes: &[u8]) -> Result<()> {
        let Reserved { file } = reserved;
        let written = file
            .write_all_at(bytes, 0)
            .and_then(|()| file.set_len(bytes.len() as u64))
            .and_then(|()| file.sync_all());
        written.map_err(|error| self.said("writing", name, error))?;
        match renameat(&self.handle, format!("{name}.partial"), &self.handle, name) {
            Ok(()) => self.sync(),
            // The last attempt got this far and renamed the file.
            Err(Errno::NOENT) if self.has(name)? => self.sync(),
            Err(Errno::NOENT) => self.replace(name, bytes),
            Err(error) => Err(self.said("putting in place", name, error)),
        }
    }

    /// Makes a file or socket private to the user.
    pub(crate) fn make_private(&self, name: &str) -> Result<()> {
        chmodat(&self.handle, name, PRIVATE, AtFlags::empty())
            .map_err(|error| self.said("making private", name, error))
    }

    /// Makes the names in this folder durable.
    pub(crate) fn sync(&self) -> Result<()> {
        fsync(&self.handle).map_err(Error::io(format!("writing {} to disk", self.name)))
    }

    /// Locks the folder; waits while another process has it.
    pub(crate) fn lock(&self) -> Result<Lock> {
        let file = self.make_lock()?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Lock { file }),
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.said("locking", name::LOCK, error)),
            }
        }
    }

    /// Locks the folder if it is free. If a command may have been started, a missing lock file is not created again,
    /// because the keeper may still hold the removed one.
    pub(crate) fn try_lock(&self) -> Result<Locked> {
        let file = match self.open_lock() {
            Ok(Some(file)) => file,
            Ok(None) | Err(Error::Damaged { .. }) if self.may_have_started()? => match self.open_lock() {
                // Another process has just created it.
                Ok(Some(file)) => file,
                _ => return Ok(Locked::Missing),
            },
            Ok(None) => self.make_lock()?,
            Err(error) => return Err(error),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Locked::Ours(Lock { file })),
            Err(Errno::WOULDBLOCK) => Ok(Locked::Theirs),
            Err(error) => Err(self.said("locking", name::LOCK, error)),
        }
    }

    /// Whether a command was started here, or a start had begun.
    pub(crate) fn may_have_started(&self) -> Result<bool> {
        Ok(self.has(name::SPAWNING)? || self.has(name::PID)? || self.has(name::STATUS)?)
    }

    fn open_lock(&self) -> Result<Option<File>> {
        self.open_file(name::LOCK, OFlags::RDWR | OFlags::NOFOLLOW)
    }

    fn make_lock(&self) -> Result<File> {
        let made = self.open_file(name::LOCK, OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CREATE)?;
        made.ok_or_else(|| self.said("making", name::LOCK, Errno::NOENT))
    }

    /// Moves this folder, which is `name` in `parent`, to a free name such as `task_….void-1`.
    pub(crate) fn move_aside(&self, parent: BorrowedFd<'_>, name: &str, why: &str) -> Result<()> {
        for number in 1_u32.. {
            let aside = format!("{name}.{why}-{number}");
            match renameat_with(parent, name, parent, &*aside, RenameFlags::NOREPLACE) {
                Ok(()) => break,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(Error::io(format!("renaming {name} to {aside}"))(error)),
            }
        }
        fsync(parent).map_err(Error::io("writing the folder of tasks to disk"))
    }

    /// The names of everything in this folder.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let said = || Error::io(format!("reading {}", self.name));
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.handle).map_err(said())? {
            let entry = entry.map_err(said())?;
            // A keeper creates only names that are valid Unicode.
            match entry.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    /// When anything in this folder was last modified.
    pub(crate) fn last_change(&self) -> Result<At> {
        let own = self.changed_at(".")?.unwrap_or(At(0));
        self.names()?.iter().try_fold(own, |last, name| Ok(last.max(self.changed_at(name)?.unwrap_or(last))))
    }

    /// Removes a file, if it exists.
    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        match unlinkat(&self.handle, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.said("removing", name, error)),
        }
    }

    /// The token for the keeper's socket. The path of its file is relative to this folder.
    pub(crate) fn token(&self, file: &str) -> Result<String> {
        let said =
            |error| Error::Io { what: format!("reading the token {}", self.title(file)), source: error };
        let open = self.open_file(file, OFlags::RDONLY)?.ok_or_else(|| said(Errno::NOENT.into()))?;
        let mut token = String::new();
        open.take(4096).read_to_string(&mut token).map_err(said)?;
        let token = token.trim();
        if token.is_empty() {
            return Err(said(io::Error::other("it is empty")));
        }
        Ok(token.to_owned())
    }

    fn said(&self, doing: &str, name: &str, error: impl Into<io::Error>) -> Error {
        Error::Io { what: format!("{doing} {}", self.title(name)), source: error.into() }
    }
}
