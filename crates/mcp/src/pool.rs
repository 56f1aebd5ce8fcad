//! All servers of a runtime.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longhaul_keeper::{Launcher, Tasks};
use longhaul_protocol::SessionId;

use crate::folder_servers::FolderServers;
use crate::launch::ServerPlace;
use crate::server::{Server, ServerHost};
use crate::{McpSettings, ServerSettings};

/// Folders of ended servers are kept this long, for their last words.
const ENDED_SERVER_AGE: Duration = Duration::from_secs(3600);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 5;

/// The servers of a runtime. Sessions of one folder share them, unless a server's settings say otherwise.
#[derive(Clone)]
pub struct McpServers(Arc<Pool>);

struct Pool {
    host: Arc<ServerHost>,
    settings: McpSettings,
    servers: Mutex<HashMap<ServerKey, Arc<Server>>>,
}

/// What a server belongs to. Its settings are part of it: with others, it is another server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct ServerKey {
    name: String,
    fingerprint: String,
    folder: Option<PathBuf>,
    /// The only session that uses it, if it is not shared.
    session: Option<SessionId>,
}

impl McpServers {
    /// The servers of a home. Nothing is started yet.
    pub fn new(home: &Path, launcher: Launcher, settings: McpSettings) -> longhaul_keeper::Result<Self> {
        // Two providers may be compiled in, by other crates; the first one that is installed stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .redirect(reqwest::redirect::Policy::custom(follow_same_origin))
            .build()
            .unwrap_or_default();
        let tasks = Arc::new(Tasks::at(&home.join("mcp/servers"), launcher)?);
        let idle_time = Duration::from_secs(settings.idle_s);
        let host = Arc::new(ServerHost { home: home.to_owned(), tasks, http, idle_time });
        Ok(Self(Arc::new(Pool { host, settings, servers: Mutex::default() })))
    }

    /// The servers for the sessions of one folder: the configured ones and those that its project adds.
    pub fn for_folder(
        &self,
        place: Option<ServerPlace>,
        project: BTreeMap<String, ServerSettings>,
    ) -> FolderServers {
        let mut servers = self.0.settings.servers.clone();
        // The user's own servers win over a project's.
        for (name, settings) in project {
            servers.entry(name).or_insert(settings);
        }
        servers.retain(|_, settings| settings.enabled);
        FolderServers::new(self.clone(), servers, place)
    }

    pub fn settings(&self) -> &McpSettings {
        &self.0.settings
    }

    pub(crate) fn server(
        &self,
        name: &str,
        settings: &ServerSettings,
        place: Option<&ServerPlace>,
        session: SessionId,
    ) -> Arc<Server> {
        let key = ServerKey {
            name: name.to_owned(),
            fingerprint: settings.fingerprint(),
            folder: place.map(|place| place.scope.work_dir().to_owned()),
            session: (!settings.shared).then_some(session),
        };
        let mut servers = self.lock();
        let host = &self.0.host;
        let make = || Server::new(name, settings.clone(), place.cloned(), Arc::clone(host));
        Arc::clone(servers.entry(key).or_insert_with(make))
    }

    /// All servers that were used, by name.
    pub(crate) fn used(&self) -> Vec<Arc<Server>> {
        let mut servers: Vec<_> = self.lock().values().cloned().collect();
        servers.sort_by(|one, other| one.name().cmp(other.name()));
        servers
    }

    /// Removes what ended servers left. Blocks.
    pub fn remove_leftovers(&self) {
        let _ = self.0.host.tasks.expire(ENDED_SERVER_AGE, |_| false);
    }

    /// Closes all connections. The keepers end the programs.
    pub fn stop_all(&self) {
        let servers = std::mem::take(&mut *self.lock());
        servers.values().for_each(|server| server.stop());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ServerKey, Arc<Server>>> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The user configured one address, and no other is reached in its name: a redirect must stay at the same origin.
fn follow_same_origin(attempt: reqwest::redirect::Attempt<'_>) -> reqwest::redirect::Action {
    let is_same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
    match is_same && attempt.previous().len() <= MAX_REDIRECTS {
        true => attempt.follow(),
        false => attempt.stop(),
    }
}
