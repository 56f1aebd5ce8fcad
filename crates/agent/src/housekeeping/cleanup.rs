//! K16: what commands leave behind goes a day after they have ended: their raw output, and the temporary files of their session.
//!
//! What the records don't have yet is never removed, however old it is: nobody may have been there to record it.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use longhaul_keeper::Tasks;
use longhaul_protocol::{SessionId, TaskId};
use rustix::fs::{FlockOperation, OFlags, flock};
use tokio::task::spawn_blocking;

use crate::housekeeping::remove_tree::{changed_at, remove_folder};
use crate::replay::load;
use crate::runtime::Inner;

/// How long raw files are kept.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// How often it is looked what has to go, by all processes of a home together.
pub(crate) const EVERY: Duration = Duration::from_secs(60 * 60);
/// What the name of a folder ends with that is being removed. Before that it says whose it was, and since when it is.
const ASIDE: &str = ".going";
/// After so long nobody is at a folder any more that was moved aside: it was left.
const LEFT: Duration = Duration::from_secs(10 * 60);
/// Its time says when somebody last did, and its lock that somebody does now.
const MARK: &str = "cache/tidied";
/// Where the folders of tasks are.
const TASKS: &str = "tasks";

/// Removes what is old, unless somebody has just done so. What can't be removed now is tried the next time.
pub(crate) async fn tidy(runtime: &Arc<Inner>) {
    let home = runtime.config.home.clone();
    let tasks = runtime.tasks.clone();
    let looking = spawn_blocking(move || {
        let turn = turn(&home.join(MARK), EVERY)?;
        Some((turn, owners(&tasks, &home.join(TASKS))))
    });
    let Ok(Some((turn, owners))) = looking.await else { return };
    let mut needed = HashSet::new();
    for (session, tasks) in &owners.sessions {
        needed.extend(unrecorded(runtime, *session, tasks).await);
    }
    let (tasks, home) = (runtime.tasks.clone(), runtime.config.home.clone());
    let removing = spawn_blocking(move || {
        let _ = tasks.expire(KEPT, |id| needed.contains(&id));
        remove_temporary(&home.join("tmp"), || self::owners(&tasks, &home.join(TASKS)));
        drop(turn);
    });
    let _ = removing.await;
}

/// The right to do what all processes of a home do only so often, for as long as this is held; none if it is not time, or somebody is
/// at it. Once it was given, it is not time any more.
pub(crate) fn turn(mark: &Path, every: Duration) -> Option<File> {
    let _ = mark.parent().map(|folder| fs::DirBuilder::new().recursive(true).mode(0o700).create(folder));
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link);
    let file = options.open(mark).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let metadata = file.metadata().ok()?;
    // One that is empty was just made. A time that has not come yet was noted by a clock that was wrong.
    let is_due = metadata.len() == 0 || metadata.modified().map_or(true, |at| is_past(at, every));
    if !is_due {
        return None;
    }
    // If it can't be noted, it is looked once more than needed.
    let _ = file.write_all_at(b"\n", 0);
    Some(file)
}

/// Whether something was so long ago, or seems not to have come yet.
fn is_past(at: SystemTime, age: Duration) -> bool {
    SystemTime::now().duration_since(at).map_or(true, |since| since >= age)
}

/// Whose the tasks here are.
#[derive(Debug, Default)]
struct Owners {
    sessions: BTreeMap<SessionId, Vec<TaskId>>,
    /// There is a task of which nobody can tell whose it is, and it may be anybody's.
    is_unclear: bool,
}

impl Owners {
    fn may_have(&self, session: SessionId) -> bool {
        self.is_unclear || self.sessions.contains_key(&session)
    }
}

/// The sessions that have a task here, and which.
fn owners(tasks: &Tasks, folder: &Path) -> Owners {
    let Ok(all) = tasks.all() else { return Owners { is_unclear: true, ..Owners::default() } };
    let mut owners = Owners::default();
    for id in all {
        match tasks.spec(id) {
            Ok(Some(spec)) => {
                if let Some(session) = spec.session {
                    owners.sessions.entry(session).or_default().push(id);
                }
            }
            // One that is just being started has none yet. One that is broken must not keep everything for ever.
            Ok(None) | Err(_) => {
                let path = folder.join(id.to_string());
                let is_task = fs::symlink_metadata(&path).map_or(true, |metadata| metadata.is_dir());
                owners.is_unclear |= is_task && (!is_old(&path) || tasks.is_kept(id).unwrap_or(true));
            }
        }
    }
    owners
}

/// Those of a session's tasks whose end is not on record. Where the session can't be read, that is all of them.
async fn unrecorded(runtime: &Inner, session: SessionId, tasks: &[TaskId]) -> Vec<TaskId> {
    let Ok(state) = load(&*runtime.journal, "", session).await else { return tasks.to_vec() };
    let is_needed = |id: &&TaskId| {
        let runs = state.tasks.get(**id).is_some_and(|task| task.ended.is_none());
        runs || state.call(id.call()).is_some_and(|call| call.result.is_none())
    };
    tasks.iter().filter(is_needed).copied().collect()
}

/// Removes the temporary files of sessions of which no command is left.
///
/// One may begin at any time, also while this goes on. So a folder is moved aside first, and if a command has come until then,
/// it gets it back; one that comes later finds none and makes its own.
fn remove_temporary(folder: &Path, owners: impl Fn() -> Owners) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str() else { continue };
        if let Some(left) = name.strip_suffix(ASIDE) {
            if is_left(left) {
                let _ = remove_folder(&path);
            }
            continue;
        }
        let Ok(session) = name.parse::<SessionId>() else { continue };
        // Each has a name of its own, whatever was left under others.
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let aside = folder.join(format!("{name}-{}{ASIDE}", since.as_millis()));
        if !is_old(&path) || owners().may_have(session) || fs::rename(&path, &aside).is_err() {
            continue;
        }
        // If it has made a new one meanwhile, that one is not empty or replaced by this one.
        if !owners().may_have(session) || fs::rename(&aside, &path).is_err() {
            let _ = remove_folder(&aside);
        }
    }
}

/// Whether a folder with this name was left by a pass that was broken off.
fn is_left(name: &str) -> bool {
    let (session, since) = name.split_once('-').unwrap_or((name, "0"));
    let since =
        since.parse().ok().and_then(|since| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(since)));
    session.parse::<SessionId>().is_ok() && since.is_some_and(|since| is_past(since, LEFT))
}

/// Whether nothing was put into a folder or taken out of it for as long as things are kept.
fn is_old(folder: &Path) -> bool {
    let changed = changed_at(folder);
    changed.is_some_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age >= KEPT))
}

#[cfg(test)]
#[path = "cleanup_tests.rs"]
mod tests;
