//! S5: retention. Sessions over the limits of number, age or size go to the trash. After two weeks there they are
//! deleted.
//!
//! Without a limit no session goes to the trash. Pinned sessions, sessions in use and the newest session always stay.
//! Garbage is always removed: temporary files and empty sessions that are a day old, interrupted deletions, and blobs
//! without a reference.
//!
//! It runs at most once a day for all processes of a home. The modification time of a file in `cache` is the time of
//! the last run. If the file is lost, retention runs once more than needed.
//!
//! | killed | on disk | the next run |
//! | --- | --- | --- |
//! | before a session is trashed | the session | tomorrow, the same decision |
//! | between two sessions | some are in the trash | tomorrow, the others |
//! | while one is deleted | see `longhaul_journal`'s `lifecycle` | the deletion is finished |
//! | between the sessions and the files | stale files | tomorrow, the files |

mod selection;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{
    Error as JournalError, Home, Journal, SessionEntry, SessionTimes, all_sessions, delete_session,
    finish_deletions, session_times, trash_session,
};
use longhaul_keeper::{Launcher, LeftBehind, Tasks};
use longhaul_protocol::{At, SessionId, StreamName, TaskId};
use tokio::task::spawn_blocking;

use crate::Result;
use crate::clock::now;
use crate::config::{SessionSettings, Wake};
use crate::housekeeping::cleanup::try_claim;
use crate::replay::load;
use crate::runtime::RuntimeShared;
use crate::session::TaskState;
use crate::session::work::Work;

pub use selection::PruneReason;
use selection::{Candidate, RetentionPolicy, expired_empty, expired_trash, sort_newest_first};

/// Its modification time is the time of the last run.
const MARK_FILE: &str = "cache/pruned";
const RETENTION_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a process checks whether a run is due.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_secs(60 * 60);
/// Temporary files of this age are no longer in use.
const STALE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether retention acts or only reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneMode {
    /// Only report what would be removed.
    DryRun,
    /// Remove it.
    ForReal,
}

/// What retention removed.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pruning {
    /// Sessions that went to the trash or were deleted.
    pub sessions: Vec<Pruned>,
    /// Stale temporary files that were removed.
    pub files: Vec<PathBuf>,
    /// Blobs without a reference that were removed. Not counted in a dry run.
    pub blobs: u64,
}

/// A session that went to the trash or was deleted.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Pruned {
    /// Its key.
    pub key: String,
    /// Its id.
    pub id: SessionId,
    /// Why.
    pub reason: PruneReason,
    /// Whether it was deleted. Otherwise it is in the trash.
    pub deleted: bool,
    /// Its size.
    pub bytes: u64,
}

/// Moves sessions over the limits to the trash, deletes those that were there long enough, and removes garbage.
pub async fn prune(
    journal: &dyn Journal,
    home: &Path,
    settings: &SessionSettings,
    now: At,
    mode: PruneMode,
) -> Result<Pruning> {
    prune_except(journal, home, settings, now, mode, &HashSet::new()).await
}

/// Like [`prune`], but leaves out the sessions that are open in this process.
async fn prune_except(
    journal: &dyn Journal,
    home: &Path,
    settings: &SessionSettings,
    now: At,
    mode: PruneMode,
    open: &HashSet<SessionId>,
) -> Result<Pruning> {
    let mut pruning = Pruning::default();
    if mode == PruneMode::ForReal {
        finish_deletions(journal).await?;
    }
    let mut entries = all_sessions(journal).collect().await?;
    entries.retain(|entry| !open.contains(&entry.id));
    let times = session_times(journal).await?;
    let run = RetentionRun { journal, home, times, now, mode };
    pruning.sessions = run.delete_expired(&entries).await?;
    pruning.sessions.extend(run.trash_over_limits(entries, settings).await?);
    pruning.files = stale_files(home, mode).await;
    if mode == PruneMode::ForReal {
        pruning.blobs = journal.drop_unused_blobs().await?;
    }
    Ok(pruning)
}

/// One run over all sessions.
struct RetentionRun<'a> {
    journal: &'a dyn Journal,
    home: &'a Path,
    times: BTreeMap<SessionId, SessionTimes>,
    now: At,
    mode: PruneMode,
}

impl RetentionRun<'_> {
    /// Deletes sessions that were in the trash long enough, and empty ones.
    async fn delete_expired(&self, entries: &[SessionEntry]) -> Result<Vec<Pruned>> {
        let (journal, now) = (self.journal, self.now);
        let mut gone = Vec::new();
        for entry in entries.iter().filter(|entry| !entry.pinned) {
            let Some(times) = self.times.get(&entry.id) else { continue };
            let reason = expired_trash(entry, times, now).or_else(|| expired_empty(entry, times, now));
            let Some(reason) = reason else { continue };
            if is_held(journal, entry.id).await? || self.has_running_command(entry).await {
                continue;
            }
            let bytes = session_bytes(journal, entry.id).await?;
            let done = match self.mode {
                PruneMode::DryRun => Ok(()),
                PruneMode::ForReal => delete_session(journal, &entry.key).await.map(drop),
            };
            if was_done(done)? {
                let (key, id) = (entry.key.clone(), entry.id);
                gone.push(Pruned { key, id, reason, deleted: true, bytes });
            }
        }
        Ok(gone)
    }

    /// Whether a command of the session, or a process that it left behind, still runs. Only the keepers know: a
    /// missing record of the end proves nothing.
    async fn has_running_command(&self, entry: &SessionEntry) -> bool {
        let Ok(state) = load(self.journal, &entry.key, entry.id).await else { return false };
        let running: Vec<TaskId> = state.tasks.running().map(TaskState::id).collect();
        let (folder, session) = (self.home.join("tasks"), entry.id);
        let asked = spawn_blocking(move || {
            let launcher = Launcher::this_program().ok()?;
            let Some(tasks) = Tasks::existing(&folder, launcher).ok()? else { return Some(false) };
            let is_kept = |id: &TaskId| tasks.is_kept(*id).unwrap_or(true);
            let is_its_own = |left: &LeftBehind| left.session == Some(session);
            Some(running.iter().any(is_kept) || tasks.all_left_behind().iter().any(is_its_own))
        });
        // If the keepers can't be asked, the session stays.
        !matches!(asked.await, Ok(Some(false)))
    }

    /// Moves sessions over the limits to the trash.
    async fn trash_over_limits(
        &self,
        entries: Vec<SessionEntry>,
        settings: &SessionSettings,
    ) -> Result<Vec<Pruned>> {
        let mut gone = Vec::new();
        if *settings == SessionSettings::default() {
            return Ok(gone);
        }
        let mut candidates = Vec::new();
        for entry in entries.into_iter().filter(|entry| !entry.trashed && entry.head.seq > 0) {
            let bytes = match settings.max_bytes {
                0 => 0,
                _ => session_bytes(self.journal, entry.id).await?,
            };
            let named = self.times.get(&entry.id).map(|times| times.named);
            candidates.push(Candidate::new(entry, named, bytes));
        }
        let mut policy = RetentionPolicy::new(settings, self.now, sort_newest_first(&mut candidates));
        // The oldest first: each session that goes makes room for the others.
        for candidate in candidates.iter().rev() {
            let Some(reason) = policy.reason_to_trash(candidate) else { continue };
            let entry = &candidate.entry;
            if is_in_use(self.journal, entry).await? {
                continue;
            }
            let done = match self.mode {
                PruneMode::DryRun => Ok(()),
                PruneMode::ForReal => trash_session(self.journal, &entry.key).await.map(drop),
            };
            if was_done(done)? {
                policy.record_trashed(candidate);
                let bytes = session_bytes(self.journal, entry.id).await?;
                let (key, id) = (entry.key.clone(), entry.id);
                gone.push(Pruned { key, id, reason, deleted: false, bytes });
            }
        }
        Ok(gone)
    }
}

/// Whether the operation was carried out. Another process may have just taken or removed the session.
fn was_done(done: std::result::Result<(), JournalError>) -> Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(JournalError::InUseBy { .. } | JournalError::NoSuchSession { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

async fn is_held(journal: &dyn Journal, id: SessionId) -> Result<bool> {
    let holder = journal.holder(&StreamName::session(id)).await?;
    Ok(holder.is_some_and(|holder| !holder.is_gone()))
}

/// Whether a process holds the session or it has work to do. A session that can't be read counts as in use.
async fn is_in_use(journal: &dyn Journal, entry: &SessionEntry) -> Result<bool> {
    if is_held(journal, entry.id).await? {
        return Ok(true);
    }
    let Ok(state) = load(journal, &entry.key, entry.id).await else { return Ok(true) };
    // Every unannounced end counts, whatever the wake policy.
    Ok(Work::of(&state, entry.inbox_head, Wake::Always).is_in_use())
}

async fn session_bytes(journal: &dyn Journal, id: SessionId) -> Result<u64> {
    let mut bytes = 0;
    for stream in [StreamName::session(id), StreamName::inbox(id), StreamName::extract(id)] {
        bytes += journal.size(&stream).await?.bytes;
    }
    Ok(bytes)
}

async fn stale_files(home: &Path, mode: PruneMode) -> Vec<PathBuf> {
    let Ok(home) = Home::existing(home) else { return Vec::new() };
    let removal = spawn_blocking(move || {
        let mut files = home.stale_files(STALE_AFTER);
        if mode == PruneMode::ForReal {
            files
                .retain(|path| std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path)).is_ok());
        }
        files
    });
    removal.await.unwrap_or_default()
}

/// Runs retention with the config of a runtime. Leaves out the sessions that are open in it.
pub(crate) async fn prune_closed(runtime: &RuntimeShared, mode: PruneMode) -> Result<Pruning> {
    let (home, settings) = (&runtime.config.home, &runtime.config.settings.sessions);
    let open = runtime.all_sessions().iter().filter_map(|slot| slot.id.get().copied()).collect();
    prune_except(&*runtime.journal, home, settings, now(), mode, &open).await
}

/// Runs retention, unless a process of this home already did so today, and reports the sessions that went to the
/// trash.
pub(crate) async fn prune_daily(runtime: &Arc<RuntimeShared>) {
    let mark = runtime.config.home.join(MARK_FILE);
    let Ok(Some(permit)) = spawn_blocking(move || try_claim(&mark, RETENTION_INTERVAL)).await else { return };
    let mut suspension = runtime.suspension();
    let pruned = tokio::select! {
        biased;
        _ = suspension.wait_for(|suspended| *suspended) => return,
        pruned = prune_closed(runtime, PruneMode::ForReal) => pruned,
    };
    match pruned {
        Ok(pruning) => {
            let put_away: Vec<&str> = pruning
                .sessions
                .iter()
                .filter(|session| !session.deleted)
                .map(|session| session.key.as_str())
                .collect();
            if let [first, ..] = put_away[..] {
                let text = format!(
                    "moved old sessions to the trash, as set in [sessions]: {}; to restore one: longhaul sessions restore {first}",
                    put_away.join(", ")
                );
                runtime.warn("", "sessions_pruned", &text);
            }
        }
        Err(error) => {
            runtime.warn("", "sessions_unpruned", &format!("can't remove old sessions: {error}"));
        }
    }
    drop(permit);
}
