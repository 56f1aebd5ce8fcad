//! K16: expiry of ended tasks. The folder of a task is removed after a while. The fact that the task ran is kept
//! longer.
//!
//! A missing folder means that the command was never started and may be started. So before a folder is removed, a
//! file `expired/<id>` records that it existed. The folder is then renamed, so that it exists completely or not at
//! all, and removed. After a crash in between, the next expiry finishes the work. Two processes may run the expiry at
//! once.
//!
//! | after | on disk | [`Tasks::find`] |
//! | --- | --- | --- |
//! | nothing | the folder | `Ended`, `Lost` or `Unknown` |
//! | the expiry is recorded | the folder, `expired/<id>` | the same |
//! | it is moved | `task_….expired-1`, `expired/<id>` | `Expired` |
//! | it is removed | `expired/<id>` | `Expired` |

use std::time::Duration;

use longhaul_protocol::{At, TaskId};
use rustix::fs::{AtFlags, Mode, fsync, mkdirat, statat, unlinkat};
use rustix::io::Errno;

use crate::folder::{Folder, Locked, name};
use crate::format::now;
use crate::task::known_status;
use crate::tasks::{PRIVATE, VOID};
use crate::{Error, Found, Result, Tasks};

/// The folder of expired ids, and the suffix of a folder that is about to be removed.
const EXPIRED: &str = "expired";
/// How long an expired id is kept.
const EXPIRED_RETENTION: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long to leave a folder alone that looks like a start under way. A runtime gives up a start after a minute.
const START_GRACE: Duration = Duration::from_secs(10 * 60);
/// The prefix of the drafts of the file `id`.
const DRAFT: &str = "id.";

impl Tasks {
    /// Removes the folders of tasks that ended longer ago than this, and returns their ids. Keeps a task that runs,
    /// has orphans or is needed. Also removes leftovers of crashes. After an error it continues with the other tasks,
    /// and returns the first error at the end.
    pub fn expire(&self, older_than: Duration, is_needed: impl Fn(TaskId) -> bool) -> Result<Vec<TaskId>> {
        let (mut expired, mut trouble) = (Vec::new(), None);
        for name in self.names()? {
            let done = match name.parse::<TaskId>() {
                Ok(id) if is_needed(id) => Ok(()),
                Ok(id) => self.expire_task(id, older_than).map(|has| expired.extend(has.then_some(id))),
                Err(_) => self.expire_leftovers(&name, older_than),
            };
            trouble = trouble.or(done.err());
        }
        trouble = trouble.or(self.forget_old_ids().err());
        trouble.map_or(Ok(expired), Err)
    }

    /// Whether this task ran and its folder was removed.
    pub(crate) fn has_expired(&self, id: TaskId) -> Result<bool> {
        match statat(self.handle(), format!("{EXPIRED}/{id}"), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            Err(error) => Err(Error::io(format!("looking whether {id} has expired"))(error)),
        }
    }

    fn expire_task(&self, id: TaskId, older_than: Duration) -> Result<bool> {
        let Some(folder) = self.folder_of(id)? else { return Ok(false) };
        match known_status(&folder) {
            // Its orphans can be killed only while its folder exists.
            Ok(Some(_)) if self.left_behind(id)?.is_some() => return Ok(false),
            Ok(Some(status)) if is_older(status.ended_at, older_than) => {}
            // A newer version decides about its own tasks.
            Ok(Some(_)) | Err(Error::Newer { .. }) => return Ok(false),
            Err(error) => return Err(error),
            Ok(None) => {
                let older_than =
                    if folder.may_have_started()? { older_than } else { older_than.max(START_GRACE) };
                if !is_older(folder.last_change()?, older_than) {
                    return Ok(false);
                }
                match self.find(id)? {
                    Found::Lost | Found::Unknown => {}
                    // The lookup has already voided a start that failed.
                    Found::Running(_) | Found::Ended(_) | Found::NotStarted | Found::Expired => {
                        return Ok(false);
                    }
                }
            }
        }
        self.record_expiry(id)?;
        let name = id.to_string();
        if !folder.is(self.handle(), &name) {
            return Ok(false);
        }
        match folder.move_aside(self.handle(), &name, EXPIRED) {
            Ok(()) => {}
            // Another process was faster.
            Err(_) if !folder.is(self.handle(), &name) => return Ok(false),
            Err(error) => return Err(error),
        }
        for name in self.names()?.iter().filter(|aside| parse_moved_name(aside) == Some((id, EXPIRED))) {
            self.remove(name)?;
        }
        Ok(true)
    }

    /// Removes entries that are not the folder of a task: renamed folders, and drafts.
    fn expire_leftovers(&self, name: &str, older_than: Duration) -> Result<()> {
        if name.starts_with(DRAFT) {
            let folder = Folder::within(self.handle(), ".")?.ok_or_else(missing_folder)?;
            let is_old = folder.changed_at(name)?.is_some_and(|at| is_older(at, older_than));
            return if is_old { folder.remove(name) } else { Ok(()) };
        }
        match parse_moved_name(name) {
            Some((_, EXPIRED)) => self.remove(name),
            Some((_, VOID)) => {
                let Some(folder) = Folder::within(self.handle(), name)? else { return Ok(()) };
                if is_older(folder.last_change()?, older_than) { self.remove(name) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Records durably that the task existed.
    fn record_expiry(&self, id: TaskId) -> Result<()> {
        match mkdirat(self.handle(), EXPIRED, Mode::from_raw_mode(PRIVATE)) {
            Ok(()) => fsync(self.handle()).map_err(Error::io("writing the folder of tasks to disk"))?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(Error::io("making the folder of expired tasks")(error)),
        }
        let notes = Folder::within(self.handle(), EXPIRED)?.ok_or_else(missing_folder)?;
        match notes.write(&id.to_string(), b"") {
            Ok(()) => notes.sync(),
            Err(_) if notes.has(&id.to_string())? => notes.sync(),
            Err(error) => Err(error),
        }
    }

    /// Removes a renamed folder. The spec goes first and the lock last, so that a late keeper finds nothing to start.
    fn remove(&self, name: &str) -> Result<()> {
        let Some(folder) = Folder::within(self.handle(), name)? else { return Ok(()) };
        let _lock = match folder.try_lock() {
            Ok(Locked::Theirs) => return Ok(()),
            Ok(Locked::Ours(lock)) => Some(lock),
            Ok(Locked::Missing) | Err(_) => None,
        };
        folder.remove(name::SPEC)?;
        for file in folder.names()?.iter().filter(|file| *file != name::LOCK) {
            folder.remove(file)?;
        }
        folder.remove(name::LOCK)?;
        match unlinkat(self.handle(), name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(Error::io(format!("removing {name}"))(error)),
        }
    }

    /// Removes ids that expired long ago.
    fn forget_old_ids(&self) -> Result<()> {
        let Some(notes) = Folder::within(self.handle(), EXPIRED)? else { return Ok(()) };
        for name in notes.names()? {
            if notes.changed_at(&name)?.is_some_and(|at| is_older(at, EXPIRED_RETENTION)) {
                notes.remove(&name)?;
            }
        }
        Ok(())
    }
}

fn is_older(at: At, than: Duration) -> bool {
    let than = i64::try_from(than.as_millis()).unwrap_or(i64::MAX);
    now().0.saturating_sub(at.0) >= than
}

/// The task and the reason in the name of a renamed folder: `task_….void-1`.
fn parse_moved_name(name: &str) -> Option<(TaskId, &str)> {
    let (id, rest) = name.split_once('.')?;
    let (kind, number) = rest.split_once('-')?;
    number.parse::<u32>().ok()?;
    Some((id.parse().ok()?, kind))
}

fn missing_folder() -> Error {
    Error::Io { what: "reading the folder of tasks".to_owned(), source: Errno::NOENT.into() }
}
