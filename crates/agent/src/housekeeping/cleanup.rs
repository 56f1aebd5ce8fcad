//! K16: cleanup. The leftovers of commands are removed a day after the commands have ended: their raw output, and the
//! temporary files of their session.
//!
//! A task whose end is not recorded yet is never removed, however old it is: perhaps no process has run that could
//! record it.

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
use crate::runtime::RuntimeShared;

/// How long raw files are kept after the end of their command.
const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a home is cleaned up, by all its processes together.
pub(crate) const CLEANUP_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// The suffix of a folder that is being removed. The name before it consists of the session and the time.
const REMOVAL_SUFFIX: &str = ".going";
/// If a folder with that suffix is older than this, the process that was removing it has died.
const ABANDONED_AFTER: Duration = Duration::from_secs(10 * 60);
/// Its modification time is the time of the last cleanup. A cleanup holds its lock.
const MARK_FILE: &str = "cache/tidied";
const TASKS_FOLDER: &str = "tasks";

/// Removes old leftovers, unless a process of this home has just done so. The next cleanup tries again to remove what
/// can't be removed now.
pub(crate) async fn remove_leftovers(runtime: &Arc<RuntimeShared>) {
    let home = runtime.config.home.clone();
    let tasks = runtime.tasks.clone();
    let survey = spawn_blocking(move || {
        let permit = try_claim(&home.join(MARK_FILE), CLEANUP_INTERVAL)?;
        Some((permit, task_owners(&tasks, &home.join(TASKS_FOLDER))))
    });
    let Ok(Some((permit, owners))) = survey.await else { return };
    let mut needed = HashSet::new();
    for (session, tasks) in &owners.sessions {
        needed.extend(unrecorded_tasks(runtime, *session, tasks).await);
    }
    let (tasks, home, servers) = (runtime.tasks.clone(), runtime.config.home.clone(), runtime.mcp.clone());
    let removal = spawn_blocking(move || {
        servers.remove_leftovers();
        for path in servers.unused_caches() {
            let _ = remove_folder(&path);
        }
        let _ = tasks.expire(KEPT_FOR, |id| needed.contains(&id));
        remove_temporary_files(&home.join("tmp"), || task_owners(&tasks, &home.join(TASKS_FOLDER)));
        drop(permit);
    });
    let _ = removal.await;
}

/// Claims a periodic job that the processes of a home share. The claim lasts as long as the file is open. `None` if
/// the job is not due, or another process has claimed it.
pub(crate) fn try_claim(mark: &Path, every: Duration) -> Option<File> {
    let _ = mark.parent().map(|folder| fs::DirBuilder::new().recursive(true).mode(0o700).create(folder));
    let no_link = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = File::options();
    options.write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link);
    let file = options.open(mark).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let metadata = file.metadata().ok()?;
    // An empty file was just created. A time in the future comes from a wrong clock.
    let is_due = metadata.len() == 0 || metadata.modified().map_or(true, |at| has_passed(at, every));
    if !is_due {
        return None;
    }
    // If this fails, the job runs once more than needed.
    let _ = file.write_all_at(b"\n", 0);
    Some(file)
}

/// Whether a time is that long ago, or in the future.
fn has_passed(at: SystemTime, age: Duration) -> bool {
    SystemTime::now().duration_since(at).map_or(true, |since| since >= age)
}

/// The sessions that own the tasks of a home.
#[derive(Debug, Default)]
struct TaskOwners {
    sessions: BTreeMap<SessionId, Vec<TaskId>>,
    /// The session of some task can't be read, so any session may own that task.
    has_unknown: bool,
}

impl TaskOwners {
    fn may_own(&self, session: SessionId) -> bool {
        self.has_unknown || self.sessions.contains_key(&session)
    }
}

fn task_owners(tasks: &Tasks, folder: &Path) -> TaskOwners {
    let Ok(all) = tasks.all() else { return TaskOwners { has_unknown: true, ..TaskOwners::default() } };
    let mut owners = TaskOwners::default();
    for id in all {
        match tasks.spec(id) {
            Ok(Some(spec)) => {
                if let Some(session) = spec.session {
                    owners.sessions.entry(session).or_default().push(id);
                }
            }
            // A task that is just being started has no spec yet. A broken task must not keep everything forever.
            Ok(None) | Err(_) => {
                let path = folder.join(id.to_string());
                let is_task = fs::symlink_metadata(&path).map_or(true, |metadata| metadata.is_dir());
                owners.has_unknown |= is_task && (!is_old(&path) || tasks.is_kept(id).unwrap_or(true));
            }
        }
    }
    owners
}

/// The tasks whose end is not recorded. All of them if the session can't be read.
async fn unrecorded_tasks(runtime: &RuntimeShared, session: SessionId, tasks: &[TaskId]) -> Vec<TaskId> {
    let Ok(state) = load(&*runtime.journal, "", session).await else { return tasks.to_vec() };
    let is_needed = |id: &&TaskId| {
        let runs = state.tasks.get(**id).is_some_and(|task| task.ended.is_none());
        runs || state.call_of_task(**id).is_some_and(|call| call.result.is_none())
    };
    tasks.iter().filter(is_needed).copied().collect()
}

/// Removes the temporary files of sessions without a running command.
///
/// A command may start at any time, even during this. So a folder is renamed first. If a command has started by then,
/// it gets the folder back. A command that starts later creates its own.
fn remove_temporary_files(folder: &Path, owners: impl Fn() -> TaskOwners) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let Some(name) = name.to_str() else { continue };
        if let Some(left) = name.strip_suffix(REMOVAL_SUFFIX) {
            if is_abandoned(left) {
                let _ = remove_folder(&path);
            }
            continue;
        }
        let Ok(session) = name.parse::<SessionId>() else { continue };
        // The time makes the name unique.
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let aside = folder.join(format!("{name}-{}{REMOVAL_SUFFIX}", since.as_millis()));
        if !is_old(&path) || owners().may_own(session) || fs::rename(&path, &aside).is_err() {
            continue;
        }
        // If the command has already filled a new folder, the rename fails and the old one is removed.
        if !owners().may_own(session) || fs::rename(&aside, &path).is_err() {
            let _ = remove_folder(&aside);
        }
    }
}

fn is_abandoned(name: &str) -> bool {
    let (session, since) = name.split_once('-').unwrap_or((name, "0"));
    let since =
        since.parse().ok().and_then(|since| SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(since)));
    session.parse::<SessionId>().is_ok() && since.is_some_and(|since| has_passed(since, ABANDONED_AFTER))
}

/// Whether nothing in a folder was added or removed for as long as files are kept.
fn is_old(folder: &Path) -> bool {
    let changed = changed_at(folder);
    changed.is_some_and(|at| SystemTime::now().duration_since(at).is_ok_and(|age| age >= KEPT_FOR))
}

#[cfg(test)]
#[path = "cleanup_tests.rs"]
mod tests;
