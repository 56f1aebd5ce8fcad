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

/// See [`Tasks::expire`].
pub(crate) fn expire(
    tasks: &Tasks,
    older_than: Duration,
    is_needed: impl Fn(TaskId) -> bool,
) -> Result<Vec<TaskId>> {
    let (mut expired, mut trouble) = (Vec::new(), None);
    for name in tasks.names()? {
        let done = match name.parse::<TaskId>() {
            Ok(id) if is_needed(id) => Ok(()),
            Ok(id) => expire_task(tasks, id, older_than).map(|has| expired.extend(has.then_some(id))),
            Err(_) => expire_leftovers(tasks, &name, older_than),
        };
        trouble = trouble.or(done.err());
    }
    trouble = trouble.or(forget_old_ids(tasks).err());
    trouble.map_or(Ok(expired), Err)
}

/// Whether this task has run and its folder was removed.
pub(crate) fn has_expired(tasks: &Tasks, id: TaskId) -> Result<bool> {
    match statat(tasks.handle(), format!("{EXPIRED}/{id}"), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(_) => Ok(true),
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        Err(error) => Err(Error::io(format!("looking whether {id} has expired"))(error)),
    }
}

fn expire_task(tasks: &Tasks, id: TaskId, older_than: Duration) -> Result<bool> {
    let Some(folder) = tasks.folder_of(id)? else { return Ok(false) };
    match known_status(&folder) {
        // Its orphans can be killed only while its folder exists.
        Ok(Some(_)) if tasks.left_behind(id)?.is_some() => return Ok(false),
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
            match tasks.find(id)? {
                Found::Lost | Found::Unknown => {}
                // The lookup has voided a start that failed.
                Found::Running(_) | Found::Ended(_) | Found::NotStarted | Found::Expired => {
                    return Ok(false);
                }
            }
        }
    }
    record_expiry(tasks, id)?;
    let name = id.to_string();
    if !folder.is(tasks.handle(), &name) {
        return Ok(false);
    }
    match folder.move_aside(tasks.handle(), &name, EXPIRED) {
        Ok(()) => {}
        // Another process was faster.
        Err(_) if !folder.is(tasks.handle(), &name) => return Ok(false),
        Err(error) => return Err(error),
    }
    for name in tasks.names()?.iter().filter(|aside| parse_moved_name(aside) == Some((id, EXPIRED))) {
        remove(tasks, name)?;
    }
    Ok(true)
}

/// Removes what is not the folder of a task: moved folders, and drafts.
fn expire_leftovers(tasks: &Tasks, name: &str, older_than: Duration) -> Result<()> {
    if name.starts_with(DRAFT) {
        let folder = Folder::within(tasks.handle(), ".")?.ok_or_else(missing_folder)?;
        let is_old = folder.changed_at(name)?.is_some_and(|at| is_older(at, older_than));
        return if is_old { folder.remove(name) } else { Ok(()) };
    }
    match parse_moved_name(name) {
        Some((_, EXPIRED)) => remove(tasks, name),
        Some((_, VOID)) => {
            let Some(folder) = Folder::within(tasks.handle(), name)? else { return Ok(()) };
            if is_older(folder.last_change()?, older_than) { remove(tasks, name) } else { Ok(()) }
        }
        _ => Ok(()),
    }
}

/// Records durably that there was a task.
fn record_expiry(tasks: &Tasks, id: TaskId) -> Result<()> {
    match mkdirat(tasks.handle(), EXPIRED, Mode::from_raw_mode(PRIVATE)) {
        Ok(()) => fsync(tasks.handle()).map_err(Error::io("writing the folder of tasks to disk"))?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(Error::io("making the folder of expired tasks")(error)),
    }
    let notes = Folder::within(tasks.handle(), EXPIRED)?.ok_or_else(missing_folder)?;
    match notes.write(&id.to_string(), b"") {
        Ok(()) => notes.sync(),
        Err(_) if notes.has(&id.to_string())? => notes.sync(),
        Err(error) => Err(error),
    }
}

/// Removes a folder that was moved. The spec goes first and the lock last, so that a late keeper finds nothing to start.
fn remove(tasks: &Tasks, name: &str) -> Result<()> {
    let Some(folder) = Folder::within(tasks.handle(), name)? else { return Ok(()) };
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
    match unlinkat(tasks.handle(), name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(Error::io(format!("removing {name}"))(error)),
    }
}

/// Removes ids that expired long ago.
fn forget_old_ids(tasks: &Tasks) -> Result<()> {
    let Some(notes) = Folder::within(tasks.handle(), EXPIRED)? else { return Ok(()) };
    for name in notes.names()? {
        if notes.changed_at(&name)?.is_some_and(|at| is_older(at, EXPIRED_RETENTION)) {
            notes.remove(&name)?;
        }
    }
    Ok(())
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
