//! Where the user has toolchains and caches, by their usual names and by environment variables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::known_paths;

/// A user's home folder and environment. Lists of names are separated by white space.
#[derive(Debug)]
pub(super) struct UserFolders<'a> {
    pub(super) home: Option<PathBuf>,
    pub(super) environment: &'a BTreeMap<String, String>,
}

impl UserFolders<'_> {
    /// Every path that may be a cache.
    pub(super) fn caches(&self) -> Vec<PathBuf> {
        let cargo_homes = self.in_home(".cargo").into_iter().chain(self.named("CARGO_HOME"));
        let of_cargo = cargo_homes.flat_map(|home| join_all(&home, known_paths::CARGO_CACHES));
        let of_go = self.named("GOPATH").into_iter().map(|folder| folder.join("pkg"));
        let named = self.named(known_paths::CACHE_VARIABLES);
        self.in_home(known_paths::CACHES).into_iter().chain(of_cargo).chain(of_go).chain(named).collect()
    }

    pub(super) fn in_home(&self, names: &str) -> Vec<PathBuf> {
        self.home.iter().flat_map(|home| join_all(home, names)).collect()
    }

    /// The absolute paths in these environment variables.
    pub(super) fn named(&self, variables: &str) -> Vec<PathBuf> {
        let values = variables.split_whitespace().filter_map(|name| self.environment.get(name));
        values.map(PathBuf::from).filter(|path| path.is_absolute()).collect()
    }
}

pub(super) fn join_all(folder: &Path, names: &str) -> Vec<PathBuf> {
    names.split_whitespace().map(|name| folder.join(name)).collect()
}

/// The home folder in `/etc/passwd` of the user that this process runs as. `HOME` may name another one.
pub(super) fn home_of_this_user() -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let home = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2) == Some(&user.as_str())).then(|| fields.get(5).copied())?
    })?;
    Path::new(home).canonicalize().ok()
}

/// Every path that may be a cache of this process's user. A command may have put links there.
pub(crate) fn user_cache_paths() -> Vec<PathBuf> {
    UserFolders { home: std::env::home_dir(), environment: &process_environment() }.caches()
}

/// The variables of this process whose name and value are Unicode.
pub(crate) fn process_environment() -> BTreeMap<String, String> {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.collect()
}
