//! Gathering the places that a command may reach.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use longhaul_keeper::Private;

use super::{SandboxMode, denied, known};
use crate::{Permission, Scope};

/// The places that a command may reach, and what is known of the rest.
#[derive(Debug)]
pub(super) struct Places<'a> {
    scope: &'a Scope,
    environment: &'a BTreeMap<String, String>,
    /// The user's own folder.
    own: Option<PathBuf>,
    /// Longhaul's own folder.
    home: PathBuf,
    pub(super) read: Vec<PathBuf>,
    pub(super) write: Vec<PathBuf>,
}

impl<'a> Places<'a> {
    /// What the scope allows.
    pub(super) fn new(scope: &'a Scope, environment: &'a BTreeMap<String, String>, home: &Path) -> Self {
        let own = environment.get("HOME").and_then(|own| resolved(Path::new(own)));
        let (mut read, mut write) = (Vec::new(), Vec::new());
        for (path, permission) in scope.allowed() {
            match permission {
                Permission::Read => read.push(path.to_owned()),
                Permission::Write => write.push(path.to_owned()),
            }
        }
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        Self { scope, environment, own, home, read, write }
    }

    pub(super) fn add_system(&mut self) {
        let settings = known::SETTINGS.iter().map(|name| Path::new("/etc").join(name));
        let folders = known::SYSTEM.iter().map(PathBuf::from);
        let has_version = |name: &std::ffi::OsStr| {
            known::SETTINGS_OF_VERSIONS
                .iter()
                .any(|begin| name.as_encoded_bytes().starts_with(begin.as_bytes()))
        };
        let entries = std::fs::read_dir("/etc").into_iter().flatten().flatten();
        let of_versions = entries.filter(|entry| has_version(&entry.file_name())).map(|entry| entry.path());
        folders.chain(settings).chain(of_versions).for_each(|path| self.add(&path, Permission::Read));
    }

    pub(super) fn add_toolchains(&mut self) {
        let named = self.named(known::NAMES_OF_TOOLCHAINS);
        self.in_own(known::TOOLCHAINS)
            .into_iter()
            .chain(named)
            .for_each(|path| self.add_of_user(&path, Permission::Read));
    }

    pub(super) fn add_caches(&mut self) {
        let of_cargo = self.of_cargo(known::CACHES_OF_CARGO);
        let of_go = self.named(&["GOPATH"]).into_iter().map(|folder| folder.join("pkg"));
        let named = self.named(known::NAMES_OF_CACHES);
        let all = self.in_own(known::CACHES).into_iter().chain(of_cargo).chain(of_go).chain(named);
        all.for_each(|path| self.add_of_user(&path, Permission::Write));
    }

    /// The folders in which commands are looked for.
    pub(super) fn add_path(&mut self, mode: SandboxMode) {
        let path = self.environment.get("PATH").map(String::as_str).unwrap_or_default();
        for folder in path.split(':').filter(|folder| folder.starts_with('/')) {
            let is_own = resolved(Path::new(folder))
                .is_some_and(|folder| self.own.as_ref().is_some_and(|own| folder.starts_with(own)));
            if mode == SandboxMode::On || !is_own {
                self.add_of_user(Path::new(folder), Permission::Read);
            }
        }
    }

    /// What can't be written: what the scope says, and folders in which commands are looked for, wherever they are, unless the scope
    /// has them: what lies there the user runs outside of every sandbox.
    pub(super) fn read_only(&self) -> Vec<PathBuf> {
        let mut read_only = denied(self.scope, Permission::Write);
        let path = self.environment.get("PATH").map(String::as_str).unwrap_or_default();
        let folders = path.split(':').filter_map(|folder| resolved(Path::new(folder)));
        let in_scope = |folder: &Path| {
            let mut writable =
                self.scope.allowed().filter(|(_, permission)| *permission == Permission::Write);
            writable.any(|(allowed, _)| folder.starts_with(allowed))
        };
        read_only.extend(folders.filter(|folder| self.is_writable(folder) && !in_scope(folder)));
        read_only
    }

    /// What is not to be seen at all: what the scope denies, sockets of services, and keys where they could be read otherwise.
    pub(super) fn hidden(&self) -> Vec<PathBuf> {
        let mut hidden = denied(self.scope, Permission::Read);
        hidden.push(self.home.clone());
        let sockets = known::SOCKETS.iter().map(PathBuf::from).chain(self.named_sockets());
        let keys = self.in_own(known::KEYS).into_iter().chain(self.of_cargo(known::KEYS_OF_CARGO));
        let keys_of_system = known::KEYS_OF_THE_SYSTEM.iter().map(PathBuf::from);
        let unless_allowed = sockets.chain(keys).chain(keys_of_system).filter_map(|path| resolved(&path));
        hidden.extend(unless_allowed.filter(|path| !self.is_meant(path)));
        hidden.sort();
        hidden.dedup();
        hidden
    }

    /// Files that are read as empty.
    pub(super) fn emptied(&self) -> Vec<PathBuf> {
        let named = self.named(known::NAMES_OF_EMPTIED);
        let all = self.in_own(known::EMPTIED).into_iter().chain(named).filter_map(|path| resolved(&path));
        all.filter(|path| path.is_file() && !self.is_meant(path)).collect()
    }

    /// What is allowed, or is the folder that the command runs in, and would be out of sight otherwise.
    pub(super) fn kept(&self, private: &[Private], work_dir: &Path) -> Vec<PathBuf> {
        let denied = denied(self.scope, Permission::Read);
        let is_concealed = |path: &Path| {
            private
                .iter()
                .map(|private| private.at.as_path())
                .chain(known::SOCKETS.iter().map(Path::new))
                .any(|cover| path != cover && path.starts_with(cover))
        };
        let is_kept = |path: &&Path| {
            let is_denied = denied.iter().chain([&self.home]).any(|denied| path.starts_with(denied));
            is_concealed(path) && !is_denied
        };
        let places = self.read.iter().chain(&self.write).map(PathBuf::as_path).chain([work_dir]);
        let links = known::LINKS_AMONG_SOCKETS.iter().map(Path::new).filter(|link| link.is_symlink());
        let mut kept: Vec<PathBuf> = places.chain(links).filter(is_kept).map(Path::to_owned).collect();
        kept.sort();
        kept.dedup();
        kept
    }

    /// Adds something that the user has set up, unless that is more than anybody can have meant: all that they have, or our own.
    fn add_of_user(&mut self, path: &Path, permission: Permission) {
        let Some(place) = resolved(path) else { return };
        let is_all = place.parent().is_none() || self.own.as_ref().is_some_and(|own| own.starts_with(&place));
        if !is_all && !place.starts_with(&self.home) {
            self.add(path, permission);
        }
    }

    /// Adds a place. What a command can write it could have replaced by a link, so nothing in there is followed; it is allowed already.
    fn add(&mut self, path: &Path, permission: Permission) {
        if self.is_writable(path) {
            return;
        }
        let Some(place) = resolved(path).filter(|place| !self.is_writable(place)) else { return };
        let places = match permission {
            Permission::Read => &mut self.read,
            Permission::Write => &mut self.write,
        };
        if !places.iter().any(|known| place.starts_with(known)) {
            places.push(place);
        }
    }

    fn is_writable(&self, path: &Path) -> bool {
        self.write.iter().any(|place| path.starts_with(place))
    }

    /// Whether the scope allows this very thing or a part of it, and not only something that it lies in.
    fn is_meant(&self, path: &Path) -> bool {
        self.scope.allowed().any(|(allowed, _)| allowed.starts_with(path))
    }

    fn in_own(&self, names: &[&str]) -> Vec<PathBuf> {
        self.own.iter().flat_map(|own| names.iter().map(|name| own.join(name))).collect()
    }

    fn of_cargo(&self, names: &[&str]) -> Vec<PathBuf> {
        let folders = self.in_own(&[".cargo"]).into_iter().chain(self.named(&["CARGO_HOME"]));
        folders
            .flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>())
            .collect()
    }

    /// The paths that variables name.
    fn named(&self, names: &[&str]) -> Vec<PathBuf> {
        let values = names.iter().filter_map(|name| self.environment.get(*name));
        values.map(PathBuf::from).filter(|path| path.is_absolute()).collect()
    }

    fn named_sockets(&self) -> impl Iterator<Item = PathBuf> {
        let values = known::NAMES_OF_SOCKETS.iter().filter_map(|name| self.environment.get(*name));
        values
            .map(|value| PathBuf::from(value.strip_prefix("unix://").unwrap_or(value)))
            .filter(|path| path.is_absolute())
    }
}

/// Where a path leads, if it leads anywhere.
pub(super) fn resolved(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}
