//! One server of the runtime: started when it is needed, shared by its sessions, ended when it is idle.
//!
//! | state | next |
//! | --- | --- |
//! | stopped | starting, when a turn begins or a call needs it |
//! | starting | ready, or failed |
//! | ready | stopped after the idle time, or failed when it ends by itself |
//! | failed | starting, when it is needed again and a pause has passed |
//!
//! If the runtime dies, the keeper of the server's program hears its connection close, and ends the program.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::catalogue::Catalogue;
use crate::connection::Connection;
use crate::content_list::CachedContentList;
use crate::host::ServerHost;
use crate::launch::{ServerPlace, launch_server};
use crate::{Error, Result, ServerSettings, ServerState, ServerStatus, TransportKind};

/// The pause after the first failure. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How long a start may take. `start_timeout_s` only says how long a turn waits for it; a program that is fetched first
/// may take longer.
const START_LIMIT: Duration = Duration::from_secs(120);
/// The tools of a server that says again and again that they have changed are listed this often at most.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) struct Server {
    name: String,
    settings: ServerSettings,
    /// Where its program runs. `None` for sessions without a work folder.
    place: Option<ServerPlace>,
    host: Arc<ServerHost>,
    phase: watch::Sender<Phase>,
    /// The last known tools, also while it is stopped.
    catalogue: Mutex<Option<Arc<Catalogue>>>,
    /// The last known resources and prompts.
    content_list: CachedContentList,
}

#[derive(Clone)]
enum Phase {
    Stopped,
    Starting,
    Ready(Arc<Connection>),
    Failed(Failure),
}

#[derive(Clone)]
struct Failure {
    error: Error,
    at: Instant,
    /// Failed starts in a row. 0 for a server that ran and ended: it may start again at once.
    count: u32,
}

impl Failure {
    fn is_over(&self) -> bool {
        let Some(doublings) = self.count.checked_sub(1) else { return true };
        self.at.elapsed() >= FIRST_PAUSE.saturating_mul(1 << doublings.min(6)).min(MAX_PAUSE)
    }
}

impl Server {
    pub(crate) fn new(
        name: &str,
        settings: ServerSettings,
        place: Option<ServerPlace>,
        host: Arc<ServerHost>,
    ) -> Arc<Self> {
        let catalogue = Mutex::new(read_cached(&host, name, &settings).map(Arc::new));
        let phase = watch::Sender::new(Phase::Stopped);
        let (name, content_list) = (name.to_owned(), CachedContentList::default());
        Arc::new(Self { name, settings, place, host, phase, catalogue, content_list })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn settings(&self) -> &ServerSettings {
        &self.settings
    }

    /// The last known tools, of this run or an earlier one.
    pub(crate) fn catalogue(&self) -> Option<Arc<Catalogue>> {
        self.lock_catalogue().clone()
    }

    /// The tools of the running server. `None` while it does not run.
    pub(crate) fn live_catalogue(&self) -> Option<Arc<Catalogue>> {
        matches!(&*self.phase.borrow(), Phase::Ready(_)).then(|| self.catalogue()).flatten()
    }

    /// The tools for a new epoch: those of the running server, or of its last run if it is not known to have failed.
    pub(crate) fn offered_catalogue(&self) -> Option<Arc<Catalogue>> {
        (!matches!(&*self.phase.borrow(), Phase::Failed(_))).then(|| self.catalogue()).flatten()
    }

    /// The connection to the running server. `None` while it does not run.
    pub(crate) fn live_connection(&self) -> Option<Arc<Connection>> {
        match &*self.phase.borrow() {
            Phase::Ready(connection) if !connection.is_closed() => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    pub(crate) fn content_list(&self) -> &CachedContentList {
        &self.content_list
    }

    /// Starts the server in the background, unless it runs, starts, or has failed a moment ago.
    pub(crate) fn start(self: &Arc<Self>) {
        self.phase.send_if_modified(|phase| {
            let failures = match phase {
                Phase::Stopped => Some(0),
                Phase::Starting => None,
                Phase::Ready(connection) => {
                    // A turn that begins may use it.
                    connection.calls().touch();
                    connection.is_closed().then_some(0)
                }
                Phase::Failed(failure) => failure.is_over().then_some(failure.count),
            };
            if let Some(failures) = failures {
                *phase = Phase::Starting;
                tokio::spawn(Arc::clone(self).run(failures));
            }
            failures.is_some()
        });
    }

    /// The connection, as soon as the server is ready.
    pub(crate) async fn ready(self: &Arc<Self>) -> Result<Arc<Connection>> {
        self.start();
        let mut phase = self.phase.subscribe();
        let settled = phase.wait_for(|phase| !matches!(phase, Phase::Starting)).await;
        let settled = settled.map_err(|_| Error::Ended("the runtime ends".to_owned()))?;
        match &*settled {
            Phase::Ready(connection) => Ok(Arc::clone(connection)),
            Phase::Failed(failure) => Err(failure.error.clone()),
            Phase::Stopped | Phase::Starting => Err(Error::Ended("it was stopped".to_owned())),
        }
    }

    /// Waits until the server is ready or has failed.
    pub(crate) async fn settled(self: &Arc<Self>) {
        let _ = self.ready().await;
    }

    /// Closes the connection. The keeper ends the program.
    pub(crate) fn stop(&self) {
        self.phase.send_replace(Phase::Stopped);
    }

    /// After a refused login the connection is closed: the next one begins with the login of then.
    pub(crate) fn note_refusal(&self, error: &Error) {
        if matches!(error, Error::LoginNeeded { .. }) {
            self.fail(error.clone(), 0);
        }
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let catalogue = self.catalogue();
        let mut warnings = catalogue.as_ref().map(|catalogue| catalogue.warnings.clone()).unwrap_or_default();
        let (state, reason, protocol) = match &*self.phase.borrow() {
            Phase::Stopped => (ServerState::Stopped, None, None),
            Phase::Starting => (ServerState::Starting, None, None),
            Phase::Ready(connection) => {
                warnings.extend(connection.warnings());
                (ServerState::Ready, None, connection.protocol_version())
            }
            Phase::Failed(failure) => (ServerState::Failed, Some(failure.error.to_string()), None),
        };
        ServerStatus {
            name: self.name.clone(),
            state,
            reason,
            transport: self.settings.transport().ok(),
            protocol,
            tools: catalogue
                .map(|catalogue| catalogue.tools.iter().map(|tool| tool.name.clone()).collect())
                .unwrap_or_default(),
            warnings,
        }
    }

    /// Starts the server and attends to it until it is idle, ends, or is stopped.
    async fn run(self: Arc<Self>, failures: u32) {
        let connected = tokio::time::timeout(START_LIMIT, self.connect()).await;
        let connected = connected.unwrap_or(Err(Error::Timeout { seconds: START_LIMIT.as_secs() }));
        let connection = match connected {
            Ok(connection) => Arc::new(connection),
            // The user may log in at any moment, and it is used at the next turn.
            Err(error @ Error::LoginNeeded { .. }) => return self.fail(error, 0),
            Err(error) => return self.fail(error, failures + 1),
        };
        // It may have been stopped meanwhile.
        let is_wanted = self.phase.send_if_modified(|phase| {
            let is_wanted = matches!(phase, Phase::Starting);
            if is_wanted {
                *phase = Phase::Ready(Arc::clone(&connection));
            }
            is_wanted
        });
        if is_wanted {
            self.attend(&connection).await;
        }
    }

    async fn connect(&self) -> Result<Connection> {
        let transport = self.settings.transport().map_err(|problem| Error::Settings(problem.to_owned()))?;
        let connection = match (transport, &self.place) {
            (TransportKind::Http, _) => {
                let login = self.host.login(&self.name, &self.settings);
                Connection::to_address(self.host.http()?.clone(), login).await?
            }
            (TransportKind::Stdio, Some(place)) => {
                let (host, name) = (Arc::clone(&self.host), self.name.clone());
                let (settings, place) = (self.settings.clone(), place.clone());
                let launching = tokio::task::spawn_blocking(move || {
                    launch_server(host.tasks()?, &host.home, &name, &settings, &place)
                });
                let launched = launching.await.map_err(|error| Error::NotStarted(error.to_string()))??;
                Connection::to_program(launched, Arc::clone(self.host.tasks()?), &self.settings).await?
            }
            (TransportKind::Stdio, None) => {
                let reason = "it runs a program, and the session has no work folder";
                return Err(Error::NotStarted(reason.to_owned()));
            }
        };
        self.renew_catalogue(&connection).await?;
        Ok(connection)
    }

    async fn renew_catalogue(&self, connection: &Connection) -> Result<()> {
        let catalogue = Arc::new(connection.list_tools(&self.name, &self.settings).await?);
        let known = self.lock_catalogue().replace(Arc::clone(&catalogue));
        if known.as_deref() != Some(&*catalogue) {
            write_cached(&self.host, &self.name, &self.settings, &catalogue);
        }
        Ok(())
    }

    async fn attend(&self, connection: &Arc<Connection>) {
        let mut phase = self.phase.subscribe();
        let mut next_renewal = tokio::time::Instant::now();
        loop {
            let idle_until =
                connection.calls().idle_since().unwrap_or_else(Instant::now) + self.host.idle_time;
            let wait = idle_until.saturating_duration_since(Instant::now()).max(Duration::from_millis(10));
            tokio::select! {
                () = tokio::time::sleep(wait) => {
                    let is_idle = connection.calls().idle_since().is_some_and(|since| since.elapsed() >= self.host.idle_time);
                    if is_idle {
                        return self.stop();
                    }
                }
                () = async { tokio::time::sleep_until(next_renewal).await; connection.tools_changed().notified().await } => {
                    next_renewal = tokio::time::Instant::now() + MIN_RENEWAL_INTERVAL;
                    // A server that can't list its tools any more keeps the ones that are known.
                    let _ = self.renew_catalogue(connection).await;
                }
                () = connection.closed() => {
                    let reason = connection.end_reason().await;
                    return self.fail(Error::Ended(reason), 0);
                }
                () = async { drop(phase.wait_for(|phase| !matches!(phase, Phase::Ready(_))).await) } => return,
            }
        }
    }

    fn fail(&self, error: Error, count: u32) {
        self.phase.send_if_modified(|phase| {
            let is_ours = !matches!(phase, Phase::Stopped);
            if is_ours {
                *phase = Phase::Failed(Failure { error, at: Instant::now(), count });
            }
            is_ours
        });
    }

    fn lock_catalogue(&self) -> MutexGuard<'_, Option<Arc<Catalogue>>> {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The catalogue of an earlier run. It tells the effects of tools before the server runs again, and can be deleted.
fn read_cached(host: &ServerHost, name: &str, settings: &ServerSettings) -> Option<Catalogue> {
    serde_json::from_slice(&std::fs::read(cache_file(host, name, settings)).ok()?).ok()
}

fn write_cached(host: &ServerHost, name: &str, settings: &ServerSettings, catalogue: &Catalogue) {
    let file = cache_file(host, name, settings);
    let bytes = serde_json::to_vec(catalogue).unwrap_or_default();
    // Without the cache, a tool counts as one that may do anything until its server runs.
    let _ = file.parent().map(std::fs::create_dir_all);
    let draft = file.with_extension(format!("{}.draft", std::process::id()));
    if std::fs::write(&draft, bytes).is_ok() {
        let _ = std::fs::rename(draft, file);
    }
}

fn cache_file(host: &ServerHost, name: &str, settings: &ServerSettings) -> PathBuf {
    host.home.join("cache/mcp").join(format!("{name}-{}.json", settings.fingerprint()))
}
