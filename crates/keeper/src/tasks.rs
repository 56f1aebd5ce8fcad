//! The folder of all tasks, from the runtime's side: starts a command exactly once, and looks up the state of a task.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use longhaul_protocol::{At, CallId, PrintablePath, TaskId};
use rustix::fs::{CWD, Mode, OFlags, fsync, mkdirat, openat};
use rustix::io::Errno;

use crate::enforcement::what_can_be_enforced;
use crate::folder::{Folder, Locked, name};
use crate::format::{Spec, StartReport, decode, encode};
use crate::liveness::{self, KeeperConnection};
use crate::task::known_status;
use crate::{
    Enforcement, Error, Launcher, LeftBehind, Output, Result, Status, Task, expiry, orphan_cleanup, orphans,
};

/// How long to wait for the supervisor's report of the start. It takes milliseconds; on a very busy disk, seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How often to check whether another process has given up this start.
const START_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// How long another runtime may hold a lock. A lookup takes milliseconds; killing orphans, seconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(2);
const MAX_REPORT_BYTES: u64 = 64 << 10;
/// The suffix of a voided folder.
pub(crate) const VOID: &str = "void";
/// The mode of folders.
pub(crate) const PRIVATE: u32 = 0o700;

/// All tasks of a home.
#[derive(Debug)]
pub struct Tasks {
    folder: OwnedFd,
    identity: String,
    launcher: Launcher,
    enforcement: OnceLock<Enforcement>,
    /// Keepers that this process started and must reap.
    keepers: Mutex<Vec<Child>>,
}

/// The result of looking up a task.
#[derive(Debug)]
pub enum Found {
    /// The command did not run, and no late keeper can start it. So it may be started (again).
    NotStarted,
    /// Its keeper is alive.
    Running(Task),
    Ended(Status),
    /// The keeper died while it started the command, which may or may not have run.
    Unknown,
    /// The keeper died while the command ran. The orphans were killed.
    Lost,
    /// It ended so long ago that its folder was removed.
    Expired,
}

/// The result of a lookup in a folder.
enum FolderLookup {
    Found(Found),
    Running,
    /// The folder was moved: look again.
    Moved,
}

impl Tasks {
    /// The tasks in this folder, which is created if it doesn't exist.
    pub fn at(folder: &Path, launcher: Launcher) -> Result<Self> {
        let said = |error: io::Error| {
            Error::io(format!("opening the folder of tasks {}", folder.printable()))(error)
        };
        DirBuilder::new().recursive(true).mode(PRIVATE).create(folder).map_err(said)?;
        fs::set_permissions(folder, Permissions::from_mode(PRIVATE)).map_err(said)?;
        let handle = opened(folder).map_err(said)?;
        let identity = identity_of(folder).map_err(said)?;
        Ok(Self::of(handle, identity, launcher))
    }

    /// The tasks in this folder, for reading only: nothing is created or changed. `None` if the folder doesn't exist: then
    /// nothing was ever started.
    pub fn existing(folder: &Path, launcher: Launcher) -> Result<Option<Self>> {
        let said = |error: io::Error| {
            Error::io(format!("opening the folder of tasks {}", folder.printable()))(error)
        };
        let handle = match opened(folder) {
            Ok(handle) => handle,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(said(error)),
        };
        // Reading needs no identity; the first start has created one.
        let identity = fs::read_to_string(folder.join("id")).unwrap_or_default();
        Ok(Some(Self::of(handle, identity, launcher)))
    }

    fn of(folder: OwnedFd, identity: String, launcher: Launcher) -> Self {
        Self { folder, identity, launcher, enforcement: OnceLock::new(), keepers: Mutex::default() }
    }

    /// Uses this instead of a probe. A keeper that can't enforce the bounds still does not start the command.
    #[must_use]
    pub fn with_enforcement(self, enforcement: Enforcement) -> Self {
        Self { enforcement: OnceLock::from(enforcement), ..self }
    }

    /// Identifies this folder. A task that is not here may have been started in another one.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// What keepers can enforce here. The first call probes it, which blocks for a few milliseconds.
    pub fn enforcement(&self) -> &Enforcement {
        self.enforcement.get_or_init(|| {
            what_can_be_enforced(&self.launcher).unwrap_or_else(|error| Enforcement {
                no_landlock: Some(error.to_string()),
                no_namespaces: Some(error.to_string()),
                ..Enforcement::default()
            })
        })
    }

    /// Starts a command under its own keeper, and returns when the command runs. Blocks for a few milliseconds.
    pub fn start(&self, spec: &Spec) -> Result<Task> {
        self.reap();
        let id = spec.task_id;
        let name = id.to_string();
        if expiry::has_expired(self, id)? {
            return Err(Error::Exists { id });
        }
        match mkdirat(&self.folder, &*name, Mode::from_raw_mode(PRIVATE)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(Error::Exists { id }),
            Err(error) => return Err(Error::io(format!("making the folder of {id}"))(error)),
        }
        let folder = Folder::within(self.folder.as_fd(), &name)?.ok_or(Error::NoSuchTask { id })?;
        folder.write(name::SPEC, &encode(spec))?;
        // The keeper syncs the content of the folder before the command starts. The folder's own name must be durable
        // before that. Otherwise, after a power loss, a command that ran could look as if it had not.
        fsync(&self.folder).map_err(Error::io("writing the folder of tasks to disk"))?;

        let (report, theirs) = UnixStream::pair().map_err(Error::io("connecting to the supervisor"))?;
        let keeper = self
            .launcher
            .launch(&folder.short_path(), theirs.into())
            .map_err(|error| Error::NotStarted { reason: format!("can't start its supervisor: {error}") })?;
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner).push(keeper);
        let is_given_up = || !folder.is(self.folder.as_fd(), &name);
        await_report(id, &report, is_given_up)?;
        Ok(Task::new(id, folder, Some(spec.token_file.clone())))
    }

    /// Looks up the state of a task. If its command has not started, this also prevents a late start.
    pub fn find(&self, id: TaskId) -> Result<Found> {
        self.reap();
        let name = id.to_string();
        loop {
            let Some(folder) = self.folder_of(id)? else {
                // In this order: the note of an expiry is written before the folder is removed.
                return Ok(if expiry::has_expired(self, id)? { Found::Expired } else { Found::NotStarted });
            };
            match self.find_in(id, &folder) {
                Ok(FolderLookup::Found(found)) => return Ok(found),
                Ok(FolderLookup::Running) => return Ok(Found::Running(adopt(id, folder))),
                // Another process has moved it since it was opened.
                Ok(FolderLookup::Moved) => {}
                Err(_) if !folder.is(self.folder.as_fd(), &name) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn find_in(&self, id: TaskId, folder: &Folder) -> Result<FolderLookup> {
        let name = id.to_string();
        // A keeper may still hold the lock, because it cleans up or stays for orphans.
        if let Some(status) = known_status(folder)? {
            return Ok(FolderLookup::Found(Found::Ended(status)));
        }
        let lock = match folder.try_lock()? {
            Locked::Ours(lock) => lock,
            Locked::Theirs if is_locked_by_keeper(id, folder)? => return Ok(FolderLookup::Running),
            // Another runtime was looking up the task.
            Locked::Theirs => return Ok(FolderLookup::Moved),
            Locked::Missing if liveness::find_keeper(folder).is_some() => return Ok(FolderLookup::Running),
            // Without a lock and a record of the keeper, the lookup can't tell whether it is alive, so nothing is
            // killed.
            Locked::Missing if liveness::recorded_processes(folder).keeper.is_none() => {
                return lost_or_unknown(folder).map(FolderLookup::Found);
            }
            Locked::Missing => return clean_up_dead_keeper(id, folder).map(FolderLookup::Found),
        };
        if !folder.is(self.folder.as_fd(), &name) {
            return Ok(FolderLookup::Moved);
        }
        if let Some(status) = known_status(folder)? {
            return Ok(FolderLookup::Found(Found::Ended(status)));
        }
        if !folder.has(name::VOID)? && folder.may_have_started()? {
            return clean_up_dead_keeper(id, folder).map(FolderLookup::Found);
        }
        if !folder.has(name::VOID)? {
            folder.write(name::VOID, b"")?;
            folder.sync()?;
        }
        folder.move_aside(self.folder.as_fd(), &name, VOID)?;
        drop(lock);
        Ok(FolderLookup::Found(Found::NotStarted))
    }

    /// Kills a task and its orphans, and prevents a late start. Returns when they are dead.
    pub fn kill(&self, id: TaskId) -> Result<()> {
        match self.find(id)? {
            Found::Running(task) => task.kill(),
            // Its keeper lives on if it has orphans.
            Found::Ended(_) => match self.folder_of(id)? {
                Some(folder) if liveness::is_alive(&folder)? => adopt(id, folder).kill(),
                _ => Ok(()),
            },
            Found::NotStarted | Found::Unknown | Found::Lost | Found::Expired => Ok(()),
        }
    }

    /// Whether a task's keeper is alive. Also works where [`Tasks::find`] fails.
    pub fn is_kept(&self, id: TaskId) -> Result<bool> {
        self.folder_of(id)?.map_or(Ok(false), |folder| liveness::is_alive(&folder))
    }

    /// The status that a task's keeper wrote. This is cheap; only [`Tasks::find`] tells whether a task without a status
    /// still runs.
    pub fn status(&self, id: TaskId) -> Result<Option<Status>> {
        self.folder_of(id)?.map_or(Ok(None), |folder| known_status(&folder))
    }

    /// The spec that a task was started with.
    pub fn spec(&self, id: TaskId) -> Result<Option<Spec>> {
        let Some(folder) = self.folder_of(id)? else { return Ok(None) };
        let bytes = folder.read(name::SPEC)?;
        bytes.map(|bytes| decode(&folder.title(name::SPEC), &bytes)).transpose()
    }

    /// When a task was started.
    pub fn started_at(&self, id: TaskId) -> Result<Option<At>> {
        self.folder_of(id)?.map_or(Ok(None), |folder| folder.changed_at(name::SPAWNING))
    }

    /// The output of a task, while it runs or afterwards.
    pub fn output(&self, id: TaskId) -> Result<Output> {
        self.folder_of(id)?.map(Output::of).ok_or(Error::NoSuchTask { id })
    }

    /// All tasks with a folder, the oldest first. Most of them have ended.
    pub fn all(&self) -> Result<Vec<TaskId>> {
        let mut all: Vec<TaskId> = self.names()?.iter().filter_map(|name| name.parse().ok()).collect();
        all.sort_unstable();
        Ok(all)
    }

    /// The orphans of a task; `None` if there are none. [`Tasks::kill`] kills them.
    pub fn left_behind(&self, id: TaskId) -> Result<Option<LeftBehind>> {
        orphans::left_behind(self, id)
    }

    /// All tasks with orphans, the oldest first. A task whose folder can't be read is left out.
    pub fn all_left_behind(&self) -> Vec<LeftBehind> {
        let all = self.all().unwrap_or_default().into_iter();
        all.filter_map(|id| self.left_behind(id).ok().flatten()).collect()
    }

    /// Removes the folders of tasks that ended longer ago than this, and returns their ids. A task that runs, has orphans or
    /// is needed stays. Leftovers of crashes are removed, too. After an error it goes on with the others, and returns the
    /// first error at the end.
    pub fn expire(&self, older_than: Duration, is_needed: impl Fn(TaskId) -> bool) -> Result<Vec<TaskId>> {
        expiry::expire(self, older_than, is_needed)
    }

    /// The names of everything in the folder of tasks.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        Folder::within(self.folder.as_fd(), ".")?.map_or(Ok(Vec::new()), |folder| folder.names())
    }

    pub(crate) fn handle(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    pub(crate) fn folder_of(&self, id: TaskId) -> Result<Option<Folder>> {
        Folder::within(self.folder.as_fd(), &id.to_string())
    }

    /// Reaps keepers that have ended.
    fn reap(&self) {
        let mut keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.retain_mut(|keeper| matches!(keeper.try_wait(), Ok(None)));
    }
}

fn opened(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, folder, flags, Mode::empty())?)
}

/// Adopts a running task. If its spec can't be read, the task can only be killed.
fn adopt(id: TaskId, folder: Folder) -> Task {
    let spec = folder.read(name::SPEC).ok().flatten();
    let spec = spec.and_then(|bytes| decode::<Spec>(&folder.title(name::SPEC), &bytes).ok());
    Task::new(id, folder, spec.map(|spec| spec.token_file))
}

/// Whether the process that holds the folder's lock is a keeper. False if the lock was released meanwhile.
fn is_locked_by_keeper(id: TaskId, folder: &Folder) -> Result<bool> {
    let since = Instant::now();
    loop {
        if liveness::keeper_by_record(folder).is_some() {
            return Ok(true);
        }
        match liveness::connect_keeper(folder)? {
            KeeperConnection::Open(_) | KeeperConnection::Busy => return Ok(true),
            KeeperConnection::Absent if !liveness::is_alive(folder)? => return Ok(false),
            KeeperConnection::Absent => {}
        }
        if since.elapsed() > LOCK_TIMEOUT {
            // Only a keeper holds the lock for that long, and only a keeper starts a command.
            return if folder.may_have_started()? { Ok(true) } else { Err(Error::NotAnswering { id }) };
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// For a dead keeper without a status: kills the orphans. Only once, because later their pids may be reused.
fn clean_up_dead_keeper(id: TaskId, folder: &Folder) -> Result<Found> {
    if !folder.has(name::LOST)? && orphan_cleanup::kill_orphans(id, liveness::recorded_processes(folder)) {
        let _ = folder.write(name::LOST, b"");
    }
    lost_or_unknown(folder)
}

fn lost_or_unknown(folder: &Folder) -> Result<Found> {
    Ok(if folder.has(name::PID)? { Found::Lost } else { Found::Unknown })
}

/// Waits for the supervisor's report, until the start is given up.
fn await_report(id: TaskId, report: &UnixStream, is_given_up: impl Fn() -> bool) -> Result<()> {
    report.set_read_timeout(Some(START_POLL_INTERVAL)).map_err(Error::io("waiting for the supervisor"))?;
    let since = Instant::now();
    let mut line = Vec::new();
    let mut lines = BufReader::new(report.take(MAX_REPORT_BYTES));
    loop {
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => return Err(Error::Interrupted { id }),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                return Err(Error::Interrupted { id });
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(Error::io("waiting for the supervisor")(error));
            }
            Err(_) if is_given_up() => {
                return Err(Error::NotStarted {
                    reason: "it was given up before its supervisor started".to_owned(),
                });
            }
            Err(_) if since.elapsed() > START_TIMEOUT => return Err(Error::NotAnswering { id }),
            Err(_) => {}
        }
    }
    let report: StartReport = decode("the supervisor's report", &line)?;
    report.failed.map_or(Ok(()), |reason| Err(Error::NotStarted { reason }))
}

/// The content of the file `id`, which is created atomically if it doesn't exist.
fn identity_of(folder: &Path) -> io::Result<String> {
    let path = folder.join("id");
    if let Ok(known) = fs::read_to_string(&path) {
        return Ok(known);
    }
    let own = CallId::generate().to_string();
    let draft = folder.join(format!("id.{own}"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(own.as_bytes())?;
    file.sync_all()?;
    let linked = fs::hard_link(&draft, &path);
    fs::remove_file(&draft)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => fs::read_to_string(&path),
    }
}
