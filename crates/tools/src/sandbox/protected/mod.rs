//! Places that the agent does not get at by having a scope around them: keys, credentials, sockets of services, and what the user's
//! system runs by itself.
//!
//! There is one list of them. The sandbox hides these places from commands (`bounds`), and the scope keeps the file tools and the runtime
//! itself away from them (`scope`). A place that `[[scope.allow]]` names itself is not protected; naming a folder around it does not
//! count, and naming something in it allows that part alone.

mod lists;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use longhaul_keeper::Placeholder;

/// The protected places of one user, as paths that need not exist and may go through links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProtectedPlaces {
    /// Keys and credentials: neither read nor written.
    pub(crate) keys: Vec<PathBuf>,
    /// Folders and files with sockets of services: neither read nor written.
    pub(crate) sockets: Vec<PathBuf>,
    /// Files with keys that read as empty for commands. The file tools refuse them.
    pub(crate) emptied: Vec<PathBuf>,
    /// What the user's shell, desktop or login runs later: read, but not written by commands.
    pub(crate) startup: Vec<PathBuf>,
    /// Of those, the folders of `PATH`.
    pub(crate) programs: Vec<PathBuf>,
}

impl ProtectedPlaces {
    /// The places of the user with this home folder and these variables, given what is allowed. The folders of `PATH` that lie in the home
    /// folder are among them where all of the home folder is allowed; an allowed project may have programs of its own on `PATH`.
    pub(crate) fn new<'a>(
        user_home: Option<&Path>,
        environment: &BTreeMap<String, String>,
        mut allowed: impl Iterator<Item = &'a Path>,
    ) -> Self {
        let in_home = |names: &[&str]| -> Vec<PathBuf> {
            user_home.iter().flat_map(|home| names.iter().map(|name| home.join(name))).collect()
        };
        let absolute = |value: &str| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
        let named = |names: &[&str]| -> Vec<PathBuf> {
            names.iter().filter_map(|name| absolute(environment.get(*name)?)).collect()
        };
        let everywhere = |paths: &[&str]| -> Vec<PathBuf> { paths.iter().map(PathBuf::from).collect() };

        let mut keys = [in_home(lists::KEYS), everywhere(lists::SYSTEM_KEYS)].concat();
        let mut startup = [in_home(lists::STARTUP), everywhere(lists::SYSTEM_STARTUP)].concat();
        let cargo_homes = [in_home(&[".cargo"]), named(&["CARGO_HOME"])].concat();
        keys.extend(cargo_homes.iter().flat_map(|home| lists::CARGO_KEYS.iter().map(|name| home.join(name))));
        for config in named(&["XDG_CONFIG_HOME"]) {
            let moved = |names: &'static [&str]| {
                names.iter().filter_map(|name| name.strip_prefix(lists::CONFIG_FOLDER))
            };
            keys.extend(moved(lists::KEYS).map(|name| config.join(name)));
            startup.extend(moved(lists::STARTUP).map(|name| config.join(name)));
        }
        let path = environment.get("PATH").map(String::as_str).unwrap_or_default();
        let exposed_home = user_home.filter(|home| allowed.any(|allowed| home.starts_with(allowed)));
        let mut programs = Vec::new();
        if let Some(home) = exposed_home {
            let folders = path.split(':').filter_map(absolute);
            let folders = folders.map(|folder| without_links(&folder));
            programs.extend(folders.filter(|folder| folder.starts_with(home) && folder != home));
        }
        startup.extend(programs.iter().cloned());
        let socket = |name: &&str| {
            let value = environment.get(*name)?;
            absolute(value.strip_prefix("unix://").unwrap_or(value))
        };
        let named_sockets = lists::SOCKET_VARIABLES.iter().filter_map(socket);
        Self {
            keys,
            sockets: in_home(lists::HOME_SOCKETS)
                .into_iter()
                .chain(everywhere(lists::SOCKETS))
                .chain(named_sockets)
                .collect(),
            emptied: [in_home(lists::EMPTIED), named(lists::EMPTIED_VARIABLES)].concat(),
            startup,
            programs,
        }
    }
}

/// A path with the links on the way to it resolved as far as it exists.
fn without_links(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match existing.and_then(|(above, real)| Some(real.join(path.strip_prefix(above).ok()?))) {
        Some(real) => real,
        None => path.to_owned(),
    }
}

/// What stands in for the startup files that are missing from a home folder now, and for missing folders of programs, so that a command can't make
/// them. The folder of each has to be there (`folder` says where a path to one leads), and the place open to commands.
pub(crate) fn missing_startup_files(
    user_home: &Path,
    programs: &[PathBuf],
    folder: impl Fn(&Path) -> Option<PathBuf>,
    is_open: impl Fn(&Path) -> bool,
) -> Vec<Placeholder> {
    let names = lists::PLACEHOLDERS.iter().map(|(name, text)| (user_home.join(name), *text));
    let place = |(path, text): (PathBuf, Option<&str>)| {
        let at = folder(path.parent()?)?.join(path.file_name()?);
        let is_missing = is_open(&at) && at.symlink_metadata().is_err();
        is_missing.then(|| Placeholder { at, text: text.map(str::to_owned) })
    };
    names.chain(programs.iter().map(|folder| (folder.clone(), None))).filter_map(place).collect()
}
