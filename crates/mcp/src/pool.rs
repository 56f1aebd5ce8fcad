//! All servers of a runtime.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use longhaul_keeper::Launcher;
use longhaul_protocol::SessionId;
use longhaul_redact::Redactor;
use longhaul_tools::NetworkGuard;

use crate::folder_servers::FolderServers;
use crate::host::ServerHost;
use crate::launch::ServerPlace;
use crate::server::Server;
use crate::{McpSettings, ServerSettings};

/// How long the folder of an ended server is kept, so that its last output can be read.
const ENDED_SERVER_AGE: Duration = Duration::from_secs(3600);
/// How long the files that a server keeps for its next start may be unused before they are removed.
const UNUSED_CACHE_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// The servers of a runtime. Sessions of one folder share them, unless a server's settings say otherwise.
#[derive(Clone)]
pub struct McpServers(Arc<Pool>);

struct Pool {
    host: Arc<ServerHost>,
    settings: McpSettings,
    servers: Mutex<HashMap<ServerKey, Arc<Server>>>,
    /// Servers that only one session has, because its client brought them.
    of_sessions: Mutex<HashMap<SessionId, BTreeMap<String, ServerSettings>>>,
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

impl ServerKey {
    fn new(name: &str, settings: &ServerSettings, place: Option<&ServerPlace>, session: SessionId) -> Self {
        Self {
            name: name.to_owned(),
            fingerprint: settings.fingerprint(),
            folder: place.map(|place| place.scope.work_dir().to_owned()),
            session: (!settings.shared).then_some(session),
        }
    }
}

impl McpServers {
    /// The servers of a home. Nothing is started or created yet: most runtimes never use one.
    ///
    /// `guard` says where the requests of a login may go besides the server itself; the redactor learns the tokens of logins.
    pub fn new(
        home: &Path,
        launcher: Launcher,
        settings: McpSettings,
        guard: NetworkGuard,
        redactor: Redactor,
    ) -> Self {
        let idle_time = Duration::from_secs(settings.idle_s);
        let host = Arc::new(ServerHost::new(home, launcher, idle_time, guard, redactor));
        Self(Arc::new(Pool { host, settings, servers: Mutex::default(), of_sessions: Mutex::default() }))
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
            servers.entry(name).or_insert_with(|| settings.with_expanded_url());
        }
        servers.retain(|_, settings| settings.enabled);
        FolderServers::new(self.clone(), servers, place)
    }

    /// Gives a session servers of its own, in place of those that it was given before. They run for this session alone, and are ended
    /// when it is given others. A server with the same settings as before goes on.
    pub fn set_session_servers(&self, session: SessionId, servers: BTreeMap<String, ServerSettings>) {
        self.0.host.learn_secrets(servers.values());
        let of_session =
            |settings: ServerSettings| ServerSettings { shared: false, ..settings.with_expanded_url() };
        let servers: BTreeMap<_, _> =
            servers.into_iter().map(|(name, settings)| (name, of_session(settings))).collect();
        let mut of_sessions = self.0.of_sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let before = match servers.is_empty() {
            true => of_sessions.remove(&session),
            false => of_sessions.insert(session, servers.clone()),
        };
        let is_over = |name: &String, settings: &ServerSettings| servers.get(name) != Some(settings);
        for (name, settings) in
            before.into_iter().flatten().filter(|(name, settings)| is_over(name, settings))
        {
            let fingerprint = settings.fingerprint();
            let is_its = |key: &ServerKey| {
                key.session == Some(session) && key.name == name && key.fingerprint == fingerprint
            };
            self.lock().extract_if(|key, _| is_its(key)).for_each(|(_, server)| server.stop());
        }
    }

    /// The servers that this session alone has.
    pub(crate) fn session_servers(&self, session: SessionId) -> BTreeMap<String, ServerSettings> {
        let of_sessions = self.0.of_sessions.lock().unwrap_or_else(PoisonError::into_inner);
        of_sessions.get(&session).cloned().unwrap_or_default()
    }

    /// No servers: for sessions that may use less than their folder's servers can.
    pub fn none(&self) -> FolderServers {
        FolderServers::new(self.clone(), BTreeMap::new(), None)
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
        let key = ServerKey::new(name, settings, place, session);
        let mut servers = self.lock();
        if let Some(server) = servers.get(&key) {
            return Arc::clone(server);
        }
        // Sessions come and go: what only one of them had is forgotten once it does not run, and nothing uses it.
        servers.retain(|key, server| {
            key.session.is_none() || Arc::strong_count(server) > 1 || !server.is_at_rest()
        });
        let (host, own_session) = (Arc::clone(&self.0.host), key.session);
        let server = Server::new(name, settings.clone(), place.cloned(), own_session, host);
        servers.insert(key, Arc::clone(&server));
        server
    }

    /// The server, if it was used.
    pub(crate) fn known_server(
        &self,
        name: &str,
        settings: &ServerSettings,
        place: Option<&ServerPlace>,
        session: SessionId,
    ) -> Option<Arc<Server>> {
        self.lock().get(&ServerKey::new(name, settings, place, session)).cloned()
    }

    pub(crate) fn host(&self) -> &ServerHost {
        &self.0.host
    }

    /// All servers that were used, by name.
    pub(crate) fn used(&self) -> Vec<Arc<Server>> {
        let mut servers: Vec<_> = self.lock().values().cloned().collect();
        servers.sort_by(|one, other| one.name().cmp(other.name()));
        servers
    }

    /// Removes what ended servers left. Blocks.
    pub fn remove_leftovers(&self) {
        self.0.host.remove_ended(ENDED_SERVER_AGE);
    }

    /// The folders and files that servers keep from one start to the next, of servers that were not used for long. Blocks.
    pub fn unused_caches(&self) -> Vec<PathBuf> {
        let servers: Vec<_> = self.lock().values().cloned().collect();
        servers.iter().filter(|server| !server.is_at_rest()).for_each(|server| server.note_use());
        self.0.host.unused_caches(UNUSED_CACHE_AGE)
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

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
