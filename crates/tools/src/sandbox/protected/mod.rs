//! Protected paths: keys, credentials, sockets of services, and startup files that the user's system runs by itself.
//!
//! There is one list of them. The sandbox hides them from commands, and the scope keeps the file tools and the runtime away from them.
//! A path that `[[scope.allow]]` names itself is not protected. Naming a folder around it does not count, and naming something in it
//! allows that part alone.

mod lists;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use longhaul_keeper::Placeholder;

use super::user_folders::{UserFolders, join_all};

/// The protected paths of one user. They need not exist, and may go through links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProtectedPaths {
    /// Keys and credentials: neither read nor written.
    pub(crate) keys: Vec<PathBuf>,
    /// Folders and files with sockets of services: neither read nor written.
    pub(crate) sockets: Vec<PathBuf>,
    /// Files with keys that read as empty for commands. The file tools refuse them.
    pub(crate) emptied: Vec<PathBuf>,
    /// What the user's shell, desktop or login runs later: commands may read it, but not write it.
    pub(crate) startup: Vec<PathBuf>,
    /// The folders of `PATH` among `startup`.
    pub(crate) programs: Vec<PathBuf>,
}

impl ProtectedPaths {
    /// The protected paths of the user with this home folder and environment. Folders of `PATH` in the home folder are protected only
    /// where `allowed` covers all of the home folder: an allowed project may have programs of its own on `PATH`.
    pub(crate) fn new<'a>(
        user_home: Option<&Path>,
        environment: &BTreeMap<String, String>,
        mut allowed: impl Iterator<Item = &'a Path>,
    ) -> Self {
        let user = UserFolders { home: user_home.map(Path::to_owned), environment };
        let absolute = |value: &str| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
        let everywhere =
            |paths: &str| -> Vec<PathBuf> { paths.split_whitespace().map(PathBuf::from).collect() };

        let mut keys = [user.in_home(lists::KEYS), everywhere(lists::SYSTEM_KEYS)].concat();
        let mut startup = [user.in_home(lists::STARTUP), everywhere(lists::SYSTEM_STARTUP)].concat();
        for cargo_home in user.in_home(".cargo").into_iter().chain(user.named("CARGO_HOME")) {
            keys.extend(join_all(&cargo_home, lists::CARGO_KEYS));
        }
        for config in user.named("XDG_CONFIG_HOME") {
            let moved = |names: &'static str| {
                let names = names.split_whitespace();
                names.filter_map(|name| name.strip_prefix(lists::CONFIG_FOLDER)).map(|name| config.join(name))
            };
            keys.extend(moved(lists::KEYS));
            startup.extend(moved(lists::STARTUP));
        }
        let path = environment.get("PATH").map(String::as_str).unwrap_or_default();
        let mut programs = Vec::new();
        if let Some(home) = user_home.filter(|home| allowed.any(|allowed| home.starts_with(allowed))) {
            let folders = path.split(':').filter_map(absolute).map(|folder| resolve_existing(&folder));
            programs.extend(folders.filter(|folder| folder.starts_with(home) && folder != home));
        }
        startup.extend(programs.iter().cloned());
        let socket = |name: &str| {
            let value = environment.get(name)?;
            absolute(value.strip_prefix("unix://").unwrap_or(value))
        };
        let named_sockets = lists::SOCKET_VARIABLES.split_whitespace().filter_map(socket).collect();
        Self {
            keys,
            sockets: [user.in_home(lists::HOME_SOCKETS), everywhere(lists::SOCKETS), named_sockets].concat(),
            emptied: [user.in_home(lists::EMPTIED), user.named(lists::EMPTIED_VARIABLES)].concat(),
            startup,
            programs,
        }
    }
}

/// The path with all links resolved in the part of it that exists.
fn resolve_existing(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match existing.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?))) {
        Some(real) => real,
        None => path.to_owned(),
    }
}

/// Placeholders for startup files and program folders that are missing from a home folder, so that no command can create them. A
/// placeholder needs an existing folder (`folder` resolves its path) and a path that commands could otherwise write (`is_open`).
pub(crate) fn missing_startup_files(
    user_home: &Path,
    programs: &[PathBuf],
    folder: impl Fn(&Path) -> Option<PathBuf>,
    is_open: impl Fn(&Path) -> bool,
) -> Vec<Placeholder> {
    let files = lists::PLACEHOLDERS.iter().map(|(name, text)| (user_home.join(name), *text));
    let placeholder = |(path, text): (PathBuf, Option<&str>)| {
        let at = folder(path.parent()?)?.join(path.file_name()?);
        let is_missing = is_open(&at) && at.symlink_metadata().is_err();
        is_missing.then(|| Placeholder { at, text: text.map(str::to_owned) })
    };
    files.chain(programs.iter().map(|folder| (folder.clone(), None))).filter_map(placeholder).collect()
}
