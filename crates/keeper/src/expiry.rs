//! K16: what is left of tasks that have ended goes after a while, and that they have run stays known for longer.
//!
//! A folder that is not there means that a command was never started, and may be. So before a folder goes, a file `expired/<id>`
//! says that there was one. The folder is then moved aside, so that it is there whole or not at all, and removed. Whoever dies
//! in between leaves something that the next one finds, and two at once do the same thing twice.
//!
//! | after | on disk | [`Tasks::find`] |
//! | --- | --- | --- |
//! | nothing | the folder | `Ended`, `Lost` or `Unknown` |
//! | it is noted | the folder, `expired/<id>` | the same |
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

/// Where it is noted which tasks have expired; and what the name of a folder ends with that is about to be removed.
const EXPIRED: &str = "expired";
/// For so long it is known that an expired task had run.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// A start is given up after a minute. What looks like one is left alone for longer.
const STARTING: Duration = Duration::from_secs(10 * 60);
/// How the drafts of the file `id` begin.
const DRAFT: &str = "id.";

impl Tasks {
    /// Removes the folders of tasks that ended before so long, and says whose. One that runs is never touched, nor one that
    /// somebody needs. What else was left lying around goes, too. Trouble with one is no reason to keep another: the first is told when all is done.
    pub fn expire(&self, older_than: Duration, is_needed: impl Fn(TaskId) -> bool) -> Result<Vec<TaskId>> {
        let (mut expired, mut trouble) = (Vec::new(), None);
        for name in self.names()? {
            let done = match name.parse::<TaskId>() {
                Ok(id) if is_needed(id) => Ok(()),
                Ok(id) => self.expire_task(id, older_than).map(|has| expired.extend(has.then_some(id))),
                Err(_) => self.expire_remains(&name, older_than),
            };
            trouble = trouble.or(done.err());
        }
        trouble = trouble.or(self.forget().err());
        trouble.map_or(Ok(expired), Err)
    }

    /// Whether this task has run, and its folder was removed since.
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
            // What it left behind can be ended as long as its folder is there.
            Ok(Some(_)) if self.left_behind(id)?.is_some() => return Ok(false),
            Ok(Some(status)) if is_older(status.ended_at, older_than) => {}
            // One that a newer version wrote is for that one to judge.
            Ok(Some(_)) | Err(Error::Newer { .. }) => return Ok(false),
            Err(error) => return Err(error),
            Ok(None) => {
                let older_than = if folder.has_begun()? { older_than } else { older_than.max(STARTING) };
                if !is_older(folder.last_change()?, older_than) {
                    return Ok(false);
                }
                match self.find(id)? {
                    Found::Lost | Found::Unknown => {}
                    // A start that came to nothing was moved aside just now.
                    Found::Running(_) | Found::Ended(_) | Found::NotStarted | Found::Expired => {
                        return Ok(false);
                    }
                }
            }
        }
        self.note(id)?;
        let name = id.to_string();
        if !folder.is(self.handle(), &name) {
            return Ok(false);
        }
        match folder.move_aside(self.handle(), &name, EXPIRED) {
            Ok(()) => {}
            // Somebody else was faster.
            Err(_) if !folder.is(self.handle(), &name) => return Ok(false),
            Err(error) => return Err(error),
        }
        for name in self.names()?.iter().filter(|aside| kind_of(aside) == Some((id, EXPIRED))) {
            self.remove(name)?;
        }
        Ok(true)
    }

    /// What is not the folder of a task: what was moved aside, and drafts.
    fn expire_remains(&self, name: &str, older_than: Duration) -> Result<()> {
        if name.starts_with(DRAFT) {
            let folder = Folder::within(self.handle(), ".")?.ok_or_else(gone)?;
            let is_old = folder.changed_at(name)?.is_some_and(|at| is_older(at, older_than));
            return if is_old { folder.remove(name) } else { Ok(()) };
        }
        match kind_of(name) {
            Some((_, EXPIRED)) => self.remove(name),
            Some((_, VOID)) => {
                let Some(folder) = Folder::within(self.handle(), name)? else { return Ok(()) };
                if is_older(folder.last_change()?, older_than) { self.remove(name) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Notes that there was a task, on disk when this returns.
    fn note(&self, id: TaskId) -> Result<()> {
        match mkdirat(self.handle(), EXPIRED, Mode::from_raw_mode(PRIVATE)) {
            Ok(()) => fsync(self.handle()).map_err(Error::io("writing the folder of tasks to disk"))?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(Error::io("making the folder of expired tasks")(error)),
        }
        let notes = Folder::within(self.handle(), EXPIRED)?.ok_or_else(gone)?;
        match notes.write(&id.to_string(), b"") {
            Ok(()) => notes.sync(),
            Err(_) if notes.has(&id.to_string())? => notes.sync(),
            Err(error) => Err(error),
        }
    }

    /// Removes a folder that was moved aside. The spec goes first and the lock last, so that a keeper that is very late finds
    /// nothing to start.
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

    /// Forgets tasks that expired long ago.
    fn forget(&self) -> Result<()> {
        let Some(notes) = Folder::within(self.handle(), EXPIRED)? else { return Ok(()) };
        for name in notes.names()? {
            if notes.changed_at(&name)?.is_some_and(|at| is_older(at, REMEMBERED)) {
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

/// The task and the reason for which a folder was moved aside: `task_….void-1`.
fn kind_of(name: &str) -> Option<(TaskId, &str)> {
    let (id, rest) = name.split_once('.')?;
    let (kind, number) = rest.split_once('-')?;
    number.parse::<u32>().ok()?;
    Some((id.parse().ok()?, kind))
}

fn gone() -> Error {
    Error::Io { what: "reading the folder of tasks".to_owned(), source: Errno::NOENT.into() }
}
