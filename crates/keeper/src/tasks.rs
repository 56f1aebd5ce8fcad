//! The folder of all tasks, as the runtime sees it: starting a command exactly once, and finding out what became of one.

use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use longhaul_protocol::TaskId;
use rustix::fs::{CWD, Mode, OFlags, fsync, mkdirat, openat};
use rustix::io::Errno;

use crate::folder::{Folder, name};
use crate::format::{Spec, StartReport, decode, encode};
use crate::task::{reach, read_status};
use crate::{Error, Launcher, Output, Result, Status, Task, strays};

/// A keeper says within milliseconds that the command started; a disk that is very busy can make that seconds.
const PATIENCE_WITH_START: Duration = Duration::from_secs(60);
/// A report is one short line.
const LONGEST_REPORT: u64 = 64 << 10;
/// In which nobody but the user may look.
const PRIVATE: u32 = 0o700;

/// All tasks of a home.
#[derive(Debug)]
pub struct Tasks {
    folder: OwnedFd,
    launcher: Launcher,
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
}

impl Tasks {
    /// The tasks in this folder, which is made if it isn't there.
    pub fn at(folder: &Path, launcher: Launcher) -> Result<Self> {
        let said =
            |error: io::Error| Error::io(format!("opening the folder of tasks {}", folder.display()))(error);
        DirBuilder::new().recursive(true).mode(PRIVATE).create(folder).map_err(said)?;
        fs::set_permissions(folder, Permissions::from_mode(PRIVATE)).map_err(said)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = openat(CWD, folder, flags, Mode::empty()).map_err(|error| said(error.into()))?;
        Ok(Self { folder: handle, launcher, keepers: Mutex::default() })
    }

    /// Starts a command under a keeper of its own and returns when it has begun. Blocks for a few milliseconds.
    pub fn start(&self, spec: &Spec) -> Result<Task> {
        self.reap();
        let id = spec.task_id;
        let name = id.to_string();
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
        hear_report(id, &report)?;
        Ok(Task::new(id, folder, spec.token_file.clone()))
    }

    /// Finds out what became of a task. If it did not begin, this also sees to it that it never will by itself.
    pub fn find(&self, id: TaskId) -> Result<Found> {
        self.reap();
        let name = id.to_string();
        loop {
            let Some(folder) = Folder::within(self.folder.as_fd(), &name)? else {
                return Ok(Found::NotStarted);
            };
            // Whoever still has the lock is only tidying up then.
            if let Some(status) = read_status(&folder)? {
                return Ok(Found::Ended(status));
            }
            let Some(_lock) = folder.try_lock()? else {
                // A keeper has it, or somebody else who wants to know has it for a moment.
                match reach(id, &folder)? {
                    Some(_) => return Ok(Found::Running(self.adopt(id, folder)?)),
                    None => continue,
                }
            };
            if !folder.is(self.folder.as_fd(), &name) {
                // Somebody has moved it aside since it was opened.
                continue;
            }
            if let Some(status) = read_status(&folder)? {
                return Ok(Found::Ended(status));
            }
            if !folder.has(name::VOID)? && (folder.has(name::SPAWNING)? || folder.has(name::PID)?) {
                strays::end(id);
                return Ok(if folder.has(name::PID)? { Found::Lost } else { Found::Unknown });
            }
            if !folder.has(name::VOID)? {
                folder.write(name::VOID, b"")?;
                folder.sync()?;
            }
            folder.move_aside(self.folder.as_fd(), &name)?;
            return Ok(Found::NotStarted);
        }
    }

    /// What a task has printed, while it runs or afterwards.
    pub fn output(&self, id: TaskId) -> Result<Output> {
        let folder = Folder::within(self.folder.as_fd(), &id.to_string())?;
        folder.map(Output::of).ok_or(Error::NoSuchTask { id })
    }

    fn adopt(&self, id: TaskId, folder: Folder) -> Result<Task> {
        let missing =
            || Error::Damaged { file: folder.title(name::SPEC), reason: "it is missing".to_owned() };
        let bytes = folder.read(name::SPEC)?.ok_or_else(missing)?;
        let spec: Spec = decode(&folder.title(name::SPEC), &bytes)?;
        Ok(Task::new(id, folder, spec.token_file))
    }

    /// Lets the system forget keepers that have ended.
    fn reap(&self) {
        let mut keepers = self.keepers.lock().unwrap_or_else(PoisonError::into_inner);
        keepers.retain_mut(|keeper| matches!(keeper.try_wait(), Ok(None)));
    }
}

/// Waits for the one line in which the keeper says whether the command started.
fn hear_report(id: TaskId, report: &UnixStream) -> Result<()> {
    report.set_read_timeout(Some(PATIENCE_WITH_START)).map_err(Error::io("waiting for the keeper"))?;
    let mut line = Vec::new();
    match BufReader::new(report.take(LONGEST_REPORT)).read_until(b'\n', &mut line) {
        Ok(0) => return Err(Error::Interrupted { id }),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
            return Err(Error::Interrupted { id });
        }
        Err(_) => return Err(Error::NotAnswering { id }),
    }
    let report: StartReport = decode("the keeper's report", &line)?;
    report.failed.map_or(Ok(()), |reason| Err(Error::NotStarted { reason }))
}
