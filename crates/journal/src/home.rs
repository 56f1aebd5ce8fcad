//! The home: the folder with the journal and all other files of a user.
//!
//! Files are private to the user. Every process that uses the journal holds the home's lock, shared. A migration and a
//! restore replace the journal's file and need the lock exclusively; their error names the process that holds it.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Error, Result};

/// How long to wait for the exclusive lock. Processes that only clean up hold the lock for a moment.
const EXCLUSIVE_LOCK_WAIT: Duration = Duration::from_millis(200);

/// The folder with the journal and all other files of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    folder: PathBuf,
}

/// The home's lock, shared or exclusive. It is released when this is dropped.
#[derive(Debug)]
pub(crate) struct HomeLock {
    /// Closing the file releases the lock, however the process ends.
    _file: File,
}

impl Home {
    /// The home in this folder, which is created if it doesn't exist.
    pub fn create(folder: &Path) -> Result<Self> {
        let said = |error| io_error(folder, &error);
        match fs::metadata(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(said)?;
                sync_folder_of(folder).map_err(said)?;
            }
            Err(error) => return Err(said(error)),
            Ok(metadata) if !metadata.is_dir() => {}
            Ok(metadata) => make_private(folder, metadata.mode()).map_err(said)?,
        }
        Self::existing(folder)
    }

    /// The home in this folder, which must exist. Nothing is written.
    pub fn existing(folder: &Path) -> Result<Self> {
        let found = folder.canonicalize().map_err(|error| io_error(folder, &error))?;
        if !found.is_dir() {
            let (path, reason) = (folder.to_owned(), "not a folder".to_owned());
            return Err(Error::Foreign { path, reason });
        }
        Ok(Self { folder: found })
    }

    /// The folder, by its canonical path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether a journal was ever created here. A file that can't be examined is an error, not an absence.
    pub fn has_journal(&self) -> Result<bool> {
        let is_there = |path: PathBuf| match fs::symlink_metadata(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::Io { path, reason: error.to_string() }),
        };
        Ok(is_there(self.journal_file())? || is_there(self.heads_file())?)
    }

    /// The path of the journal.
    pub fn journal_file(&self) -> PathBuf {
        self.folder.join("journal.db")
    }

    /// The path of the last known heads.
    pub(crate) fn heads_file(&self) -> PathBuf {
        self.folder.join("heads.json")
    }

    /// Journals that a restore has replaced and kept in the trash.
    pub fn replaced_journals(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.join("trash")).into_iter().flatten().flatten();
        let mut journals: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        journals.retain(|path| path.extension().is_some_and(|ending| ending == "db"));
        journals.sort();
        journals
    }

    /// A private folder of the home, which is created if it doesn't exist.
    pub(crate) fn subfolder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(io_error(&folder, &error)),
            _ => Ok(folder),
        }
    }

    /// Takes the shared lock. Waits while another process holds it exclusively, which is never for long. `None` for a
    /// read-only home, which needs no lock.
    pub(crate) fn lock_shared(&self) -> Result<Option<HomeLock>> {
        match self.lock_file() {
            Ok((path, file)) => {
                file.lock_shared().map_err(|error| io_error(&path, &error))?;
                Ok(Some(HomeLock { _file: file }))
            }
            Err(Error::ReadOnly { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Takes the exclusive lock; the error names the process that uses the home.
    pub(crate) fn lock_exclusive(&self, why: &'static str) -> Result<HomeLock> {
        let (path, file) = self.lock_file()?;
        let since = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(HomeLock { _file: file }),
                Err(TryLockError::WouldBlock) if since.elapsed() < EXCLUSIVE_LOCK_WAIT => {
                    std::thread::sleep(EXCLUSIVE_LOCK_WAIT / 10);
                }
                Err(TryLockError::WouldBlock) => {
                    let by =
                        lock_holder(&path, LockKind::Any).unwrap_or_else(|| "another process".to_owned());
                    return Err(Error::InUse { home: self.folder.clone(), why, by });
                }
                Err(TryLockError::Error(error)) => return Err(io_error(&path, &error)),
            }
        }
    }

    /// Removes the partial files of killed processes, if no process uses the home now.
    pub(crate) fn remove_partial_files(&self) {
        let Ok((_, file)) = self.lock_file() else { return };
        if file.try_lock().is_err() {
            return;
        }
        let folders = ["", "run", "cache"].map(|name| fs::read_dir(self.folder.join(name)));
        let entries = folders.into_iter().flatten().flatten().flatten();
        for entry in
            entries.filter(|entry| PartialFile::is_partial_name(&entry.file_name().to_string_lossy()))
        {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// The partial files of killed processes that were not modified for `age`. Other processes may use the home.
    pub fn stale_files(&self, age: Duration) -> Vec<PathBuf> {
        let memories = fs::read_dir(self.folder.join("memory")).into_iter().flatten().flatten();
        let memories = memories.map(|entry| entry.path());
        let folders = ["", "run", "cache", "trash", "memory"].map(|name| self.folder.join(name));
        let entries = folders.into_iter().chain(memories).filter_map(|folder| fs::read_dir(folder).ok());
        let is_stale = |path: &PathBuf| {
            let changed = fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
            changed.is_ok_and(|at| at.elapsed().is_ok_and(|since| since >= age))
        };
        let mut stale: Vec<PathBuf> = entries
            .flatten()
            .flatten()
            .filter(|entry| PartialFile::is_partial_name(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .filter(is_stale)
            .collect();
        stale.sort();
        stale
    }

    fn lock_file(&self) -> Result<(PathBuf, File)> {
        let path = self.folder.join("home.lock");
        let file = private(OpenOptions::new().read(true).write(true).create(true)).open(&path);
        Ok((path.clone(), file.map_err(|error| io_error(&path, &error))?))
    }
}

/// Makes a folder private, if it is empty or already a home. A folder with other content keeps the mode that the user
/// gave it.
fn make_private(folder: &Path, mode: u32) -> io::Result<()> {
    let is_home = folder.join("journal.db").exists();
    if mode & 0o077 != 0 && (is_home || fs::read_dir(folder)?.next().is_none()) {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Options for a file that only the user may read.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Creates a private file, which must not exist.
pub(crate) fn create_new(path: &Path) -> Result<File> {
    private(OpenOptions::new().write(true).create_new(true)).open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
        io::ErrorKind::NotFound => Error::NoFolder { path: path.parent().unwrap_or(path).to_owned() },
        _ => io_error(path, &error),
    })
}

/// A private file that atomically replaces another when it is finished. Readers see either the old bytes or the new
/// ones, even after a crash. If it is dropped before that, nothing is left of it.
#[derive(Debug)]
pub struct ReplacingFile {
    path: PathBuf,
    partial: PartialFile,
    file: File,
}

impl ReplacingFile {
    /// Begins to write the new content of this path.
    pub fn create(path: &Path) -> Result<Self> {
        let partial = PartialFile::next_to(path);
        let file = create_new(partial.path())?;
        Ok(Self { path: path.to_owned(), partial, file })
    }

    /// Makes the bytes durable and replaces the old file.
    pub fn finish(self) -> Result<()> {
        let place = || {
            self.file.sync_all()?;
            fs::rename(self.partial.path(), &self.path)?;
            sync_folder_of(&self.path)
        };
        place().map_err(|error| io_error(&self.path, &error))
    }
}

impl Write for ReplacingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Replaces a file atomically.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = ReplacingFile::create(path)?;
    file.write_all(bytes).map_err(|error| io_error(path, &error))?;
    file.finish()
}

/// Creates a file atomically. An existing one stays unchanged.
pub(crate) fn create_once(path: &Path, bytes: &[u8]) -> Result<()> {
    let partial = PartialFile::next_to(path);
    create_new(partial.path())?.write_all(bytes).map_err(|error| io_error(path, &error))?;
    publish_once(partial.path(), path)
}

/// Gives a finished file its name, unless a file with that name exists. If two processes do this, one wins and both
/// use its file.
pub(crate) fn publish_once(finished: &Path, path: &Path) -> Result<()> {
    match publish(finished, path) {
        Err(Error::Exists { .. }) => Ok(()),
        published => published,
    }
}

/// Makes a finished file durable and gives it its name. Fails if the name exists. It links the file, because a rename
/// would replace an existing one.
pub(crate) fn publish(finished: &Path, path: &Path) -> Result<()> {
    let link = || {
        File::open(finished)?.sync_all()?;
        fs::hard_link(finished, path)?;
        sync_folder_of(path)
    };
    link().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
        _ => io_error(path, &error),
    })
}

/// The path with a suffix added to its name, such as `-wal`.
pub(crate) fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// A unique path beside a file or folder, where its new content is prepared. Dropping this removes the content.
#[derive(Debug)]
pub(crate) struct PartialFile(PathBuf);

impl PartialFile {
    pub(crate) fn next_to(path: &Path) -> Self {
        // The system reuses pids (in a container at every start), and a killed process may have left its files. So
        // the numbers of each process begin with the current time.
        static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            AtomicU64::new(u64::try_from(now.as_nanos()).unwrap_or_default())
        });
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(with_suffix(path, &format!(".{}-{number}.partial", std::process::id())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Whether a name is that of a partial file, `….<pid>-<number>.partial`, or of a file that SQLite keeps beside one.
    fn is_partial_name(name: &str) -> bool {
        let stem = ["", "-journal", "-wal", "-shm"]
            .iter()
            .find_map(|ending| name.strip_suffix(ending)?.strip_suffix(".partial"));
        let numbers =
            stem.and_then(|stem| stem.rsplit_once('.')).and_then(|(_, numbers)| numbers.split_once('-'));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        numbers.is_some_and(|(pid, number)| is_number(pid) && is_number(number))
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        // Usually it was renamed or never created, and there is nothing to remove.
        if fs::remove_file(&self.0).is_err() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

pub(crate) fn path_str(path: &Path) -> Result<&str> {
    let not_text =
        || Error::Io { path: path.to_owned(), reason: "the path is not valid UTF-8; use another".to_owned() };
    path.to_str().ok_or_else(not_text)
}

/// Syncs the folder of a path, which makes a rename or a new name durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Whether the folder of this path is writable.
pub(crate) fn can_write_next_to(path: &Path) -> bool {
    create_new(PartialFile::next_to(path).path()).is_ok()
}

/// Turns an error of the system into one that a caller can act on.
pub fn io_error(path: &Path, error: &io::Error) -> Error {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull { path },
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            Error::ReadOnly { path, reason: error.to_string() }
        }
        _ => Error::Io { path, reason: error.to_string() },
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockKind {
    /// Shared or exclusive.
    Any,
    Exclusive,
}

/// A process other than this one that holds a lock on a file, with its command line for an error message.
pub(crate) fn lock_holder(path: &Path, kind: LockKind) -> Option<String> {
    let inode = fs::metadata(path).ok()?.ino();
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let holders = locks.lines().filter_map(|line| lock_line(line, inode, kind));
    let pid = holders.into_iter().find(|pid| *pid != std::process::id())?;
    let program = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let words: Vec<&str> = program.split('\0').filter(|word| !word.is_empty()).take(4).collect();
    Some(format!("process {pid} ({})", words.join(" ")))
}

/// The process in a line such as `1: FLOCK ADVISORY WRITE 2549 fe:00:10010697 0 EOF`, if it is about this file.
fn lock_line(line: &str, inode: u64, kind: LockKind) -> Option<u32> {
    if line.contains("->") {
        // This process only waits for the lock.
        return None;
    }
    let mut fields = line.split_whitespace().skip_while(|field| *field != "READ" && *field != "WRITE");
    let access = fields.next()?;
    let pid = fields.next()?.parse().ok()?;
    let number = fields.next()?.rsplit(':').next()?;
    let same_file = number.parse::<u64>().is_ok_and(|number| number == inode);
    (same_file && (kind == LockKind::Any || access == "WRITE")).then_some(pid)
}

#[cfg(test)]
#[path = "home_tests.rs"]
mod tests;
