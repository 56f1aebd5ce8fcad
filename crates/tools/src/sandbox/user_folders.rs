//! Where a user has what programs need, by the usual names and by what variables say.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::known_paths;

/// Somebody who runs programs.
#[derive(Debug)]
pub(super) struct UserFolders<'a> {
    /// Their own folder.
    pub(super) home: Option<PathBuf>,
    pub(super) environment: &'a BTreeMap<String, String>,
}

impl UserFolders<'_> {
    /// Every path at which there may be a cache.
    pub(super) fn caches(&self) -> Vec<PathBuf> {
        let of_cargo = self.of_cargo(known_paths::CARGO_CACHES);
        let of_go = self.named(&["GOPATH"]).into_iter().map(|folder| folder.join("pkg"));
        let named = self.named(known_paths::CACHE_VARIABLES);
        self.in_home(known_paths::CACHES).into_iter().chain(of_cargo).chain(of_go).chain(named).collect()
    }

    pub(super) fn in_home(&self, names: &[&str]) -> Vec<PathBuf> {
        self.home.iter().flat_map(|own| names.iter().map(|name| own.join(name))).collect()
    }

    pub(super) fn of_cargo(&self, names: &[&str]) -> Vec<PathBuf> {
        let folders = self.in_home(&[".cargo"]).into_iter().chain(self.named(&["CARGO_HOME"]));
        folders
            .flat_map(|folder| names.iter().map(move |name| folder.join(name)).collect::<Vec<_>>())
            .collect()
    }

    /// The paths that variables name.
    pub(super) fn named(&self, names: &[&str]) -> Vec<PathBuf> {
        let values = names.iter().filter_map(|name| self.environment.get(*name));
        values.map(PathBuf::from).filter(|path| path.is_absolute()).collect()
    }
}

/// The home folder of the user that this process runs as, by the system's list of users: `HOME` may name another one.
pub(super) fn home_of_this_user() -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let home = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2) == Some(&user.as_str())).then(|| fields.get(5).copied())?
    })?;
    std::path::Path::new(home).canonicalize().ok()
}

/// Every path at which whoever runs this process may have a cache, and so every place in which a command may have put links.
pub(crate) fn user_cache_paths() -> Vec<PathBuf> {
    UserFolders { home: std::env::home_dir(), environment: &process_environment() }.caches()
}

/// The variables of this process that are text.
pub(crate) fn process_environment() -> BTreeMap<String, String> {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.collect()
}
