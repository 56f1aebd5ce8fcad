//! S5: which sessions are put away when there are more, older or larger ones than somebody wants, and what goes for good.
//!
//! Nothing is put away until a limit is set. What is pinned, is at work, or is the newest session stays whatever the limits say. What is
//! put away can be brought back for two weeks. Besides, what nobody can have any use for goes always: temporary files and empty
//! sessions that are a day old, the rest of deletions that were cut short, and blobs that no record refers to.
//!
//! It is done at most once a day for all processes of a home. When it was last done is the time of a file in `cache`, as for what
//! commands leave behind: if that is lost, it is looked once more than needed, and nothing else happens.
//!
//! | killed | what is there | what the next does |
//! | --- | --- | --- |
//! | before a session is put away | the session | tomorrow, the same decision |
//! | between two sessions | some are in the trash | tomorrow, the others |
//! | while one is deleted | see `longhaul_journal`'s `lifetime` | the deletion is finished |
//! | between the sessions and the files | stale files | tomorrow, the files |

mod selection;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{
    Error as JournalError, Home, Journal, SessionEntry, Times, delete_session, finish_deletions,
    session_times, trash_session,
};
use longhaul_keeper::{Launcher, LeftBehind, Tasks};
use longhaul_protocol::{At, SessionId, StreamName, TaskId};
use tokio::task::spawn_blocking;

use crate::clock::now;
use crate::housekeeping::cleanup::turn;
use crate::replay::load;
use crate::runtime::Inner;
use crate::{Result, SessionSettings, TaskState};

pub use selection::Reason;
use selection::{Candidate, Choice, gone_from_trash, is_left_empty, order};

/// When it was last done.
const MARK: &str = "cache/pruned";
/// How often that may be.
const EVERY: Duration = Duration::from_secs(24 * 60 * 60);
/// How often a process looks whether it is time.
pub(crate) const LOOKS_EVERY: Duration = Duration::from_secs(60 * 60);
/// How old something temporary is when nobody can be at it any more.
const STALE: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether something is done, or only said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Say what would be done.
    DryRun,
    /// Do it.
    ForReal,
}

/// What retention came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Pruning {
    /// Sessions that went, to the trash or for good.
    pub sessions: Vec<Pruned>,
    /// Temporary files that were left.
    pub files: Vec<PathBuf>,
    /// How many blobs no record referred to; in a dry run they are not counted.
    pub blobs: u64,
}

/// A session that went.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Pruned {
    /// Its key.
    pub key: String,
    /// Its id.
    pub id: SessionId,
    /// Why.
    pub reason: Reason,
    /// Whether it is gone for good; else it is in the trash.
    pub deleted: bool,
    /// How many bytes it holds, or held.
    pub bytes: u64,
}

/// Puts away what is beyond the limits, and removes what goes for good.
pub async fn prune(
    journal: &dyn Journal,
    home: &Path,
    settings: &SessionSettings,
    now: At,
    mode: Mode,
) -> Result<Pruning> {
    prune_besides(journal, home, settings, now, mode, &HashSet::new()).await
}

/// The same, besides sessions that somebody has open.
async fn prune_besides(
    journal: &dyn Journal,
    home: &Path,
    settings: &SessionSettings,
    now: At,
    mode: Mode,
    open: &HashSet<SessionId>,
) -> Result<Pruning> {
    let mut pruning = Pruning::default();
    if mode == Mode::ForReal {
        finish_deletions(journal).await?;
    }
    let mut entries = sessions(journal).await?;
    entries.retain(|entry| !open.contains(&entry.id));
    let times = session_times(journal).await?;
    let round = Round { journal, home, times, now, mode };
    pruning.sessions = round.delete_for_good(&entries).await?;
    pruning.sessions.extend(round.put_away(entries, settings).await?);
    pruning.files = stale_files(home, mode).await;
    if mode == Mode::ForReal {
        pruning.blobs = journal.drop_unused_blobs().await?;
    }
    Ok(pruning)
}

async fn sessions(journal: &dyn Journal) -> Result<Vec<SessionEntry>> {
    let mut entries: Vec<SessionEntry> = Vec::new();
    loop {
        let after = entries.last().map(|entry| entry.key.as_str());
        let page = journal.sessions(after, 500).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

/// One look at all sessions.
struct Round<'a> {
    journal: &'a dyn Journal,
    home: &'a Path,
    times: BTreeMap<SessionId, Times>,
    now: At,
    mode: Mode,
}

impl Round<'_> {
    /// What has been in the trash for long enough, and sessions in which nothing ever was.
    async fn delete_for_good(&self, entries: &[SessionEntry]) -> Result<Vec<Pruned>> {
        let (journal, now) = (self.journal, self.now);
        let mut gone = Vec::new();
        for entry in entries.iter().filter(|entry| !entry.pinned) {
            let Some(times) = self.times.get(&entry.id) else { continue };
            let reason = gone_from_trash(entry, times, now).or_else(|| is_left_empty(entry, times, now));
            let Some(reason) = reason else { continue };
            if is_held(journal, entry.id).await? || self.has_a_command(entry).await {
                continue;
            }
            let bytes = bytes_of(journal, entry.id).await?;
            let done = match self.mode {
                Mode::DryRun => Ok(()),
                Mode::ForReal => delete_session(journal, &entry.key).await.map(drop),
            };
            if happened(done)? {
                let (key, id) = (entry.key.clone(), entry.id);
                gone.push(Pruned { key, id, reason, deleted: true, bytes });
            }
        }
        Ok(gone)
    }

    /// Whether a command of the session still runs, or something that one left running, by those who keep them: that its end is not on
    /// record is no proof.
    async fn has_a_command(&self, entry: &SessionEntry) -> bool {
        let Ok(state) = load(self.journal, &entry.key, entry.id).await else { return false };
        let running: Vec<TaskId> = state.tasks.running().map(TaskState::id).collect();
        let (folder, session) = (self.home.join("tasks"), entry.id);
        let looking = spawn_blocking(move || {
            let launcher = Launcher::this_program().ok()?;
            let Some(tasks) = Tasks::existing(&folder, launcher).ok()? else { return Some(false) };
            let is_kept = |id: &TaskId| tasks.is_kept(*id).unwrap_or(true);
            let is_its_own = |left: &LeftBehind| left.session == Some(session);
            Some(running.iter().any(is_kept) || tasks.all_left_behind().iter().any(is_its_own))
        });
        // What can't be looked at is left alone.
        !matches!(looking.await, Ok(Some(false)))
    }

    /// What is beyond the limits.
    async fn put_away(&self, entries: Vec<SessionEntry>, settings: &SessionSettings) -> Result<Vec<Pruned>> {
        let mut gone = Vec::new();
        if *settings == SessionSettings::default() {
            return Ok(gone);
        }
        let mut candidates = Vec::new();
        for entry in entries.into_iter().filter(|entry| !entry.trashed && entry.head.seq > 0) {
            let bytes = match settings.max_bytes {
                0 => 0,
                _ => bytes_of(self.journal, entry.id).await?,
            };
            let named = self.times.get(&entry.id).map(|times| times.named);
            candidates.push(Candidate::new(entry, named, bytes));
        }
        let mut choice = Choice::new(settings, self.now, order(&mut candidates));
        // The oldest first: what goes for one reason makes room for the others.
        for candidate in candidates.iter().rev() {
            let Some(reason) = choice.reason(candidate) else { continue };
            let entry = &candidate.entry;
            if is_at_work(self.journal, entry).await? {
                continue;
            }
            let done = match self.mode {
                Mode::DryRun => Ok(()),
                Mode::ForReal => trash_session(self.journal, &entry.key).await.map(drop),
            };
            if happened(done)? {
                choice.goes(candidate);
                let bytes = bytes_of(self.journal, entry.id).await?;
                let (key, id) = (entry.key.clone(), entry.id);
                gone.push(Pruned { key, id, reason, deleted: false, bytes });
            }
        }
        Ok(gone)
    }
}

/// Whether it was done. Somebody may just have begun to work at the session, or have removed it.
fn happened(done: std::result::Result<(), JournalError>) -> Result<bool> {
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

/// Whether somebody holds a session, or there is something to do in it. One that can't be read is left alone.
async fn is_at_work(journal: &dyn Journal, entry: &SessionEntry) -> Result<bool> {
    if is_held(journal, entry.id).await? {
        return Ok(true);
    }
    let Ok(state) = load(journal, &entry.key, entry.id).await else { return Ok(true) };
    // Every end that the model has not been told of counts, whatever wakes here.
    Ok(crate::Work::of(&state, entry.inbox_head, crate::Wake::Always).is_in_use())
}

async fn bytes_of(journal: &dyn Journal, id: SessionId) -> Result<u64> {
    let mut bytes = 0;
    for stream in [StreamName::session(id), StreamName::inbox(id), StreamName::extract(id)] {
        bytes += journal.size(&stream).await?.bytes;
    }
    Ok(bytes)
}

async fn stale_files(home: &Path, mode: Mode) -> Vec<PathBuf> {
    let Ok(home) = Home::existing(home) else { return Vec::new() };
    let removing = spawn_blocking(move || {
        let mut files = home.stale_files(STALE);
        if mode == Mode::ForReal {
            files
                .retain(|path| std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path)).is_ok());
        }
        files
    });
    removing.await.unwrap_or_default()
}

/// The same, besides the sessions that are open in a runtime, as its config says.
pub(crate) async fn prune_closed(runtime: &Inner, mode: Mode) -> Result<Pruning> {
    let (home, settings) = (&runtime.config.home, &runtime.config.settings.sessions);
    let open = runtime.all_sessions().iter().filter_map(|shared| shared.id.get().copied()).collect();
    prune_besides(&*runtime.journal, home, settings, now(), mode, &open).await
}

/// Does it, unless somebody did so today, and says what was put away.
pub(crate) async fn daily(runtime: &Arc<Inner>) {
    let mark = runtime.config.home.join(MARK);
    let Ok(Some(turn)) = spawn_blocking(move || turn(&mark, EVERY)).await else { return };
    let mut suspension = runtime.suspension();
    let pruned = tokio::select! {
        biased;
        _ = suspension.wait_for(|suspended| *suspended) => return,
        pruned = prune_closed(runtime, Mode::ForReal) => pruned,
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
                    "sessions were put into the trash, as the config says: {}; `longhaul sessions restore {first}` brings one back",
                    put_away.join(", ")
                );
                runtime.warn("", "sessions_pruned", &text);
            }
        }
        Err(error) => {
            runtime.warn("", "sessions_unpruned", &format!("old sessions can't be put away: {error}"));
        }
    }
    drop(turn);
}
