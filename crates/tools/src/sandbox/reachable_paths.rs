//! Collects the paths that a command may reach, and those that are hidden from it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use longhaul_keeper::{Placeholder, Private};

use super::folder_listings::ListingView;
use super::sockets::bound_sockets;
use super::user_folders::{UserFolders, home_of_this_user};
use super::{SandboxMode, denied, known_paths};
use crate::git::EnclosingRepository;
use crate::sandbox::protected::{ProtectedPaths, missing_startup_files};
use crate::scope::{is_within_any, untampered};
use crate::{Permission, Scope};

/// The folder of Longhaul's home with the user's skills.
const SKILLS_FOLDER: &str = "skills";

/// The paths that a command may reach, and what decides about the rest.
#[derive(Debug)]
pub(super) struct ReachablePaths<'a> {
    scope: &'a Scope,
    /// The user's folders. Their home folder is found through no link that a command may have put there.
    user: UserFolders<'a>,
    /// The user's home folder, with all links followed.
    user_home: Option<PathBuf>,
    /// Paths to hide. Every link to them is followed: ignoring one would leave all keys visible.
    protected: ProtectedPaths,
    /// The existing folders of `PATH`, as written and resolved.
    path: Vec<(&'a Path, PathBuf)>,
    /// Longhaul's home.
    home: PathBuf,
    listings: ListingView<'a>,
    pub(super) read: Vec<PathBuf>,
    /// Paths that a command may write, including the caches.
    pub(super) write: Vec<PathBuf>,
    /// Links to reachable paths. They stay visible where a folder around them is hidden, so that the usual path still
    /// works.
    links: Vec<PathBuf>,
    /// Caches, which a command writes in an overlay of its session.
    pub(super) caches: Vec<PathBuf>,
    /// The folders of the skills in use: readable wherever they are, and never writable.
    skills: Vec<PathBuf>,
}

impl<'a> ReachablePaths<'a> {
    /// Starts with what the scope allows. Call [`ReachablePaths::add_caches`] next: nothing may be found through a
    /// path that a command can write.
    pub(super) fn new(
        scope: &'a Scope,
        environment: &'a BTreeMap<String, String>,
        home: &Path,
        listings: ListingView<'a>,
    ) -> Self {
        let (mut read, mut write) = (Vec::new(), Vec::new());
        for (path, permission) in scope.allowed() {
            match permission {
                Permission::Read => read.push(path.to_owned()),
                Permission::Write => write.push(path.to_owned()),
            }
        }
        let own = environment.get("HOME").map(Path::new);
        let own_way = own.and_then(|own| listings.trace(own, &write));
        let mut links: Vec<PathBuf> = scope.allowed_links().collect();
        links.extend(own_way.iter().flat_map(|trace| trace.links.clone()));
        let user = UserFolders { home: own_way.map(|trace| trace.target), environment };
        let user_home = own.and_then(canonical);
        let named = scope.named().map(|(path, _)| path);
        let protected = ProtectedPaths::new(user_home.as_deref(), environment, named);
        let path = environment.get("PATH").map(String::as_str).unwrap_or_default();
        let leads_to = |folder: &Path| match folder.is_absolute() {
            true => listings.trace(folder, &[]).map(|trace| trace.target),
            false => canonical(folder),
        };
        let path = path.split(':').map(Path::new).filter_map(|folder| Some((folder, leads_to(folder)?)));
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        let caches = Vec::new();
        let path = path.collect();
        let skills = Vec::new();
        Self { scope, user, user_home, protected, path, home, listings, read, write, links, caches, skills }
    }

    pub(super) fn add_system(&mut self) {
        let settings = known_paths::SETTINGS.split_whitespace().map(|name| Path::new("/etc").join(name));
        let folders = known_paths::SYSTEM.split_whitespace().map(PathBuf::from);
        let has_version = |name: &OsString| {
            let name = name.as_encoded_bytes();
            known_paths::VERSIONED_SETTINGS.split_whitespace().any(|begin| name.starts_with(begin.as_bytes()))
        };
        let names = self.listings.plain_names(Path::new("/etc")).into_iter().filter(has_version);
        let of_versions = names.map(|name| Path::new("/etc").join(name));
        folders.chain(settings).chain(of_versions).for_each(|path| self.add(&path, Permission::Read));
    }

    pub(super) fn add_toolchains(&mut self) {
        let named = self.user.named(known_paths::TOOLCHAIN_VARIABLES);
        self.user
            .in_home(known_paths::TOOLCHAINS)
            .into_iter()
            .chain(named)
            .for_each(|path| self.add_of_user(&path, Permission::Read));
    }

    /// Adds all caches together: one may lie in another, in which a command could have put a link in its place.
    pub(super) fn add_caches(&mut self) {
        let traces = self.user.caches().into_iter().filter_map(|path| self.listings.trace(&path, &[]));
        let traces = traces.filter(|trace| self.is_specific_enough(&trace.target)).collect();
        let traces = untampered(traces, &self.write);
        self.links.extend(traces.iter().flat_map(|trace| trace.links.clone()));
        let mut places: Vec<PathBuf> = traces.into_iter().map(|trace| trace.target).collect();
        // In this order each comes after those that it lies in, and is covered by them.
        places.sort();
        for place in places {
            if !self.is_writable(&place) {
                self.caches.push(place.clone());
                self.write.push(place);
            }
        }
    }

    /// The writable paths that are no caches.
    pub(super) fn without_caches(&self) -> Vec<PathBuf> {
        self.write.iter().filter(|place| !self.caches.contains(place)).cloned().collect()
    }

    /// Adds the folders of skills in use. A folder that goes through a link by now, or that the user denies, is left out; of
    /// Longhaul's own folder, only skills can be read.
    pub(super) fn add_skills(&mut self, folders: &[PathBuf]) {
        let own_skills = self.home.join(SKILLS_FOLDER);
        let denied: Vec<PathBuf> =
            denied(self.scope, Permission::Read).into_iter().filter(|path| *path != self.home).collect();
        let is_usable = |folder: &&PathBuf| {
            let is_own_data = folder.starts_with(&self.home) && !folder.starts_with(&own_skills);
            canonical(folder).as_ref() == Some(*folder) && !is_own_data && !is_within_any(folder, &denied)
        };
        let usable: Vec<PathBuf> = folders.iter().filter(is_usable).cloned().collect();
        usable.iter().for_each(|folder| self.add_place(folder.clone(), Permission::Read));
        self.skills = usable;
    }

    /// Adds the repository around the work folder. It is read-only if the work folder is.
    pub(super) fn add_repository(&mut self, enclosing_repository: Option<EnclosingRepository>) {
        let Some(EnclosingRepository { common_dir, read, .. }) = enclosing_repository else { return };
        let permission = match self.is_writable(self.scope.work_dir()) {
            true => Permission::Write,
            false => Permission::Read,
        };
        self.add_place(common_dir, permission);
        read.into_iter().for_each(|file| self.add_place(file, Permission::Read));
    }

    pub(super) fn user_home(&self) -> Option<&Path> {
        self.user_home.as_deref()
    }

    /// Adds the folders of `PATH`.
    pub(super) fn add_path(&mut self, mode: SandboxMode) {
        for (folder, leads_to) in self.path.clone().into_iter().filter(|(folder, _)| folder.is_absolute()) {
            let is_own = self.user_home.as_ref().is_some_and(|own| leads_to.starts_with(own));
            if mode == SandboxMode::On || !is_own {
                self.add_of_user(folder, Permission::Read);
            }
            if !is_own {
                self.add_beside(folder);
            }
        }
    }

    /// Adds the folders that programs need beside a `bin`, unless that is a user's home folder.
    fn add_beside(&mut self, folder: &Path) {
        let Some(trace) =
            self.listings.trace(folder, &self.write).filter(|trace| trace.target.ends_with("bin"))
        else {
            return;
        };
        let Some(above) = trace.target.parent().filter(|above| self.is_specific_enough(above)) else {
            return;
        };
        if above.parent() != Some(Path::new("/home")) && above != Path::new("/root") {
            let beside = known_paths::BESIDE_PROGRAMS.split_whitespace().map(|name| above.join(name));
            beside.for_each(|path| self.add_of_user(&path, Permission::Read));
        }
    }

    /// The read-only paths: those that the scope says; folders of `PATH` outside of the scope; and startup files,
    /// unless the scope names them. The user runs what lies there outside of any sandbox.
    pub(super) fn read_only(&self) -> Vec<PathBuf> {
        let mut read_only = denied(self.scope, Permission::Write);
        read_only.extend(self.skills.iter().filter(|folder| self.is_writable(folder)).cloned());
        let folders = self.path.iter().map(|(_, leads_to)| leads_to.clone());
        let in_scope = |folder: &Path| {
            let mut writable =
                self.scope.allowed().filter(|(_, permission)| *permission == Permission::Write);
            writable.any(|(allowed, _)| folder.starts_with(allowed))
        };
        read_only.extend(folders.filter(|folder| self.is_writable(folder) && !in_scope(folder)));
        let startup = self.protected.startup.iter().filter_map(|path| self.path_to_cover(path));
        read_only.extend(startup.filter(|path| self.is_writable(path) && !self.is_named_by_scope(path)));
        read_only
    }

    /// Placeholders for missing startup files that a command could create.
    pub(super) fn placeholders(&self) -> Vec<Placeholder> {
        let is_denied = |path: &Path| self.scope.denied().any(|(denied, _)| path.starts_with(denied));
        let is_open =
            |path: &Path| self.is_writable(path) && !is_denied(path) && !self.is_named_by_scope(path);
        let folder = |path: &Path| self.listings.trace(path, &[]).map(|trace| trace.target);
        self.user_home
            .iter()
            .flat_map(|home| missing_startup_files(home, &self.protected.programs, folder, is_open))
            .collect()
    }

    /// The hidden paths: those that the scope denies, home folders, sockets of services, and keys that could be read
    /// otherwise.
    pub(super) fn hidden(&self, private: &[Private]) -> Vec<PathBuf> {
        let mut hidden = denied(self.scope, Permission::Read);
        hidden.push(self.home.clone());
        hidden.extend(self.home_folders(private));
        let keys_and_sockets = self.protected.keys.iter().chain(&self.protected.sockets);
        let path_to_cover = keys_and_sockets.filter_map(|path| self.path_to_cover(path));
        // A file out of reach needs no cover; a folder may hold sockets.
        let is_in_reach = |path: &Path| is_within_any(path, &self.read) || self.is_writable(path);
        let unless_allowed = path_to_cover.filter(|path| !self.is_named_by_scope(path));
        hidden.extend(unless_allowed.filter(|path| is_in_reach(path) || !path.is_file()));
        hidden.sort();
        hidden.dedup();
        hidden
    }

    /// Home folders of this user and of others; and the sockets in the user's own, if the scope contains it. Landlock
    /// restricts neither connecting to a socket nor asking whether a path exists.
    fn home_folders(&self, private: &[Private]) -> Vec<PathBuf> {
        let is_in_scope = |home: &Path| self.scope.allowed().any(|(allowed, _)| home.starts_with(allowed));
        let is_needed = |home: &Path| {
            let is_private = private.iter().any(|private| private.at.starts_with(home));
            let is_read = self.read.iter().any(|place| place == home)
                && (self.is_named_by_scope(home) || !is_in_scope(home));
            home.parent().is_none() || is_private || is_read
        };
        let others =
            known_paths::HOME_FOLDERS.split_whitespace().filter_map(|path| canonical(Path::new(path)));
        let homes = self.user_home.clone().into_iter().chain(home_of_this_user()).chain(others);
        let (open, covered): (Vec<PathBuf>, Vec<PathBuf>) =
            homes.filter(|home| !is_needed(home)).partition(|home| is_in_scope(home));
        let own = self.user_home.iter().filter(|home| open.contains(home));
        let sockets =
            own.flat_map(|home| bound_sockets(home)).filter(|socket| !self.is_named_by_scope(socket));
        sockets.chain(covered).collect()
    }

    /// Files that read as empty.
    pub(super) fn emptied(&self) -> Vec<PathBuf> {
        let all = self.protected.emptied.iter().filter_map(|path| self.path_to_cover(path));
        all.filter(|path| path.is_file() && !self.is_named_by_scope(path)).collect()
    }

    /// Reachable paths and `in_sight` that lie below a hidden path, and stay visible. Naming a part of a hidden path
    /// allows that part alone.
    pub(super) fn kept(&self, private: &[Private], hidden: &[PathBuf], in_sight: &[PathBuf]) -> Vec<PathBuf> {
        let denied = denied(self.scope, Permission::Read);
        let is_concealed = |path: &Path| {
            let mut covers = private.iter().map(|private| &private.at).chain(hidden);
            covers.any(|cover| path != cover && path.starts_with(cover))
        };
        let is_kept = |path: &&Path| {
            let is_denied = denied.iter().chain([&self.home]).any(|denied| path.starts_with(denied));
            is_concealed(path) && (!is_denied || is_within_any(path, &self.skills))
        };
        let places = self.read.iter().chain(&self.write).chain(in_sight).map(PathBuf::as_path);
        let known_links =
            known_paths::SYSTEM_LINKS.split_whitespace().map(Path::new).filter(|link| link.is_symlink());
        let links = self.links.iter().map(PathBuf::as_path).chain(known_links);
        let mut kept: Vec<PathBuf> = places.chain(links).filter(is_kept).map(Path::to_owned).collect();
        kept.sort();
        kept.dedup();
        kept
    }

    /// Adds a path that the user has set up.
    fn add_of_user(&mut self, path: &Path, permission: Permission) {
        let trace =
            self.listings.trace(path, &self.write).filter(|trace| self.is_specific_enough(&trace.target));
        if let Some(trace) = trace {
            self.links.extend(trace.links);
            self.add_place(trace.target, permission);
        }
    }

    /// Whether a path is less than everything: neither `/`, nor around the user's home folder, nor in Longhaul's.
    fn is_specific_enough(&self, place: &Path) -> bool {
        let is_all =
            place.parent().is_none() || self.user_home.as_ref().is_some_and(|own| own.starts_with(place));
        !is_all && !place.starts_with(&self.home)
    }

    /// Adds a path, unless a command could have put a link on the way there.
    fn add(&mut self, path: &Path, permission: Permission) {
        if let Some(trace) = self.listings.trace(path, &self.write) {
            self.add_place(trace.target, permission);
        }
    }

    /// Adds a path without links, unless it is covered already.
    fn add_place(&mut self, place: PathBuf, permission: Permission) {
        let is_known =
            self.is_writable(&place) || permission == Permission::Read && is_within_any(&place, &self.read);
        match permission {
            _ if is_known => {}
            Permission::Read => self.read.push(place),
            Permission::Write => self.write.push(place),
        }
    }

    fn is_writable(&self, path: &Path) -> bool {
        is_within_any(path, &self.write)
    }

    /// The path to cover for a protected path. A link that a command may have put there is followed to keys, but not
    /// to what later commands need.
    fn path_to_cover(&self, path: &Path) -> Option<PathBuf> {
        let trace = self.listings.trace(path, &[])?;
        let is_needed = || self.read.iter().chain(&self.write).any(|place| place.starts_with(&trace.target));
        (!trace.has_link_in(&self.write) || !is_needed()).then_some(trace.target)
    }

    /// Whether the user names exactly this path in the scope.
    fn is_named_by_scope(&self, path: &Path) -> bool {
        self.scope.named().any(|(named, _)| named == path)
    }
}

pub(super) fn canonical(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}
