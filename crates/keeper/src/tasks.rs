//! The folder of all tasks, as the runtime sees it: starting a command exactly once, and finding out what became of one.

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
use crate::holder::{self, Reached};
use crate::task::known_status;
use crate::{Enforcement, Error, Launcher, Output, Result, Status, Task, strays};

/// A keeper says within milliseconds that the command started; a disk that is very busy can make that seconds.
const PATIENCE_WITH_START: Duration = Duration::from_secs(60);
/// How often it is looked whether the start was given up meanwhile.
const PAUSE_OF_START: Duration = Duration::from_millis(50);
/// Somebody who only wants to know has a lock for milliseconds; ending what a dead keeper left can make that seconds.
const PATIENCE_WITH_LOCK: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(2);
/// A report is one short line.
const LONGEST_REPORT: u64 = 64 << 10;
/// What the name of a folder ends with of which the command was not started.
pub(crate) const VOID: &str = "void";
/// In which nobody but the user may look.
pub(crate) const PRIVATE: u32 = 0o700;

/// All tasks of a home.
#[derive(Debug)]
pub struct Tasks {
    folder: OwnedFd,
    identity: String,
    launcher: Launcher,
    enforcement: OnceLock<Enforcement>,
    /// Keepers that this process started and that may have ended: the system keeps their entries until they are asked for.
    keepers: Mutex<Vec<Child>>,
}

/// What became of a task.
#[derive(Debug)]
pub enum Found {
    /// The command did not run, and no keeper that is still on its way can make it run: it may be started (again).
    NotStarted,
    /// Its keeper lives.
    Running(Task),
    /// It ended.
    Ended(Status),
    /// The keeper died while it was starting the command: it may or may not have begun.
    Unknown,
    /// The keeper died while the command was running. What was left of it was ended.
    Lost,
    /// It ran, and ended so long ago that its folder was removed.
    Expired,
}

/// What a folder says of its task.
enum Within {
    Found(Found),
    Running,
    /// It may not be the task's folder any more: look again.
    Moved,
}

impl Tasks {
    /// The tasks in this folder, which is made if it isn't there.
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

    /// The tasks in this folder, for whoever only looks: nothing is made here, and nothing is changed. None, if the folder isn't
    /// there: nothing was ever started then.
    pub fn existing(folder: &Path, launcher: Launcher) -> Result<Option<Self>> {
        let said = |error: io::Error| {
            Error::io(format!("opening the folder of tasks {}", folder.printable()))(error)
        };
        let handle = match opened(folder) {
            Ok(handle) => handle,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(said(error)),
        };
        // Whoever only looks needs no identity; whoever starts something has given it one.
        let identity = fs::read_to_string(folder.join("id")).unwrap_or_default();
        Ok(Some(Self::of(handle, identity, launcher)))
    }

    fn of(folder: OwnedFd, identity: String, launcher: Launcher) -> Self {
        Self { folder, identity, launcher, enforcement: OnceLock::new(), keepers: Mutex::default() }
    }

    /// The same, with this in place of what a probe finds. It decides what is asked of keepers; one that can't carry that out starts nothing all
    /// the same.
    #[must_use]
    pub fn with_enforcement(self, enforcement: Enforcement) -> Self {
        Self { enforcement: OnceLock::from(enforcement), ..self }
    }

    /// What tells this folder from any other: a task that is not found here was perhaps kept elsewhere.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// What keepers can enforce here. Tried out the first time, which blocks for a few milliseconds.
    pub fn enforcement(&self) -> &Enforcement {
        self.enforcement.get_or_init(|| {
            what_can_be_enforced(&self.launcher).unwrap_or_else(|error| Enforcement {
                no_landlock: Some(error.to_string()),
                no_namespaces: Some(error.to_string()),
                ..Enforcement::default()
            })
        })
    }

    /// Starts a command under a keeper of its own and returns when it has begun. Blocks for a few milliseconds.
    pub fn start(&self, spec: &Spec) -> Result<Task> {
        self.reap();
        let id = spec.task_id;
        let name = id.to_string();
        if self.has_expired(id)? {
            return Err(Error::Exists { id });
        }
        match mkdirat(&self.folder, &*name, Mode::from_raw_mode(PRIVATE)) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(Error::Exists { id }),
            Err(error) => return Err(Error::io(format!("making the folder of {id}"))(error)),
        }
        let folder = Folder::within(self.folder.as_fd(), &name)?.ok_or(Error::NoSuchTask { id })?;
        folder.write(name::SPEC, &encode(spec))?;
        // The keeper syncs the folder itself before the command starts. That the folder is there must be on disk before, or
        // a power loss could make a command that has run look as if it had not.
        fsync(&self.folder).map_err(Error::io("writing the folder of tasks to disk"))?;

        let (report, theirs) = UnixStream::pair().map_err(Error::io("making a connection to the keeper"))?;
        let keeper = self
            .launcher
            .launch(&folder.short_path(), theirs.into())
            .map_err(|error| Error::NotStarted { reason: format!("its keeper can't be run ({error})") })?;
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner).push(keeper);
        let is_given_up = || !folder.is(self.folder.as_fd(), &name);
        hear_report(id, &report, is_given_up)?;
        Ok(Task::new(id, folder, Some(spec.token_file.clone())))
    }

    /// Finds out what became of a task. If it did not begin, this also sees to it that it never will by itself.
    pub fn find(&self, id: TaskId) -> Result<Found> {
        self.reap();
        let name = id.to_string();
        loop {
            let Some(folder) = self.folder_of(id)? else {
                // What expires is noted before its folder goes, so this is asked afterwards.
                return Ok(if self.has_expired(id)? { Found::Expired } else { Found::NotStarted });
            };
            match self.find_in(id, &folder) {
                Ok(Within::Found(found)) => return Ok(found),
                Ok(Within::Running) => return Ok(Found::Running(adopt(id, folder))),
                // Somebody has moved it aside since it was opened.
                Ok(Within::Moved) => {}
                Err(_) if !folder.is(self.folder.as_fd(), &name) => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn find_in(&self, id: TaskId, folder: &Folder) -> Result<Within> {
        let name = id.to_string();
        // A keeper that still has the lock is tidying up then, or stays for what the command left behind.
        if let Some(status) = known_status(folder)? {
            return Ok(Within::Found(Found::Ended(status)));
        }
        let lock = match folder.try_lock()? {
            Locked::Ours(lock) => lock,
            Locked::Theirs if is_kept(id, folder)? => return Ok(Within::Running),
            // Somebody only wanted to know.
            Locked::Theirs => return Ok(Within::Moved),
            Locked::Missing if holder::living(folder).is_some() => return Ok(Within::Running),
            // Without a lock and without a word of the keeper nobody knows whether it lives, so nothing is ended.
            Locked::Missing if holder::recorded(folder).keeper.is_none() => {
                return lost_or_unknown(folder).map(Within::Found);
            }
            Locked::Missing => return gone(id, folder).map(Within::Found),
        };
        if !folder.is(self.folder.as_fd(), &name) {
            return Ok(Within::Moved);
        }
        if let Some(status) = known_status(folder)? {
            return Ok(Within::Found(Found::Ended(status)));
        }
        if !folder.has(name::VOID)? && folder.has_begun()? {
            return gone(id, folder).map(Within::Found);
        }
        if !folder.has(name::VOID)? {
            folder.write(name::VOID, b"")?;
            folder.sync()?;
        }
        folder.move_aside(self.folder.as_fd(), &name, VOID)?;
        drop(lock);
        Ok(Within::Found(Found::NotStarted))
    }

    /// Sees to it that nothing of a task runs, nor ever will by itself, and returns when that is so.
    pub fn kill(&self, id: TaskId) -> Result<()> {
        match self.find(id)? {
            Found::Running(task) => task.kill(),
            // Its keeper lives on if it has left something behind.
            Found::Ended(_) => match self.folder_of(id)? {
                Some(folder) if holder::lives(&folder)? => adopt(id, folder).kill(),
                _ => Ok(()),
            },
            Found::NotStarted | Found::Unknown | Found::Lost | Found::Expired => Ok(()),
        }
    }

    /// Whether somebody keeps a task now: also where [`Tasks::find`] has trouble, it still runs then.
    pub fn is_kept(&self, id: TaskId) -> Result<bool> {
        self.folder_of(id)?.map_or(Ok(false), |folder| holder::lives(&folder))
    }

    /// How a task ended, as far as its keeper wrote that down. Cheap: only [`Tasks::find`] can tell whether one without a
    /// status still runs.
    pub fn status(&self, id: TaskId) -> Result<Option<Status>> {
        Folder::within(self.folder.as_fd(), &id.to_string())?.map_or(Ok(None), |folder| known_status(&folder))
    }

    /// What was asked for: the command, and all that it was started with.
    pub fn spec(&self, id: TaskId) -> Result<Option<Spec>> {
        let Some(folder) = self.folder_of(id)? else { return Ok(None) };
        let bytes = folder.read(name::SPEC)?;
        bytes.map(|bytes| decode(&folder.title(name::SPEC), &bytes)).transpose()
    }

    /// When the start of a task began.
    pub fn started_at(&self, id: TaskId) -> Result<Option<At>> {
        self.folder_of(id)?.map_or(Ok(None), |folder| folder.changed_at(name::SPAWNING))
    }

    /// What a task has printed, while it runs or afterwards.
    pub fn output(&self, id: TaskId) -> Result<Output> {
        self.folder_of(id)?.map(Output::of).ok_or(Error::NoSuchTask { id })
    }

    /// Every task that has a folder here, the oldest first. Most of them have ended.
    pub fn all(&self) -> Result<Vec<TaskId>> {
        let mut all: Vec<TaskId> = self.names()?.iter().filter_map(|name| name.parse().ok()).collect();
        all.sort_unstable();
        Ok(all)
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

    /// Lets the system forget keepers that have ended.
    fn reap(&self) {
        let mut keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.retain_mut(|keeper| matches!(keeper.try_wait(), Ok(None)));
    }
}

fn opened(folder: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(CWD, folder, flags, Mode::empty())?)
}

/// A task that runs. Where its spec can't be read any more, it can only be ended.
fn adopt(id: TaskId, folder: Folder) -> Task {
    let spec = folder.read(name::SPEC).ok().flatten();
    let spec = spec.and_then(|bytes| decode::<Spec>(&folder.title(name::SPEC), &bytes).ok());
    Task::new(id, folder, spec.map(|spec| spec.token_file))
}

/// Whether it is a keeper that has the lock of this folder. False if nobody has it any more: somebody only wanted to know.
fn is_kept(id: TaskId, folder: &Folder) -> Result<bool> {
    let since = Instant::now();
    loop {
        if holder::by_record(folder).is_some() {
            return Ok(true);
        }
        match holder::reach(folder)? {
            Reached::Open(_) | Reached::Busy => return Ok(true),
            Reached::Nobody if !holder::lives(folder)? => return Ok(false),
            Reached::Nobody => {}
        }
        if since.elapsed() > PATIENCE_WITH_LOCK {
            // Nobody else has a lock for so long, and only a keeper begins anything.
            return if folder.has_begun()? { Ok(true) } else { Err(Error::NotAnswering { id }) };
        }
        std::thread::sleep(PAUSE);
    }
}

/// The keeper is dead and has left no status. What is left of its command is ended, once: later the numbers by which it is
/// known may be those of others.
fn gone(id: TaskId, folder: &Folder) -> Result<Found> {
    if !folder.has(name::LOST)? && strays::end(id, holder::recorded(folder)) {
        let _ = folder.write(name::LOST, b"");
    }
    lost_or_unknown(folder)
}

fn lost_or_unknown(folder: &Folder) -> Result<Found> {
    Ok(if folder.has(name::PID)? { Found::Lost } else { Found::Unknown })
}

/// Waits for the one line in which the keeper says whether the command started, as long as the start is not given up.
fn hear_report(id: TaskId, report: &UnixStream, is_given_up: impl Fn() -> bool) -> Result<()> {
    report.set_read_timeout(Some(PAUSE_OF_START)).map_err(Error::io("waiting for the keeper"))?;
    let since = Instant::now();
    let mut line = Vec::new();
    let mut lines = BufReader::new(report.take(LONGEST_REPORT));
    loop {
        match lines.read_until(b'\n', &mut line) {
            Ok(0) => return Err(Error::Interrupted { id }),
            Ok(_) => break,
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                return Err(Error::Interrupted { id });
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                return Err(Error::io("waiting for the keeper")(error));
            }
            Err(_) if is_given_up() => {
                return Err(Error::NotStarted {
                    reason: "it was given up before its keeper began".to_owned(),
                });
            }
            Err(_) if since.elapsed() > PATIENCE_WITH_START => return Err(Error::NotAnswering { id }),
            Err(_) => {}
        }
    }
    let report: StartReport = decode("the keeper's report", &line)?;
    report.failed.map_or(Ok(()), |reason| Err(Error::NotStarted { reason }))
}

/// The content of the file `id`, which is made, whole, if it isn't there.
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
