//! The sandbox: what a command may reach, derived from the scope.
//!
//! A command may reach what the scope allows, and besides that what programs need to run at all: the system's folders,
//! the user's toolchains and their caches, and temporary folders of the session. Keys and credentials are never among
//! them. The result is `keeper::Bounds`, plain data. The keeper enforces them (Landlock, namespaces, seccomp) and
//! decides nothing.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `reachable_paths` | the paths that a command may read and write, and those that are hidden from it |
//! | `known_paths`, `user_folders` | where programs have what they need, by usual names and by environment variables |
//! | `protected` | keys, credentials, sockets and startup files: one list for the scope and the sandbox |
//! | `cache_overlays` | the user's caches, as overlays of the session |
//! | `repository_access` | the git repositories in and around the work folder |
//! | `folder_listings` | cached folder listings, to find hundreds of paths cheaply |
//! | `sockets` | Unix sockets in a home folder |

mod cache_overlays;
mod folder_listings;
mod known_paths;
pub(crate) mod protected;
mod reachable_paths;
mod repository_access;
mod sockets;
mod user_folders;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use longhaul_keeper::{Bounds, Enforcement, Network, Private, ProcessNamespace, UnixSockets, shell_for};
use longhaul_protocol::SessionId;

use crate::display::display_path;
use crate::git::RepositoryTracker;
use crate::{Permission, Scope};
use folder_listings::FolderListings;
use reachable_paths::{ReachablePaths, canonical};
pub(crate) use user_folders::{process_environment, user_cache_paths};

/// How strictly commands are confined to the scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// Commands are not confined.
    Off,
    /// The scope, the system's folders, private temporary folders, and the user's toolchains and caches.
    #[default]
    On,
    /// Like `On`, but without the user's toolchains and caches, without variables named like secrets, without Unix
    /// sockets, and with no network by default.
    Strict,
}

/// Confines commands to the scope.
#[derive(Debug, Clone)]
pub struct Sandbox {
    mode: SandboxMode,
    network: Network,
    unavailable: SandboxFallback,
    /// Holds the temporary folders of sessions.
    temporary: PathBuf,
    repositories: Arc<RepositoryTracker>,
    listings: Arc<FolderListings>,
}

/// What to do with commands where the system can't confine them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxFallback {
    /// Refuse them.
    #[default]
    Refuse,
    /// Run them without confinement: the user has allowed that.
    Run,
}

/// The bounds and the environment of a command. Without bounds, it is not confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxedCommand {
    pub bounds: Option<Bounds>,
    pub environment: BTreeMap<String, String>,
}

impl Sandbox {
    /// Creates the sandbox of a Longhaul home. Creates the cache folders that programs create at their first run,
    /// because a command could not: their folder is read-only to it.
    pub fn new(mode: SandboxMode, home: &Path, environment: &BTreeMap<String, String>) -> Self {
        let own = environment.get("HOME").map(PathBuf::from).filter(|own| own.is_absolute() && own.is_dir());
        if let (SandboxMode::On, Some(own)) = (mode, own) {
            let path = environment.get("PATH").map(String::as_str).unwrap_or_default();
            let has = |program: &str| path.split(':').any(|folder| Path::new(folder).join(program).is_file());
            for known_paths::PrecreatedCache { within, name, of } in known_paths::PRECREATED_CACHES {
                if own.join(within).is_dir() && of.is_none_or(has) {
                    // If it can't be created, the program that needs it reports that.
                    let _ = fs::create_dir(own.join(within).join(name));
                }
            }
        }
        let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        let temporary = home.join("tmp");
        let repositories = Arc::new(RepositoryTracker::new(temporary.clone()));
        let (network, unavailable) = (mode.default_network(), SandboxFallback::default());
        Self { mode, network, unavailable, temporary, repositories, listings: Arc::default() }
    }

    /// The sandbox with this network for commands, in place of the default of its mode.
    #[must_use]
    pub fn with_network(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// The sandbox with another fallback.
    #[must_use]
    pub fn with_fallback(self, unavailable: SandboxFallback) -> Self {
        Self { unavailable, ..self }
    }

    /// Whether to confine a command, given what the system can enforce; an error if the command must not run.
    pub(crate) fn should_confine(&self, enforcement: &Enforcement) -> Result<bool, String> {
        match (self.unenforceable(enforcement), self.unavailable) {
            (None, _) => Ok(self.mode != SandboxMode::Off),
            (Some(_), SandboxFallback::Run) => Ok(false),
            (Some(why), SandboxFallback::Refuse) => Err(why),
        }
    }

    /// How strictly commands are confined to the scope.
    pub fn mode(&self) -> SandboxMode {
        self.mode
    }

    /// The git repositories in the work folder.
    pub fn repositories(&self) -> &Arc<RepositoryTracker> {
        &self.repositories
    }

    /// Whether commands are confined, as far as the system can.
    pub fn is_on(&self) -> bool {
        self.mode != SandboxMode::Off
    }

    /// The folder with a session's temporary files.
    pub fn session_temporary_folder(&self, session: SessionId) -> PathBuf {
        self.temporary.join(session.to_string())
    }

    /// Why the system can't enforce this sandbox, for the user. `None` if it can.
    pub fn unenforceable(&self, enforcement: &Enforcement) -> Option<String> {
        match self.mode {
            SandboxMode::Off => None,
            SandboxMode::On | SandboxMode::Strict => {
                enforcement.missing(self.network, self.mode.unix_sockets())
            }
        }
    }

    /// The bounds and the environment of a command that runs in `work_dir`, or why it can't run. Changes nothing on
    /// disk except the notes about repositories.
    ///
    /// Without a session, the temporary files are in memory and go with the command. It may read `skill_folders`, and not
    /// write them.
    pub(crate) fn confine(
        &self,
        scope: &Scope,
        environment: &BTreeMap<String, String>,
        work_dir: &Path,
        session: Option<SessionId>,
        skill_folders: &[PathBuf],
    ) -> Result<SandboxedCommand, String> {
        let own_folder = session.map(|session| self.session_temporary_folder(session));
        let owner = CommandOwner { session, own_folder: own_folder.as_deref(), skill_folders };
        self.confine_with(scope, environment, work_dir, owner)
    }

    /// The bounds and the environment of a server that runs in the work folder for several sessions, or why it can't run. Its
    /// temporary files, and what it adds to the user's caches, are kept in `own_folder` from one start to the next.
    pub fn confine_server(
        &self,
        scope: &Scope,
        environment: &BTreeMap<String, String>,
        own_folder: &Path,
        enforcement: &Enforcement,
    ) -> Result<SandboxedCommand, String> {
        if self.mode == SandboxMode::Off || !self.should_confine(enforcement)? {
            return Ok(SandboxedCommand { bounds: None, environment: environment.clone() });
        }
        scope.find_protected_files();
        let owner = CommandOwner { session: None, own_folder: Some(own_folder), skill_folders: &[] };
        let mut confined = self.confine_with(scope, environment, scope.work_dir(), owner)?;
        if let Some(bounds) = &mut confined.bounds {
            bounds.processes = enforcement.processes();
        }
        Ok(confined)
    }

    fn confine_with(
        &self,
        scope: &Scope,
        environment: &BTreeMap<String, String>,
        work_dir: &Path,
        owner: CommandOwner<'_>,
    ) -> Result<SandboxedCommand, String> {
        let CommandOwner { session, own_folder, skill_folders } = owner;
        if self.mode == SandboxMode::Off {
            return Ok(SandboxedCommand { bounds: None, environment: environment.clone() });
        }
        let shell = shell_for(environment.get("PATH").map(String::as_str));
        if canonical(&shell).is_some_and(|shell| scope.denies(&shell)) {
            return Err(format!("the scope denies {}, which runs commands", display_path(&shell)));
        }
        let home = self.temporary.parent().unwrap_or(&self.temporary);
        let mut places = ReachablePaths::new(scope, environment, home, self.listings.now());
        let private = private_folders(scope, own_folder);
        // Writable paths come first, so that nothing else is found through them.
        if self.mode == SandboxMode::On {
            places.add_caches();
            places.add_toolchains();
        }
        places.add_system();
        places.add_path(self.mode);
        places.add_skills(skill_folders);
        let repository = repository_access::enclosing_repository_outside(scope, &places, places.user_home());
        let work_tree = repository.as_ref().map(|repository| repository.work_tree.clone());
        places.add_repository(repository);
        let repositories = self.repositories.guarded(scope, session);
        let guards = repository_access::guards_of(scope, &places.write, &repositories, places.user_home());
        if let Some(session) = session {
            self.repositories.note_guards(session, &guards);
        }
        let (overlays, in_memory) = match own_folder {
            Some(folder) => {
                (cache_overlays::overlays(&places.caches, places.user_home(), folder), Vec::new())
            }
            None => (Vec::new(), cache_overlays::in_memory(&places.caches)),
        };
        let emptied = match self.mode {
            SandboxMode::Strict => repository_access::user_config(places.user_home()),
            SandboxMode::On | SandboxMode::Off => Vec::new(),
        };
        let missing = places.placeholders();
        let read_only = places.read_only().into_iter().chain(guards.read_only);
        let hidden = places.hidden(&private);
        let in_sight: Vec<PathBuf> = [work_dir.to_owned()].into_iter().chain(work_tree).collect();
        let bounds = Bounds {
            kept: places.kept(&private, &hidden, &in_sight),
            emptied: places.emptied().into_iter().chain(emptied).collect(),
            hidden,
            read_only: read_only.chain(missing.iter().map(|missing| missing.at.clone())).collect(),
            placeholders: guards.placeholders.into_iter().chain(missing).collect(),
            overlays,
            devices: known_paths::DEVICES
                .split_whitespace()
                .filter_map(|path| canonical(Path::new(path)))
                .collect(),
            private: private.into_iter().chain(in_memory).collect(),
            network: self.network,
            unix_sockets: self.mode.unix_sockets(),
            // The caller knows what the system can do.
            processes: ProcessNamespace::Shared,
            write: places.without_caches(),
            read: places.read,
        };
        let mut environment = with_temporary_folder(environment, &bounds);
        if self.mode == SandboxMode::Strict {
            environment.retain(|name, _| !is_secret_variable(name));
        }
        environment.entry(GIT_DISCOVERY_VARIABLE.to_owned()).or_insert_with(|| "1".to_owned());
        Ok(SandboxedCommand { environment, bounds: Some(bounds) })
    }
}

/// Whose command is confined.
#[derive(Clone, Copy)]
struct CommandOwner<'a> {
    /// `None` for a server, and for a command whose temporary files go with it.
    session: Option<SessionId>,
    /// Where its temporary files and its layers of the user's caches are. `None`: in memory.
    own_folder: Option<&'a Path>,
    /// The folders of the skills in use. The command may read them.
    skill_folders: &'a [PathBuf],
}

/// Without it, git stops looking for its folder at a file system boundary, and a folder above the work folder may be a
/// mount of the sandbox.
const GIT_DISCOVERY_VARIABLE: &str = "GIT_DISCOVERY_ACROSS_FILESYSTEM";

impl SandboxMode {
    /// The network of commands, unless the configuration says otherwise.
    pub fn default_network(self) -> Network {
        match self {
            Self::Off | Self::On => Network::Open,
            Self::Strict => Network::Closed,
        }
    }

    pub fn unix_sockets(self) -> UnixSockets {
        match self {
            Self::Off | Self::On => UnixSockets::Allowed,
            Self::Strict => UnixSockets::Refused,
        }
    }
}

/// The private temporary folders, except where the scope allows the real ones.
fn private_folders(scope: &Scope, own: Option<&Path>) -> Vec<Private> {
    let mut private: Vec<Private> = Vec::new();
    for (folder, name) in known_paths::TEMPORARY_FOLDERS {
        let Some(at) = canonical(Path::new(folder)) else { continue };
        let is_allowed = scope.allowed().any(|(allowed, _)| at.starts_with(allowed));
        if !is_allowed && !private.iter().any(|known| known.at == at) {
            private.push(Private { at, kept_in: name.and_then(|name| Some(own?.join(name))) });
        }
    }
    private
}

/// The paths that the scope denies for this permission.
fn denied(scope: &Scope, permission: Permission) -> Vec<PathBuf> {
    let of_this = scope.denied().filter(|(_, denied)| *denied == permission);
    of_this.map(|(path, _)| path).collect()
}

/// Whether a variable has the name of a secret.
fn is_secret_variable(variable: &str) -> bool {
    let name = variable.to_uppercase();
    known_paths::SECRET_NAME_PARTS.split_whitespace().any(|part| name.contains(part))
        || known_paths::SECRET_NAME_ENDINGS.split_whitespace().any(|end| name.ends_with(end))
}

/// The environment without variables that name an unwritable folder for temporary files: `/tmp` is the command's own.
fn with_temporary_folder(
    environment: &BTreeMap<String, String>,
    bounds: &Bounds,
) -> BTreeMap<String, String> {
    let is_writable = |folder: &str| {
        let path = canonical(Path::new(folder));
        let layered = bounds.overlays.iter().flat_map(|overlay| &overlay.at);
        let mut places = bounds.write.iter().chain(layered);
        path.is_some_and(|path| places.any(|place| path.starts_with(place)))
    };
    let is_of_use = |name: &str, value: &str| {
        !known_paths::TEMPORARY_VARIABLES.split_whitespace().any(|known| known == name) || is_writable(value)
    };
    let kept = environment.iter().filter(|(name, value)| is_of_use(name, value));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
#[path = "sandbox_tests.rs"]
mod tests;
