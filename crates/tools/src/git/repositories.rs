//! Which repositories a session began with, and which are new.
//!
//! The repositories that a session finds before its first command are noted in its temporary folder, and guarded from
//! then on. A repository that is found later may be the work of a command: it isn't guarded, so that commands can use
//! or remove it, and the user is told what git would run in it. What the user was told is noted once it is on record,
//! so a crash may repeat it but never loses it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longhaul_protocol::{SessionId, TaskId, json_path};
use serde::{Deserialize, Serialize};

use super::config::GitConfig;
use super::repository_scan::RepositoryScan;
use super::{DOT_GIT, HookLink, RepositoryGuards, enclosing_repository, is_git_dir, is_unreadable};
use crate::display::display_path;
use crate::scope::is_without_links;
use crate::small_file::{LastLink, read_whole};
use crate::{Permission, Scope};

const NOTES_FILE: &str = "repositories.json";
/// More than the notes about all repositories that a scan finds.
const MAX_FILE_BYTES: u64 = 64 << 20;
/// A longer rebase plan is reported without being read.
const MAX_TODO_BYTES: u64 = 1 << 20;
/// Findings in one warning.
const MAX_FINDINGS: usize = 10;
/// A keeper exits this soon after its command, unless the command left processes running.
const KEEPER_EXIT_GRACE: Duration = Duration::from_millis(100);
const CROWDED_NOTE: &str = "holds more repositories than are guarded one by one, so commands can't write it";
/// Programs and hooks to list for one repository.
const MAX_PROGRAMS: usize = 8;

/// Tracks the repositories of a work folder for its sessions.
#[derive(Debug)]
pub struct RepositoryTracker {
    /// Holds the temporary folders of sessions.
    temporary: PathBuf,
    survey: Mutex<LastScan>,
    sessions: Mutex<HashMap<SessionId, SessionRepositories>>,
}

/// The last scan for all repositories.
#[derive(Debug, Default)]
struct LastScan {
    survey: RepositoryScan,
    found: BTreeSet<PathBuf>,
    /// No command has ended since.
    is_fresh: bool,
}

/// What a session noted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct SessionRepositories {
    #[serde(with = "json_path::list")]
    guarded: BTreeSet<PathBuf>,
    /// What the user has been told, or what was found at first.
    #[serde(with = "json_path::map")]
    told: BTreeMap<PathBuf, String>,
    /// Links on the way to hooks and configuration, at the first command.
    #[serde(default, with = "json_path::map")]
    links: BTreeMap<PathBuf, HookLink>,
    /// Folders with too many repositories, at the first command.
    #[serde(default, with = "json_path::list")]
    crowded: BTreeSet<PathBuf>,
    /// Whether `links` and `crowded` have been noted.
    #[serde(default)]
    has_noted_guards: bool,
    /// A command ran since the last report to the user. After a restart this is assumed.
    #[serde(skip, default = "yes")]
    is_due: bool,
    /// Tasks that went on after their call returned, and may have changed repositories since the last report.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    running: BTreeSet<TaskId>,
}

fn yes() -> bool {
    true
}

/// What the user should know about repositories that commands have created or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryWarning {
    /// The text for the user.
    pub text: String,
    told: BTreeMap<PathBuf, String>,
    running: BTreeSet<TaskId>,
}

impl RepositoryTracker {
    /// For sessions whose temporary folders are kept in `temporary`.
    pub(crate) fn new(temporary: PathBuf) -> Self {
        Self { temporary, survey: Mutex::default(), sessions: Mutex::default() }
    }

    /// The repositories to guard for a session's command. Scans for them at the session's first command.
    pub(crate) fn guarded(&self, scope: &Scope, session: Option<SessionId>) -> Vec<PathBuf> {
        let is_there = |path: &&PathBuf| path.symlink_metadata().is_ok();
        let Some(session) = session else { return self.rescan(scope).into_iter().collect() };
        if let Some(known) = lock(&self.sessions).get_mut(&session) {
            known.is_due = true;
            return known.guarded.iter().filter(is_there).cloned().collect();
        }
        let known = match self.read(session) {
            Some(known) => known,
            None => {
                let guarded = self.rescan(scope);
                let told = guarded.iter().flat_map(|path| suspicious_changes(path)).collect();
                let known =
                    SessionRepositories { guarded, told, is_due: true, ..SessionRepositories::default() };
                // If it can't be written, a restart takes what is there then for what was there at first.
                let _ = self.write(session, &known);
                known
            }
        };
        let guarded = known.guarded.iter().filter(is_there).cloned().collect();
        lock(&self.sessions).insert(session, known);
        guarded
    }

    /// Notes the links and crowded folders, which can't be guarded like the rest and are reported when they change.
    /// The session's first command counts.
    pub(crate) fn note_guards(&self, session: SessionId, guards: &RepositoryGuards) {
        let mut sessions = lock(&self.sessions);
        if let Some(known) = sessions.get_mut(&session).filter(|known| !known.has_noted_guards) {
            known.links.clone_from(&guards.links);
            known.crowded.clone_from(&guards.crowded);
            known.has_noted_guards = true;
            // If it can't be written, a restart takes what is there then for what was there at first.
            let _ = self.write(session, known);
        }
    }

    /// The call of a command has returned, so repositories may have changed. Scans now, so that the end of the turn
    /// need not wait. A task that goes on, or that left processes running, is checked at the end of each turn until it
    /// is over.
    pub(crate) fn command_returned(
        self: &Arc<Self>,
        scope: &Arc<Scope>,
        session: SessionId,
        task: TaskId,
        goes_on: impl FnOnce() -> bool + Send + 'static,
    ) {
        lock(&self.survey).is_fresh = false;
        let (repositories, scope) = (Arc::clone(self), Arc::clone(scope));
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let scanning = {
            let (repositories, scope) = (Arc::clone(&repositories), Arc::clone(&scope));
            move || repositories.scan(&scope)
        };
        runtime.spawn_blocking(scanning);
        runtime.spawn(async move {
            tokio::time::sleep(KEEPER_EXIT_GRACE).await;
            let noting = move || match goes_on() {
                true => repositories.note_running(session, task),
                false => repositories.rescan_after_task(&scope, session),
            };
            let _ = tokio::task::spawn_blocking(noting).await;
        });
    }

    /// A task ended after its call had returned, and may have changed repositories in between.
    fn rescan_after_task(&self, scope: &Scope, session: SessionId) {
        self.rescan(scope);
        if let Some(known) = lock(&self.sessions).get_mut(&session) {
            known.is_due = true;
        }
    }

    fn note_running(&self, session: SessionId, task: TaskId) {
        let mut sessions = lock(&self.sessions);
        let known = sessions.entry(session).or_insert_with(|| self.read(session).unwrap_or_default());
        known.running.insert(task);
        // If it can't be written, changes after a restart are reported after the next command.
        let _ = self.write(session, known);
    }

    /// What changed since the last report to the user, if a command of the session has run since, or a task that went
    /// on after its call.
    pub fn news(
        &self,
        scope: &Scope,
        session: SessionId,
        goes_on: impl Fn(TaskId) -> bool,
    ) -> Option<RepositoryWarning> {
        let mut known = lock(&self.sessions).get(&session).cloned().or_else(|| self.read(session))?;
        if !known.is_due && known.running.is_empty() {
            return None;
        }
        if !known.running.is_empty() {
            lock(&self.survey).is_fresh = false;
        }
        // Asked before the scan: a task that ends in between is checked once more.
        known.running.retain(|id| goes_on(*id));
        let found = self.scan(scope);
        let guarded = known.guarded.iter().flat_map(|path| suspicious_changes(path));
        let new = found.difference(&known.guarded).filter_map(|path| describe_new(path, &known.guarded));
        let links = known.links.iter().filter_map(|(link, then)| describe_changed_link(link, then));
        let crowded = known.crowded.iter().map(|folder| (folder.clone(), CROWDED_NOTE.to_owned()));
        let mut told: BTreeMap<PathBuf, String> = new.chain(guarded).chain(links).chain(crowded).collect();
        told.retain(|path, text| known.told.get(path) != Some(text));
        if told.is_empty() {
            lock(&self.sessions).insert(session, SessionRepositories { is_due: false, ..known });
            return None;
        }
        let line = |(path, what): (&PathBuf, &String)| format!("{} {what}", scope.show(path));
        let mut lines: Vec<String> = told.iter().take(MAX_FINDINGS).map(line).collect();
        if told.len() > MAX_FINDINGS {
            lines.push(format!("and {} more", told.len() - MAX_FINDINGS));
        }
        let text = format!("new in git since the last look: {}", lines.join("; "));
        Some(RepositoryWarning { text, told, running: known.running })
    }

    /// The user has been told, and that is on record.
    pub fn acknowledge(&self, session: SessionId, news: RepositoryWarning) {
        let mut sessions = lock(&self.sessions);
        let read = || self.read(session).unwrap_or_default();
        let known = sessions.entry(session).or_insert_with(read);
        known.told.extend(news.told);
        known.running = news.running;
        known.is_due = false;
        // If it can't be written, the user is told again after a restart.
        let _ = self.write(session, known);
    }

    /// Scans again, even if no command has ended: the user may have created a repository.
    fn rescan(&self, scope: &Scope) -> BTreeSet<PathBuf> {
        lock(&self.survey).is_fresh = false;
        self.scan(scope)
    }

    /// All repositories, as of now or of the last scan since a command ended.
    fn scan(&self, scope: &Scope) -> BTreeSet<PathBuf> {
        let mut scan = lock(&self.survey);
        if scan.is_fresh {
            return scan.found.clone();
        }
        let mut found = BTreeSet::new();
        for top in top_level_writable(scope) {
            found.extend(scan.survey.find(&top));
        }
        let home = std::env::home_dir();
        found.extend(
            enclosing_repository(scope.work_dir(), home.as_deref()).map(|repository| repository.common_dir),
        );
        scan.found.clone_from(&found);
        scan.is_fresh = true;
        found
    }

    fn read(&self, session: SessionId) -> Option<SessionRepositories> {
        let file = self.temporary.join(session.to_string()).join(NOTES_FILE);
        serde_json::from_str(&read_whole(&file, LastLink::Refuse, MAX_FILE_BYTES).ok()??).ok()
    }

    fn write(&self, session: SessionId, known: &SessionRepositories) -> io::Result<()> {
        let folder = self.temporary.join(session.to_string());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let partial = folder.join(format!("{NOTES_FILE}.{}", std::process::id()));
        fs::write(&partial, serde_json::to_vec(known).map_err(io::Error::other)?)?;
        fs::rename(&partial, folder.join(NOTES_FILE))
    }
}

/// The writable folders, without those that lie in another.
fn top_level_writable(scope: &Scope) -> Vec<PathBuf> {
    let writable = scope.allowed().filter(|(_, permission)| *permission == Permission::Write);
    // A command of another session may have put a link in its place since.
    let writable = writable.filter(|(path, _)| is_without_links(path));
    let mut top_level: Vec<PathBuf> = Vec::new();
    let mut sorted: Vec<&Path> =
        writable.map(|(path, _)| path).filter(|path| path.parent().is_some()).collect();
    sorted.sort();
    for path in sorted {
        if !top_level.iter().any(|top| path.starts_with(top)) {
            top_level.push(path.to_owned());
        }
    }
    top_level
}

/// Describes a repository that was not there at first. `None` for a work tree of a guarded repository.
fn describe_new(path: &Path, guarded: &BTreeSet<PathBuf>) -> Option<(PathBuf, String)> {
    let metadata = path.symlink_metadata().ok()?;
    if metadata.is_symlink() {
        let leads_to = fs::read_link(path).unwrap_or_default();
        return Some((path.to_owned(), format!("is a link to {}", display_path(&leads_to))));
    }
    if metadata.is_file() {
        let work_tree = path.parent()?;
        let own =
            enclosing_repository(work_tree, None).filter(|repository| repository.work_tree == work_tree);
        if own.is_some_and(|repository| guarded.contains(&repository.common_dir)) {
            return None;
        }
        // Its content is not quoted: a command could have replaced it by a link to a key since.
        return Some((path.to_owned(), "is new and leads to another repository".to_owned()));
    }
    if is_unreadable(path) {
        let what = "is new and can't be looked into: it is unknown what git would run in it";
        return Some((path.to_owned(), what.to_owned()));
    }
    let is_dot_git = path.file_name().is_some_and(|name| name == DOT_GIT);
    let kind = match (is_git_dir(path), is_dot_git) {
        (true, true) => "is a new repository",
        (true, false) => "is new and looks like a bare repository",
        (false, _) => "is new",
    };
    let programs = programs_run_by_git(path);
    let what = match programs.is_empty() {
        true => "nothing in it runs programs".to_owned(),
        false => {
            format!("git runs programs by its {}; look at it before you use git there", programs.join(", "))
        }
    };
    Some((path.to_owned(), format!("{kind}: {what}")))
}

/// What in the folder of a repository makes git run programs.
fn programs_run_by_git(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join("hooks")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut hooks: Vec<String> = names.filter(|name| !name.ends_with(".sample")).collect();
    hooks.sort();
    let mut programs = match GitConfig::read(&folder.join("config"), LastLink::Refuse) {
        Some(config) => config.programs().into_iter().map(|name| format!("config {name}")).collect(),
        None => vec!["unreadable config".to_owned()],
    };
    programs.sort();
    programs.dedup();
    programs.extend(hooks.into_iter().map(|name| format!("hook {name}")));
    if folder.join("commondir").symlink_metadata().is_ok() && !folder.join("gitdir").exists() {
        programs.insert(0, "file commondir".to_owned());
    }
    programs.truncate(MAX_PROGRAMS);
    programs.iter().map(|name| name.escape_debug().to_string()).collect()
}

/// Describes a link to hooks or configuration that no longer leads where it did.
fn describe_changed_link(link: &Path, then: &HookLink) -> Option<(PathBuf, String)> {
    let now = HookLink::of(link).filter(|now| link.symlink_metadata().is_ok() || now.place != *link);
    let what = match now {
        Some(now) if now.place == then.place && (then.exists || !now.exists) => return None,
        Some(now) => format!("now leads to {}", display_path(&now.place)),
        None => "is gone".to_owned(),
    };
    let led_to = display_path(&then.place);
    let text = format!(
        "led git to hooks or configuration in {led_to} and {what}; look at it before you use git there"
    );
    Some((link.to_owned(), text))
}

/// What a command can leave in a guarded repository to be used against the user: links that git would write through,
/// and a rebase that would run programs.
fn suspicious_changes(git_dir: &Path) -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(git_dir).into_iter().flatten().flatten();
    let logs = fs::read_dir(git_dir.join("logs")).into_iter().flatten().flatten();
    let links = entries.chain(logs).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let mut changes: Vec<(PathBuf, String)> = links
        .filter(|entry| entry.file_name() != "HEAD" || entry.path().parent() != Some(git_dir))
        .map(|entry| {
            let leads_to = display_path(&fs::read_link(entry.path()).unwrap_or_default());
            (entry.path(), format!("is a link to {leads_to}, and git would write there"))
        })
        .collect();
    let todo = git_dir.join("rebase-merge/git-rebase-todo");
    let runs_program = |step: &str| matches!(step.split_whitespace().next(), Some("exec" | "x"));
    let steps = read_whole(&todo, LastLink::Refuse, MAX_TODO_BYTES);
    if steps.map_or(true, |steps| steps.is_some_and(|steps| steps.lines().any(runs_program))) {
        changes.push((todo, "is a rebase that would run programs if you continue it".to_owned()));
    }
    changes
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "repositories_tests.rs"]
mod tests;
