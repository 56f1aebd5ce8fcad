//! S5: retention. Sessions over the limits of number, age or size go to the trash. After two weeks there they are
//! deleted. A session goes with its subagents, and counts as one; sessions that schedules made for their runs have a limit of their own.
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

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{
    Error as JournalError, Home, Journal, SessionEntry, SessionTimes, all_sessions, finish_deletions,
    session_times,
};
use longhaul_keeper::{Launcher, LeftBehind, Tasks};
use longhaul_protocol::{At, ChildSession, SessionId, StreamName, TaskId};
use tokio::task::spawn_blocking;

use crate::clock::now;
use crate::config::{SessionSettings, Wake};
use crate::housekeeping::cleanup::try_claim;
use crate::replay::load;
use crate::runtime::RuntimeShared;
use crate::session::TaskState;
use crate::session::work::Work;
use crate::subagents::child::parent_link;
use crate::subagents::lifecycle::{delete_tree, trash_tree};
use crate::subagents::tree::subagent_sessions;
use crate::{Error, Result};

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
    let entries = all_sessions(journal).collect().await?;
    let times = session_times(journal).await?;
    let run = RetentionRun { journal, home, times, now, mode, open };
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
    /// The sessions that are open in this process.
    open: &'a HashSet<SessionId>,
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
            // A subagent may have gone with its parent just now.
            if self.mode == PruneMode::ForReal && journal.session_with_id(entry.id).await?.is_none() {
                continue;
            }
            if self.is_tree_busy(entry).await? {
                continue;
            }
            let bytes = session_bytes(journal, entry.id).await?;
            let done = match self.mode {
                PruneMode::DryRun => Ok(()),
                PruneMode::ForReal => delete_tree(journal, &entry.key).await.map(drop),
            };
            if was_done(done)? {
                let (key, id) = (entry.key.clone(), entry.id);
                gone.push(Pruned { key, id, reason, deleted: true, bytes });
            }
        }
        Ok(gone)
    }

    /// Whether a process works on the session or on one of its subagents, a command of one of them runs, or one is pinned.
    async fn is_tree_busy(&self, entry: &SessionEntry) -> Result<bool> {
        let subagents = subagent_sessions(self.journal, entry.id).await?;
        for entry in std::iter::once(entry).chain(&subagents) {
            let is_open = self.open.contains(&entry.id) || entry.pinned;
            if is_open || is_held(self.journal, entry.id).await? || self.has_running_command(entry).await {
                return Ok(true);
            }
        }
        Ok(false)
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
        for (entry, subagents) in self.trees(entries).await? {
            let mut bytes = 0;
            if settings.max_bytes > 0 {
                for entry in std::iter::once(&entry).chain(&subagents) {
                    bytes += session_bytes(self.journal, entry.id).await?;
                }
            }
            let named = self.times.get(&entry.id).map(|times| times.named);
            candidates.push(Candidate::new(entry, subagents, named, bytes));
        }
        let mut policy = RetentionPolicy::new(settings, self.now, sort_newest_first(&mut candidates));
        // The oldest first: each session that goes makes room for the others.
        for candidate in candidates.iter().rev() {
            let Some(reason) = policy.reason_to_trash(candidate) else { continue };
            if self.is_one_in_use(candidate).await? {
                continue;
            }
            let done = match self.mode {
                PruneMode::DryRun => Ok(()),
                PruneMode::ForReal => trash_tree(self.journal, &candidate.entry.key).await.map(drop),
            };
            if was_done(done)? {
                policy.record_trashed(candidate);
                for entry in candidate.entries() {
                    let bytes = session_bytes(self.journal, entry.id).await?;
                    let (key, id) = (entry.key.clone(), entry.id);
                    gone.push(Pruned { key, id, reason, deleted: false, bytes });
                }
            }
        }
        Ok(gone)
    }
}

impl RetentionRun<'_> {
    /// The sessions that are not in the trash, each with its subagents. A subagent whose root is gone or in the trash stands alone.
    async fn trees(&self, entries: Vec<SessionEntry>) -> Result<Vec<(SessionEntry, Vec<SessionEntry>)>> {
        let mut entries = entries;
        entries.retain(|entry| !entry.trashed && entry.head.seq > 0);
        let known: HashSet<SessionId> = entries.iter().map(|entry| entry.id).collect();
        let (mut roots, mut subagents) = (Vec::new(), HashMap::<SessionId, Vec<SessionEntry>>::new());
        for entry in entries {
            let root = match entry.key.starts_with(ChildSession::KEY_PREFIX) {
                true => parent_link(self.journal, entry.id).await?.map(|link| link.root()),
                false => None,
            };
            match root.filter(|root| known.contains(root)) {
                Some(root) => subagents.entry(root).or_default().push(entry),
                None => roots.push(entry),
            }
        }
        Ok(roots
            .into_iter()
            .map(|root| {
                let subagents = subagents.remove(&root.id).unwrap_or_default();
                (root, subagents)
            })
            .collect())
    }

    async fn is_one_in_use(&self, candidate: &Candidate) -> Result<bool> {
        for entry in candidate.entries() {
            if self.open.contains(&entry.id) || is_in_use(self.journal, entry).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether the operation was carried out. Another process may have just taken or removed the session.
fn was_done(done: Result<()>) -> Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(Error::Journal(JournalError::InUseBy { .. } | JournalError::NoSuchSession { .. })) => Ok(false),
        Err(error) => Err(error),
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
