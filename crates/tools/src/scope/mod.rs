//! The scope: the files that the agent may read and write, and the only way to open them.
//!
//! Every tool that opens a file does so through here, in three steps that no link, `..` or race gets around:
//!
//! 1. **Resolve.** The path is resolved through the real file system to a canonical path without links
//!    (`canonical_path`).
//! 2. **Check.** That path must lie under an allowed target and under no denied one (`boundaries`). Denied paths are
//!    compared without case, and denied files also by identity (device and inode), so that another name, a bind mount
//!    or a case-insensitive file system is no way around. A denied file stays denied when it is moved. Protected paths
//!    (keys, credentials, sockets) count as denied, unless an allowed target names them.
//! 3. **Walk.** From `/` down, each folder is opened through the handle of the one before it, never through a link,
//!    and its identity is compared with what is denied (`scoped_path`, `folder`). The file that was checked is the
//!    file that is used: a folder that is swapped for a link after the check is an error. (`openat2` would resolve the
//!    path in one call, but would not show the folders that it passes.)
//!
//! The work folder is a canonical path too, and stays that path: if it goes through a link by now, another session that
//! may write the folder above it could have put that link there. Then no tool uses anything until the folder is back
//! ([`Scope::check_work_dir`]). Another real folder in its place is used: a process that could put it there can already reach
//! everything in it.
//!
//! Not detected: a hard link to a file in a denied folder, and a bind mount of a folder inside a denied one.
//!
//! A write replaces a file atomically, so for a moment a temporary file (`.longhaul-` and the call's id) lies beside
//! it, and what another program saved in that moment may be kept beside it (`NAME.kept-` and the call's id). This also
//! happens where only the file is allowed and not its folder. Nothing else in such a folder is read, created or
//! removed.

mod boundaries;
mod canonical_path;
mod config;
mod error;
mod folder;
mod path_trace;
mod scoped_path;

#[cfg(test)]
#[path = "scope_tests.rs"]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use boundaries::{Boundaries, DenialReason, DeniedPath, fold_case, locate};
pub(crate) use boundaries::{FileIdentity, PATH_ONLY, is_without_links};
pub use config::{AllowedTarget, DeniedTarget, Permission, ScopeConfig};
pub use error::FileError;
pub(crate) use folder::{EntryKind, EntryStatus, ScopedFolder};
pub(crate) use path_trace::{PathTrace, is_within_any, untampered};
pub(crate) use scoped_path::{OpenFile, ScopedPath};

use crate::display::{display_name, display_path};
use crate::git;
use crate::sandbox::protected::ProtectedPaths;
use crate::sandbox::{process_environment, user_cache_paths};
use crate::small_file::{FolderRule, SmallFile, read_open_file};

/// What the tools of a session may read and write.
#[derive(Debug)]
pub struct Scope {
    work_dir: PathBuf,
    /// What the tools may use.
    allow: Vec<AllowedRoot>,
    /// What the user allows, and with that names: a protected path or a startup file that one of these names may be used. The same
    /// as `allow`, unless the scope was narrowed.
    named: Vec<AllowedRoot>,
    deny: Vec<DeniedPath>,
    /// Keys, credentials and sockets: denied unless an allowed target names them. Found at the first use, because that
    /// takes some hundred system calls and a turn may need no file at all.
    protected: OnceLock<Arc<[DeniedPath]>>,
    protected_places: Vec<PathBuf>,
    /// Startup files, which are not written without asking the user.
    startup: Vec<PathBuf>,
    user_home: Option<PathBuf>,
}

/// An allowed target, resolved once. A link that is put in its place later does not move it.
#[derive(Debug, Clone)]
struct AllowedRoot {
    target: String,
    path: PathBuf,
    permission: Permission,
    /// It goes through a link that a command could have put there, and that was not followed.
    is_link_refused: bool,
}

impl Scope {
    /// Creates the scope of a work folder, which is given by its canonical path. Without any `allow`, the work folder
    /// may be written. `home` is Longhaul's own folder, which is always denied.
    pub fn new(work_dir: &Path, config: &ScopeConfig, home: &Path) -> Self {
        Self::for_user(work_dir, config, home, &process_environment())
    }

    /// Creates a scope for a user with this environment: `HOME` and a few other variables say where keys are.
    pub fn for_user(
        work_dir: &Path,
        config: &ScopeConfig,
        home: &Path,
        environment: &BTreeMap<String, String>,
    ) -> Self {
        let user_home = environment.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let user_home = user_home.or_else(std::env::home_dir).map(|home| locate(&home).0);
        let work_dir: PathBuf = canonical_path::absolute(work_dir).components().collect();
        let whole_work_dir = [AllowedTarget { target: "./".to_owned(), permission: Permission::Write }];
        let allow = if config.allow.is_empty() { &whole_work_dir } else { config.allow.as_slice() };
        let allow = resolve_allowed_roots(&work_dir, allow);
        let allowed = allow.iter().map(|ground| ground.path.as_path());
        let ProtectedPaths { keys, sockets, emptied, startup, .. } =
            ProtectedPaths::new(user_home.as_deref(), environment, allowed);
        let unreadable = keys.into_iter().chain(sockets).chain(emptied);
        let denial = |denied: &DeniedTarget| {
            DeniedPath::new(canonical_path::expand(&work_dir, &denied.target), denied.permission)
        };
        let home = DeniedPath::new(canonical_path::absolute(home), Permission::Read);
        Self {
            named: allow.clone(),
            allow,
            deny: config.deny.iter().map(denial).chain([home]).collect(),
            protected: OnceLock::new(),
            protected_places: unreadable.collect(),
            startup,
            user_home,
            work_dir,
        }
    }

    /// The scope without the right to write one more file, whatever the config says.
    #[must_use]
    pub fn without_writing(mut self, file: &Path) -> Self {
        self.deny.push(DeniedPath::new(canonical_path::absolute(file), Permission::Write));
        self
    }

    /// The scope without one more file, whatever the config says.
    #[must_use]
    pub fn without_file(mut self, file: &Path) -> Self {
        self.deny.push(DeniedPath::new(canonical_path::absolute(file), Permission::Read));
        self
    }

    /// The part of the scope that a subagent may use. Its targets are canonical paths that were checked earlier, and the folders above
    /// them may have changed since: no link is followed to one of them, and each is checked again. A target that fails is left out.
    /// The parent agent started the subagent, not the user, so its targets lift no protection: not that of keys, startup files or
    /// repositories.
    #[must_use]
    pub fn narrow_to(mut self, targets: impl IntoIterator<Item = (PathBuf, Permission)>) -> Self {
        let has_link = |path: &Path| PathTrace::follow(path, &[]).is_none_or(|trace| !trace.links.is_empty());
        let is_usable = |path: &Path, permission| {
            !has_link(path) && self.place(path, self.show(path), permission).is_ok()
        };
        let targets = targets.into_iter().filter(|(path, permission)| is_usable(path, *permission));
        let root = |(path, permission): (PathBuf, Permission)| AllowedRoot {
            target: display_path(&path),
            path,
            permission,
            is_link_refused: false,
        };
        self.allow = targets.map(root).collect();
        self
    }

    /// The user's home folder, if the work folder contains it and no allowed target names either of them. `./` names
    /// nothing.
    pub fn exposed_home(&self) -> Option<&Path> {
        let home = self.user_home.as_deref().filter(|home| home.starts_with(&self.work_dir))?;
        let names = |ground: &AllowedRoot| {
            let is_named = ground.target.starts_with(['/', '~']);
            is_named && (ground.path == home || ground.path == self.work_dir)
        };
        (!self.named.iter().any(names)).then_some(home)
    }

    pub fn work_dir(&self) -> &Path {
        &self.work_dir
    }

    /// The allowed targets, resolved.
    pub fn allowed(&self) -> impl Iterator<Item = (&Path, Permission)> {
        self.allow.iter().map(|ground| (ground.path.as_path(), ground.permission))
    }

    /// The targets that the user allows, resolved. Those of a narrowed scope are only a part of them.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&Path, Permission)> {
        self.named.iter().map(|ground| (ground.path.as_path(), ground.permission))
    }

    /// The links on the paths to allowed targets.
    pub(crate) fn allowed_links(&self) -> impl Iterator<Item = PathBuf> {
        let links = |ground: &AllowedRoot| {
            let path = canonical_path::absolute(&canonical_path::expand(&self.work_dir, &ground.target));
            let trace = PathTrace::follow_existing(&path, &[]).filter(|trace| trace.target == ground.path);
            trace.map(|trace| trace.links).unwrap_or_default()
        };
        self.allow.iter().flat_map(links)
    }

    /// Whether a canonical path is denied, for reading too.
    pub(crate) fn denies(&self, canonical: &Path) -> bool {
        // Protected paths are left out: checking all of them would cost each command some hundred system calls.
        let boundaries = Boundaries::current(&self.deny, &[], std::iter::empty(), Permission::Read);
        boundaries.denial_of_path(canonical) == Some(DenialReason::Denied)
    }

    /// The denied targets with Longhaul's own folder, resolved as far as they exist now, under every path that they
    /// have.
    pub fn denied(&self) -> impl Iterator<Item = (PathBuf, Permission)> {
        let paths = |denial: &DeniedPath| {
            let permission = denial.permission;
            denial.paths().into_iter().map(move |path| (path, permission))
        };
        self.deny.iter().flat_map(paths)
    }

    /// Checks that a folder exists and may be used with this permission, and returns its canonical path.
    pub fn check_folder(&self, path: &str, permission: Permission) -> Result<PathBuf, FileError> {
        let place = self.resolve(path, permission)?;
        place.folder()?;
        Ok(place.path().to_owned())
    }

    /// Checks that a file or folder may be used with this permission, and returns its canonical path.
    pub fn check_path(&self, path: &str, permission: Permission) -> Result<PathBuf, FileError> {
        Ok(self.resolve(path, permission)?.path().to_owned())
    }

    /// Reads a small file of the work folder for the runtime, such as `AGENTS.md`. A link is followed to another file
    /// in the work folder. `None` if it does not exist; an error if it leads out of the work folder, or if the scope
    /// denies it.
    pub fn read_in_work_dir(&self, path: &str, max_bytes: u64) -> Result<Option<SmallFile>, FileError> {
        // Most folders lack most of these files, and a look at the protected files takes a while.
        let status = self.work_dir.join(path).symlink_metadata();
        if status.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return self.check_work_dir().map(|()| None);
        }
        let place = self.resolve(path, Permission::Read)?;
        if !place.path().starts_with(&self.work_dir) {
            return Err(FileError::LeadsOut { path: display_path(Path::new(path)) });
        }
        let opened = place.parent().and_then(|(folder, name)| Ok((place.open_in(&folder, &name)?, folder)));
        let (open, folder) = match opened {
            Err(FileError::NotFound { .. }) => return Ok(None),
            opened => opened?,
        };
        let failed = |error: io::Error| FileError::system("read", place.shown(), error);
        read_open_file(open.file, &folder, FolderRule::OwnFile, max_bytes).map(Some).map_err(failed)
    }

    /// Resolves a path that the model gave and checks it against the scope.
    pub(crate) fn resolve(&self, path: &str, permission: Permission) -> Result<ScopedPath, FileError> {
        if path.is_empty() || path.len() > canonical_path::MAX_PATH_BYTES || path.contains('\0') {
            return Err(FileError::Malformed { path: display_name(path.as_bytes()) });
        }
        self.check_work_dir()?;
        let given = canonical_path::expand(&self.work_dir, path);
        let written = display_name(path.as_bytes());
        let canonical = canonical_path::canonicalize_existing(&given)
            .ok_or_else(|| FileError::NotFound { path: written.clone() })?;
        let only_folder = canonical_path::names_only_folder(path);
        Ok(ScopedPath { only_folder, ..self.place(&canonical, written, permission)? })
    }

    /// Refuses a path that ends with a link: what the link leads to would be removed or moved, not the link.
    pub(crate) fn refuse_link(&self, path: &str) -> Result<(), FileError> {
        let given = canonical_path::expand(&self.work_dir, path);
        match given.symlink_metadata() {
            Ok(status) if status.is_symlink() => {
                Err(FileError::IsLink { path: display_name(path.as_bytes()) })
            }
            _ => Ok(()),
        }
    }

    /// Checks a canonical path. If it goes through a link by now, opening it fails.
    pub(crate) fn at(&self, canonical: &Path, permission: Permission) -> Result<ScopedPath, FileError> {
        self.check_work_dir()?;
        self.place(canonical, self.show(canonical), permission)
    }

    fn place(
        &self,
        canonical: &Path,
        written: String,
        permission: Permission,
    ) -> Result<ScopedPath, FileError> {
        let boundaries = self.boundaries(permission);
        let allowed = self.describe_allowed();
        let barred = boundaries.denial_of_path(canonical);
        if barred == Some(DenialReason::Denied) {
            return Err(FileError::Denied { path: written, allowed });
        }
        if !self.covers(canonical, permission) {
            return Err(match self.covers(canonical, Permission::Read) {
                true => FileError::ReadOnly { path: self.show(canonical), allowed },
                false => FileError::Outside { path: written, allowed },
            });
        }
        if permission == Permission::Write && git::is_controlled_by_git(self, canonical) {
            return Err(FileError::RunByGit { path: self.show(canonical) });
        }
        if barred == Some(DenialReason::Protected) {
            return Err(FileError::Protected { path: written });
        }
        let is_folder_writable = permission == Permission::Write
            && canonical.parent().is_some_and(|folder| {
                self.covers(folder, Permission::Write) && boundaries.denial_of_path(folder).is_none()
            });
        Ok(ScopedPath {
            path: canonical.to_owned(),
            shown: self.show(canonical),
            written,
            only_folder: false,
            is_folder_writable,
            boundaries: Arc::new(boundaries),
            allowed,
        })
    }

    fn boundaries(&self, permission: Permission) -> Boundaries {
        let named = self.named().map(|(path, _)| path);
        Boundaries::current(&self.deny, self.protected(), named, permission)
    }

    fn protected(&self) -> &[DeniedPath] {
        self.protected.get_or_init(|| boundaries::shared_denied_paths(self.protected_places.clone()))
    }

    /// Finds the protected files, which from then on stay protected wherever they are moved. Called before a command
    /// that could move them.
    pub(crate) fn find_protected_files(&self) {
        self.protected();
    }

    /// Whether a canonical path is a startup file or lies in a folder of them, and the user names it nowhere.
    pub(crate) fn is_startup_file(&self, canonical: &Path) -> bool {
        let is_named = |startup: &Path| {
            let mut named = self.named().filter(|(named, _)| named.starts_with(startup));
            named.any(|(named, _)| canonical.starts_with(named))
        };
        let path = fold_case(canonical);
        let mut places = self.startup.iter().map(|startup| locate(startup).0);
        places.any(|startup| path.starts_with(fold_case(&startup)) && !is_named(&startup))
    }

    fn covers(&self, path: &Path, permission: Permission) -> bool {
        let covers =
            |ground: &AllowedRoot| path.starts_with(&ground.path) && ground.permission.covers(permission);
        self.allow.iter().any(covers)
    }

    /// A path for the model: relative to the work folder, if it lies there.
    pub(crate) fn show(&self, path: &Path) -> String {
        match path.strip_prefix(&self.work_dir) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => display_path(inside),
            Err(_) => display_path(path),
        }
    }

    /// Checks that the work folder is there, and that its path goes through no link.
    pub fn check_work_dir(&self) -> Result<(), FileError> {
        let path = display_path(&self.work_dir);
        if self.work_dir_leads_to().is_some() {
            return Err(FileError::WorkFolderMoved { path });
        }
        match self.work_dir.symlink_metadata() {
            Ok(status) if status.is_dir() => Ok(()),
            _ => Err(FileError::WorkFolderGone { path }),
        }
    }

    /// Where the path of the work folder leads, if it goes through a link by now. For the user: the model is not told
    /// where links lead.
    pub fn work_dir_leads_to(&self) -> Option<PathBuf> {
        Some(locate(&self.work_dir).0).filter(|path| *path != self.work_dir)
    }

    fn describe_allowed(&self) -> String {
        if self.allow.is_empty() {
            return NOTHING_ALLOWED.to_owned();
        }
        let words = |ground: &AllowedRoot| {
            let barred = if ground.is_link_refused { BARRED } else { "" };
            format!("{} ({}{barred})", ground.target, ground.permission.in_words())
        };
        self.allow.iter().map(words).collect::<Vec<_>>().join(", ")
    }
}

/// Added to the description of a target that goes through a refused link.
const BARRED: &str =
    ", but not through its link, which a command could have put there: name what it leads to";

/// What is allowed in a narrowed scope without any target left.
const NOTHING_ALLOWED: &str =
    "nothing: every path that this subagent was given goes through a link or is not allowed by now";

/// Resolves the allowed targets. A command of an earlier session could write the user's caches and every writable
/// target, so no link in those is followed. Neither is a link on the path of the work folder, which had none.
fn resolve_allowed_roots(work_dir: &Path, allow: &[AllowedTarget]) -> Vec<AllowedRoot> {
    let path = |allowed: &AllowedTarget| {
        canonical_path::absolute(&canonical_path::expand(work_dir, &allowed.target))
    };
    let targets = allow.iter().filter(|allowed| allowed.permission == Permission::Write).map(path);
    let traces =
        targets.chain(user_cache_paths()).filter_map(|path| PathTrace::follow_existing(&path, &[])).collect();
    let writable: Vec<PathBuf> = untampered(traces, &[]).into_iter().map(|trace| trace.target).collect();
    let ground = |allowed: &AllowedTarget| {
        let is_work_dir_moved = |trace: &PathTrace| trace.links.iter().any(|link| work_dir.starts_with(link));
        let (path, is_link_refused) = match PathTrace::follow(&path(allowed), &writable) {
            Some(trace) if is_work_dir_moved(&trace) => (path(allowed), true),
            Some(trace) => (trace.target, trace.is_link_refused),
            None => (path(allowed), false),
        };
        AllowedRoot { target: allowed.target.clone(), path, permission: allowed.permission, is_link_refused }
    };
    allow.iter().map(ground).collect()
}
