//! From a scope to the bounds that the system holds a command to.
//!
//! What a command may reach is what the scope allows, and besides that what programs need to run at all: the system's folders, its
//! user's toolchains and the caches of those, and folders for temporary files that are the session's own. What holds keys is never
//! among them. The keeper carries this out and decides nothing.

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
use crate::git::Repositories;
use crate::{Permission, Scope};
use folder_listings::FolderListings;
use reachable_paths::{ReachablePaths, canonical};
pub(crate) use user_folders::{process_environment, user_cache_paths};

/// How closely commands are held to the scope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SandboxMode {
    /// Not at all.
    Off,
    /// The scope, the system's folders, private temporary folders, and the toolchains and caches of the user.
    #[default]
    On,
    /// The scope, the system's folders and private temporary folders, no Unix sockets, no variables that look like secrets, and by default
    /// no network.
    Strict,
}

/// What holds commands to the scope.
#[derive(Debug, Clone)]
pub struct Sandbox {
    mode: SandboxMode,
    network: Network,
    unavailable: Unavailable,
    /// Where the temporary folders of sessions are kept.
    temporary: PathBuf,
    repositories: Arc<Repositories>,
    listings: Arc<FolderListings>,
}

/// What becomes of commands where the system can't hold them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unavailable {
    /// They are refused.
    #[default]
    Refuse,
    /// They run all the same: somebody who may has said so.
    Run,
}

/// What a command gets because of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SandboxedCommand {
    pub(crate) bounds: Option<Bounds>,
    pub(crate) environment: BTreeMap<String, String>,
}

impl Sandbox {
    /// A sandbox for the commands of a Longhaul home. Caches that programs make at their first run are made here: a command could
    /// not, because their folder is not for it to write.
    pub fn new(mode: SandboxMode, home: &Path, environment: &BTreeMap<String, String>) -> Self {
        let own = environment.get("HOME").map(PathBuf::from).filter(|own| own.is_absolute() && own.is_dir());
        if let (SandboxMode::On, Some(own)) = (mode, own) {
            let path = environment.get("PATH").map(String::as_str).unwrap_or_default();
            let has = |program: &str| path.split(':').any(|folder| Path::new(folder).join(program).is_file());
            for known_paths::PrecreatedCache { within, name, of } in known_paths::PRECREATED_CACHES {
                if own.join(within).is_dir() && of.is_none_or(has) {
                    // Where it can't be made, the program that needs it says so.
                    let _ = fs::create_dir(own.join(within).join(name));
                }
            }
        }
        let home = std::path::absolute(home).unwrap_or_else(|_| home.to_owned());
        let temporary = home.join("tmp");
        let repositories = Arc::new(Repositories::new(temporary.clone()));
        let (network, unavailable) = (mode.default_network(), Unavailable::default());
        Self { mode, network, unavailable, temporary, repositories, listings: Arc::default() }
    }

    /// The same, with this network for commands in place of what the mode gives them.
    #[must_use]
    pub fn with_network(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// The same, with what becomes of commands where the system can't hold them.
    #[must_use]
    pub fn or_else(self, unavailable: Unavailable) -> Self {
        Self { unavailable, ..self }
    }

    /// Whether a command is held, given what can be enforced; or why it must not run.
    pub(crate) fn should_confine(&self, enforcement: &Enforcement) -> Result<bool, String> {
        match (self.unenforceable(enforcement), self.unavailable) {
            (None, _) => Ok(self.mode != SandboxMode::Off),
            (Some(_), Unavailable::Run) => Ok(false),
            (Some(why), Unavailable::Refuse) => Err(why),
        }
    }

    /// How closely commands are held.
    pub fn mode(&self) -> SandboxMode {
        self.mode
    }

    /// The git repositories in the work folder, for whoever reports new ones.
    pub fn repositories(&self) -> &Arc<Repositories> {
        &self.repositories
    }

    /// The temporary files of a session, for whoever removes it.
    pub fn temporary_of(&self, session: SessionId) -> PathBuf {
        self.temporary.join(session.to_string())
    }

    /// Why this can't be enforced on a system, in words for people. None if it can be.
    pub fn unenforceable(&self, enforcement: &Enforcement) -> Option<String> {
        match self.mode {
            SandboxMode::Off => None,
            SandboxMode::On | SandboxMode::Strict => {
                enforcement.missing(self.network, self.mode.unix_sockets())
            }
        }
    }

    /// What a command gets that runs in this folder, or why it can't run. Looks at the file system, and changes nothing but what it
    /// notes of repositories.
    ///
    /// Without a session its temporary files are in memory, and go with it.
    pub(crate) fn confine(
        &self,
        scope: &Scope,
        environment: &BTreeMap<String, String>,
        work_dir: &Path,
        session: Option<SessionId>,
    ) -> Result<SandboxedCommand, String> {
        if self.mode == SandboxMode::Off {
            return Ok(SandboxedCommand { bounds: None, environment: environment.clone() });
        }
        let shell = shell_for(environment.get("PATH").map(String::as_str));
        if canonical(&shell).is_some_and(|shell| scope.denies(&shell)) {
            return Err(format!("the scope denies {}, which runs commands", display_path(&shell)));
        }
        let home = self.temporary.parent().unwrap_or(&self.temporary);
        let mut places = ReachablePaths::new(scope, environment, home, self.listings.now());
        let own_folders = session.map(|session| self.temporary_of(session));
        let private = private_folders(scope, own_folders.as_deref());
        // Whatever can be written comes first, so that nothing else is looked for through it.
        if self.mode == SandboxMode::On {
            places.add_caches();
            places.add_toolchains();
        }
        places.add_system();
        places.add_path(self.mode);
        let enclosing_repository =
            repository_access::enclosing_repository_outside(scope, &places, places.user_home());
        let work_tree =
            enclosing_repository.as_ref().map(|enclosing_repository| enclosing_repository.work_tree.clone());
        places.add_repository(enclosing_repository);
        let repositories = self.repositories.guarded(scope, session);
        let guards = repository_access::guards_of(scope, &places.write, &repositories, places.user_home());
        if let Some(session) = session {
            self.repositories.note_guards(session, &guards);
        }
        let (overlays, in_memory) = match &own_folders {
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
            // What the system can do is known where the command is started.
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

/// git looks for its folder above the work folder only as long as it stays on one file system; what is above it here may be a cover.
const GIT_DISCOVERY_VARIABLE: &str = "GIT_DISCOVERY_ACROSS_FILESYSTEM";

impl SandboxMode {
    /// The network of commands where the configuration does not say.
    pub fn default_network(self) -> Network {
        match self {
            Self::Off | Self::On => Network::Open,
            Self::Strict => Network::Closed,
        }
    }

    /// Whether commands can make Unix sockets.
    pub fn unix_sockets(self) -> UnixSockets {
        match self {
            Self::Off | Self::On => UnixSockets::Allowed,
            Self::Strict => UnixSockets::Refused,
        }
    }
}

/// The folders for temporary files, unless the scope has them.
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

/// What the scope denies for good or for writing.
fn denied(scope: &Scope, permission: Permission) -> Vec<PathBuf> {
    let of_this = scope.denied().filter(|(_, denied)| *denied == permission);
    of_this.map(|(path, _)| path).collect()
}

/// Whether a variable is called as those are that hold secrets.
fn is_secret_variable(variable: &str) -> bool {
    let name = variable.to_uppercase();
    known_paths::SECRET_NAME_PARTS.split_whitespace().any(|part| name.contains(part))
        || known_paths::SECRET_NAME_ENDINGS.split_whitespace().any(|end| name.ends_with(end))
}

/// A variable that names a folder for temporary files which the command can't write is left out: `/tmp` is its own.
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
