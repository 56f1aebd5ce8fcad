//! A task's folder, by its handle.
//!
//! Both sides reach everything through an open directory, so a home that is moved meanwhile keeps working, and a path can be of
//! any length. Each file is private to the user.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, RenameFlags, Stat, flock, fstat, fsync, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::{Error, Result};

/// What a task's folder holds. Formats only grow, and so does this list.
pub(crate) mod name {
    pub(crate) const SPEC: &str = "spec.json";
    pub(crate) const LOCK: &str = "lock";
    pub(crate) const VOID: &str = "void";
    pub(crate) const SPAWNING: &str = "spawning";
    pub(crate) const PID: &str = "pid";
    pub(crate) const HEAD: &str = "output.head";
    pub(crate) const TAIL: &str = "output.tail";
    pub(crate) const STATUS: &str = "status.json";
    pub(crate) const SOCKET: &str = "socket";
}

/// A spec holds a whole environment and a command; more than this nobody wrote.
const LARGEST_FILE: u64 = 16 << 20;
const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    handle: OwnedFd,
    /// Its name when it was opened, for messages.
    name: String,
}

/// While this lives, nobody else acts in the folder. It goes when the process does, however that ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: OwnedFd,
}

impl Folder {
    /// The folder that this process works in.
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

    /// How a file of this folder is called in messages.
    pub(crate) fn title(&self, name: &str) -> String {
        format!("{}/{name}", self.name)
    }

    /// A path that leads to this folder from any process of ours that has the handle, however long the real one is.
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

    /// Whether this is still what its parent calls by this name.
    pub(crate) fn is(&self, parent: BorrowedFd<'_>, name: &str) -> bool {
        let same = |one: &Stat, other: &Stat| (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino);
        match (fstat(&self.handle), statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)) {
            (Ok(ours), Ok(theirs)) => same(&ours, &theirs),
            _ => false,
        }
    }

    /// Opens a file; `None` if there is none.
    pub(crate) fn open(&self, name: &str) -> Result<Option<File>> {
        match openat(&self.handle, name, OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => Ok(Some(file.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.said("opening", name, error)),
        }
    }

    /// The bytes of a small file; `None` if there is none.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(file) = self.open(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(LARGEST_FILE).read_to_end(&mut bytes).map_err(|error| self.said("reading", name, error))?;
        Ok(Some(bytes))
    }

    /// Makes a file that must not be there yet, open for reading and writing.
    pub(crate) fn make(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(openat(&self.handle, name, flags, PRIVATE)?.into())
    }

    /// Makes a file with these bytes, on disk when this returns. Its name is on disk only after [`Folder::sync`].
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let written = self.make(name).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        written.map_err(|error| self.said("writing", name, error))
    }

    /// Puts a file in place, whole or not at all, on disk when this returns.
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

    /// Writes the names in this folder to disk.
    pub(crate) fn sync(&self) -> Result<()> {
        fsync(&self.handle).map_err(Error::io(format!("writing {} to disk", self.name)))
    }

    /// Waits until the folder is ours.
    pub(crate) fn lock(&self) -> Result<Lock> {
        let file = self.lock_file(OFlags::CREATE)?;
        loop {
            match flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(Errno::INTR) => {}
                Err(error) => return Err(self.said("locking", name::LOCK, error)),
            }
        }
    }

    /// Makes the folder ours if nobody has it now.
    pub(crate) fn try_lock(&self) -> Result<Option<Lock>> {
        let file = self.lock_file(OFlags::CREATE)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(self.said("locking", name::LOCK, error)),
        }
    }

    fn lock_file(&self, more: OFlags) -> Result<OwnedFd> {
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | more;
        openat(&self.handle, name::LOCK, flags, PRIVATE)
            .map_err(|error| self.said("opening", name::LOCK, error))
    }

    /// Moves this folder, which is `name` in `parent`, out of the way under a name that is free.
    pub(crate) fn move_aside(&self, parent: BorrowedFd<'_>, name: &str) -> Result<()> {
        for number in 1_u32.. {
            let aside = format!("{name}.void-{number}");
            match renameat_with(parent, name, parent, &*aside, RenameFlags::NOREPLACE) {
                Ok(()) => break,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(Error::io(format!("renaming {name} to {aside}"))(error)),
            }
        }
        fsync(parent).map_err(Error::io("writing the folder of tasks to disk"))
    }

    /// The token that a socket of this task asks for. The file may lie anywhere; it is named by this folder.
    pub(crate) fn token(&self, file: &str) -> Result<String> {
        let said =
            |error| Error::Io { what: format!("reading the token {}", self.title(file)), source: error };
        let open = openat(&self.handle, file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let mut token = String::new();
        File::from(open.map_err(|error| said(error.into()))?)
            .take(4096)
            .read_to_string(&mut token)
            .map_err(said)?;
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
