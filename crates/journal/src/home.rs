//! The folder that everything lives in.
//!
//! Files are private to the user. Normal work holds the home's lock together with others; what rearranges the
//! journal's file (a migration, a restore) needs it alone, and says who is in the way.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::{Error, Result};

/// How long somebody who needs the home alone waits for those who are about to leave.
const PATIENCE: Duration = Duration::from_millis(200);

/// The folder that everything lives in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    folder: PathBuf,
}

/// While this lives, the home is ours: together with others, or alone.
#[derive(Debug)]
pub(crate) struct HomeLock {
    /// The lock goes when the file is closed, however the process ends.
    _file: File,
}

impl Home {
    /// The home in this folder, made if it isn't there.
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

    /// The home in this folder, which must be there. Nothing is written.
    pub fn existing(folder: &Path) -> Result<Self> {
        let found = folder.canonicalize().map_err(|error| io_error(folder, &error))?;
        if !found.is_dir() {
            let (path, reason) = (folder.to_owned(), "it is not a folder".to_owned());
            return Err(Error::Foreign { path, reason });
        }
        Ok(Self { folder: found })
    }

    /// The folder, by its canonical path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whether a journal was ever made here. What can't be looked at is an error, not an absence.
    pub fn has_journal(&self) -> Result<bool> {
        let is_there = |path: PathBuf| match fs::symlink_metadata(&path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::Io { path, reason: error.to_string() }),
        };
        Ok(is_there(self.journal_file())? || is_there(self.heads_file())?)
    }

    /// Where the journal is.
    pub fn journal_file(&self) -> PathBuf {
        self.folder.join("journal.db")
    }

    /// Where the last known heads are noted.
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

    /// A folder of the home, private and made if it isn't there.
    pub(crate) fn subfolder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder.join(name);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(io_error(&folder, &error)),
            _ => Ok(folder),
        }
    }

    /// Holds the home together with others. Waits for one that has it alone, which is never for long. A home that
    /// can't be written has nothing to lock.
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

    /// Holds the home alone, or says who uses it. Somebody who only sweeps is soon gone.
    pub(crate) fn lock_alone(&self, why: &'static str) -> Result<HomeLock> {
        let (path, file) = self.lock_file()?;
        let since = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(HomeLock { _file: file }),
                Err(TryLockError::WouldBlock) if since.elapsed() < PATIENCE => {
                    std::thread::sleep(PATIENCE / 10);
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

    /// Removes what processes that were killed had begun to write, if nobody uses the home now.
    pub(crate) fn sweep(&self) {
        let Ok((_, file)) = self.lock_file() else { return };
        if file.try_lock().is_err() {
            return;
        }
        let folders = ["", "run", "cache"].map(|name| fs::read_dir(self.folder.join(name)));
        let entries = folders.into_iter().flatten().flatten().flatten();
        for entry in entries.filter(|entry| Partial::is_name_of_one(&entry.file_name().to_string_lossy())) {
            let _ = fs::remove_file(entry.path());
        }
    }

    /// What processes that were killed had begun to write, and nobody has touched for so long. Others may use the home.
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
            .filter(|entry| Partial::is_name_of_one(&entry.file_name().to_string_lossy()))
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

/// Takes others' rights to a folder away, if it is ours to shape: empty, or a home already. A folder that somebody
/// filled with other things keeps the rights that they gave it.
fn make_private(folder: &Path, mode: u32) -> io::Result<()> {
    let is_home = folder.join("journal.db").exists();
    if mode & 0o077 != 0 && (is_home || fs::read_dir(folder)?.next().is_none()) {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// The same options, for a file that only the user may read.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.mode(0o600)
}

/// Makes a private file that was not there before.
pub(crate) fn create_new(path: &Path) -> Result<File> {
    private(OpenOptions::new().write(true).create_new(true)).open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
        io::ErrorKind::NotFound => Error::NoFolder { path: path.parent().unwrap_or(path).to_owned() },
        _ => io_error(path, &error),
    })
}

/// A private file that takes its place when it is finished: whoever reads it sees the old bytes or the new ones,
/// after a crash too. Dropped before that, it leaves no trace.
#[derive(Debug)]
pub struct ReplacingFile {
    path: PathBuf,
    partial: Partial,
    file: File,
}

impl ReplacingFile {
    /// Begins to write what will stand at this path.
    pub fn create(path: &Path) -> Result<Self> {
        let partial = Partial::of(path);
        let file = create_new(partial.path())?;
        Ok(Self { path: path.to_owned(), partial, file })
    }

    /// Makes the bytes durable and gives them their place.
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

/// Replaces a file as a whole.
pub(crate) fn replace_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = ReplacingFile::create(path)?;
    file.write_all(bytes).map_err(|error| io_error(path, &error))?;
    file.finish()
}

/// Makes a file that takes its place whole; if another is there already, that one stays and is used.
pub(crate) fn create_once(path: &Path, bytes: &[u8]) -> Result<()> {
    let partial = Partial::of(path);
    create_new(partial.path())?.write_all(bytes).map_err(|error| io_error(path, &error))?;
    publish_once(partial.path(), path)
}

/// Gives a finished file its name, unless another has it: of two that do this, one wins and both use its file.
pub(crate) fn publish_once(finished: &Path, path: &Path) -> Result<()> {
    match publish(finished, path) {
        Err(Error::Exists { .. }) => Ok(()),
        published => published,
    }
}

/// Makes a finished file durable and gives it a second name, which nobody must have taken meanwhile: linking, unlike
/// renaming, never replaces.
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

/// The file that has this one's name with something after it, such as its log.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

/// Where a file or folder is prepared before it takes its place: beside it, under a name that nobody else uses. What
/// is there goes when this does.
#[derive(Debug)]
pub(crate) struct Partial(PathBuf);

impl Partial {
    pub(crate) fn of(path: &Path) -> Self {
        // Pids are used again, in a container at every start, and what a killed process left must not be in the way:
        // so the numbers of each process begin with the moment of its first.
        static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            AtomicU64::new(u64::try_from(now.as_nanos()).unwrap_or_default())
        });
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(beside(path, &format!(".{}-{number}.partial", std::process::id())))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Whether a file of this name, or what SQLite keeps beside one, was prepared so: `….<pid>-<number>.partial`.
    fn is_name_of_one(name: &str) -> bool {
        let stem = ["", "-journal", "-wal", "-shm"]
            .iter()
            .find_map(|ending| name.strip_suffix(ending)?.strip_suffix(".partial"));
        let numbers =
            stem.and_then(|stem| stem.rsplit_once('.')).and_then(|(_, numbers)| numbers.split_once('-'));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        numbers.is_some_and(|(pid, number)| is_number(pid) && is_number(number))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // Mostly it has been renamed or was never made; then there is nothing to remove.
        if fs::remove_file(&self.0).is_err() {
            let _ = fs::remove_dir_all(&self.0);
        }
    }
}

/// A path as text, for what takes nothing else.
pub(crate) fn path_text(path: &Path) -> Result<&str> {
    let not_text =
        || Error::Io { path: path.to_owned(), reason: "the path is not UTF-8; name another".to_owned() };
    path.to_str().ok_or_else(not_text)
}

/// Makes a rename or a new name in a folder durable.
pub(crate) fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Whether new files can be made beside this one.
pub(crate) fn can_write_beside(path: &Path) -> bool {
    create_new(Partial::of(path).path()).is_ok()
}

/// What the system said, as something that a caller can act on.
pub(crate) fn io_error(path: &Path, error: &io::Error) -> Error {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull { path },
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            Error::ReadOnly { path, reason: error.to_string() }
        }
        _ => Error::Io { path, reason: error.to_string() },
    }
}

/// How a lock keeps others out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LockKind {
    /// Whoever has one, shared or not.
    Any,
    /// Whoever has one for itself.
    Exclusive,
}

/// A process other than this one that has a lock on a file, as a person would name it.
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
        // This one only waits for the lock.
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
