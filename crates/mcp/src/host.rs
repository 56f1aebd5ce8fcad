//! What all servers of a runtime share: their folder, and the HTTP client. Each is made when the first server needs it, so that a
//! runtime without servers pays nothing.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use longhaul_keeper::{Launcher, Tasks};
use longhaul_protocol::SessionId;
use longhaul_redact::Redactor;
use longhaul_tools::NetworkGuard;

use crate::login::{LoginAccess, LoginStore};
use crate::{Error, Result, ServerSettings};

/// What servers keep for their next start, in the home.
const CACHES_FOLDER: &str = "mcp/caches";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 5;
/// Many servers close a connection that was idle for five seconds. A call that is sent at that moment would be lost.
const POOL_IDLE_TIMEOUT: Duration = Duration::from_secs(2);

pub(crate) struct ServerHost {
    pub(crate) home: PathBuf,
    pub(crate) idle_time: Duration,
    /// Where the requests of a login may go, besides the server itself.
    guard: NetworkGuard,
    /// Learns the tokens of logins.
    redactor: Redactor,
    launcher: Launcher,
    tasks: OnceLock<Arc<Tasks>>,
    http: OnceLock<reqwest::Client>,
}

impl ServerHost {
    pub(crate) fn new(
        home: &Path,
        launcher: Launcher,
        idle_time: Duration,
        guard: NetworkGuard,
        redactor: Redactor,
    ) -> Self {
        let (home, tasks, http) = (home.to_owned(), OnceLock::new(), OnceLock::new());
        Self { home, idle_time, guard, redactor, launcher, tasks, http }
    }

    /// The login at a server.
    pub(crate) fn login(&self, name: &str, settings: &ServerSettings) -> LoginAccess {
        LoginAccess {
            name: name.to_owned(),
            settings: settings.clone(),
            store: LoginStore::new(&self.home, name, settings, self.redactor.clone()),
            guard: self.guard.clone(),
        }
    }

    /// Knows the user's secrets.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// The programs of servers, each under its keeper.
    pub(crate) fn tasks(&self) -> Result<&Arc<Tasks>> {
        if let Some(tasks) = self.tasks.get() {
            return Ok(tasks);
        }
        let opened = Tasks::at(&self.servers_folder(), self.launcher.clone());
        let opened = opened.map_err(|error| Error::NotStarted(error.to_string()))?;
        Ok(self.tasks.get_or_init(|| Arc::new(opened)))
    }

    /// The client for servers that are reached over HTTP.
    pub(crate) fn http(&self) -> Result<&reqwest::Client> {
        if let Some(http) = self.http.get() {
            return Ok(http);
        }
        // Other crates may have installed a provider of cryptography; the first one stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(POOL_IDLE_TIMEOUT)
            .redirect(reqwest::redirect::Policy::custom(follow_same_origin))
            .build()
            .map_err(|error| Error::NotStarted(format!("can't make an HTTP client: {error}")))?;
        Ok(self.http.get_or_init(|| built))
    }

    /// Removes the folders of programs that ended this long ago. A home that never had a server stays as it is.
    pub(crate) fn remove_ended(&self, age: Duration) {
        if let Ok(Some(tasks)) = Tasks::existing(&self.servers_folder(), self.launcher.clone()) {
            let _ = tasks.expire(age, |_| false);
        }
    }

    /// What servers kept for their next start and did not use for this long.
    pub(crate) fn unused_caches(&self, age: Duration) -> Vec<PathBuf> {
        let is_unused = |path: &Path| {
            let used = std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
            used.and_then(|used| used.elapsed().ok()).is_some_and(|unused| unused > age)
        };
        let folders = [self.home.join(CACHES_FOLDER), self.catalogues_folder()];
        let entries =
            folders.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
        entries.map(|entry| entry.path()).filter(|path| is_unused(path)).collect()
    }

    /// What a server's program keeps from one start to the next: temporary files, and what it adds to the user's caches.
    pub(crate) fn own_folder(
        &self,
        name: &str,
        settings: &ServerSettings,
        work_dir: &Path,
        session: Option<SessionId>,
    ) -> PathBuf {
        let fingerprint = settings.program_fingerprint(work_dir, session);
        self.home.join(CACHES_FOLDER).join(format!("{name}-{fingerprint}"))
    }

    /// The last known tools of servers. They can be deleted.
    pub(crate) fn catalogues_folder(&self) -> PathBuf {
        self.home.join("cache/mcp")
    }

    /// Tells the redactor the keys and tokens of servers that no config names.
    pub(crate) fn learn_secrets<'a>(&self, servers: impl Iterator<Item = &'a ServerSettings>) {
        for settings in servers {
            let variables = settings.secret_variables().into_iter();
            let values = variables.filter_map(|name| std::env::var(name).ok());
            self.redactor.add_secrets(values.chain(settings.written_secrets()));
        }
    }

    fn servers_folder(&self) -> PathBuf {
        self.home.join("mcp/servers")
    }
}

/// Notes that a file or a folder is used now. One that is not there is left alone.
pub(crate) fn note_use(path: &Path) {
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.set_modified(SystemTime::now());
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
