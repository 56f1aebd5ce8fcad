//! K16: what commands leave behind goes a day after they have ended: their raw output, and the temporary files of their session.
//!
//! What the records don't have yet is never removed, however old it is: nobody may have been there to record it.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use longhaul_keeper::Tasks;
use longhaul_protocol::{SessionId, TaskId};
use tokio::task::spawn_blocking;

use crate::load::load;
use crate::runtime::Inner;

/// How long raw files are kept.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// How often it is looked what has to go, by all processes of a home together.
pub(crate) const EVERY: Duration = Duration::from_secs(60 * 60);
/// Its time says when somebody last did.
const MARK: &str = "cache/tidied";

/// Removes what is old, unless somebody has just done so. What can't be removed now is tried the next time.
pub(crate) async fn tidy(runtime: &Arc<Inner>) {
    let home = runtime.config.home.clone();
    let tasks = runtime.tasks.clone();
    let looking = spawn_blocking(move || is_due(&home.join(MARK)).then(|| owners(&tasks)));
    let Ok(Some(owners)) = looking.await else { return };
    let mut needed = HashSet::new();
    for (session, tasks) in &owners {
        needed.extend(unrecorded(runtime, *session, tasks).await);
    }
    let (tasks, temporary) = (runtime.tasks.clone(), runtime.config.home.join("tmp"));
    let removing = spawn_blocking(move || {
        let _ = tasks.expire(KEPT, |id| needed.contains(&id));
        remove_temporary(&temporary, &self::owners(&tasks));
    });
    let _ = removing.await;
}

/// Whether it is time, which it is not any more once this has said so.
fn is_due(mark: &Path) -> bool {
    let changed = fs::metadata(mark).and_then(|metadata| metadata.modified());
    let is_due =
        changed.map_or(true, |at| SystemTime::now().duration_since(at).is_ok_and(|age| age >= EVERY));
    if is_due {
        // If it can't be noted, it is looked once more than needed.
        let _ = mark.parent().map(fs::create_dir_all);
        let _ = fs::write(mark, b"");
    }
    is_due
}

/// The sessions that have a task here, and which.
fn owners(tasks: &Tasks) -> BTreeMap<SessionId, Vec<TaskId>> {
    let mut owners: BTreeMap<SessionId, Vec<TaskId>> = BTreeMap::new();
    for id in tasks.all().unwrap_or_default() {
        if let Ok(Some(session)) = tasks.spec(id).map(|spec| spec.and_then(|spec| spec.session)) {
            owners.entry(session).or_default().push(id);
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
fn remove_temporary(folder: &Path, owners: &BTreeMap<SessionId, Vec<TaskId>>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let session = entry.file_name().to_str().and_then(|name| name.parse::<SessionId>().ok());
        if session.is_some_and(|session| !owners.contains_key(&session)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
