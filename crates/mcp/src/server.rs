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

use std::fs::DirBuilder;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use longhaul_journal::ReplacingFile;
use longhaul_protocol::SessionId;
use rmcp::service::ClientLifecycleMode;
use tokio::sync::watch;

use crate::catalogue::Catalogue;
use crate::connection::{Connection, StartFailure, lifecycle};
use crate::content_list::CachedContentList;
use crate::host::{ServerHost, note_use};
use crate::launch::{ServerPlace, launch_server};
use crate::server_phase::{Generation, Phase, ServerPhase};
use crate::{Error, Result, ServerSettings, ServerState, ServerStatus, TransportKind};

/// How long a start may take. `start_timeout_s` only says how long a turn waits for it; a program that is fetched first
/// may take longer.
const START_LIMIT: Duration = Duration::from_secs(120);
/// The shortest time between two listings of the tools of a server that keeps saying that they have changed.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(2);

type BoxFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

pub(crate) struct Server {
    name: String,
    settings: ServerSettings,
    /// Where its program runs. `None` for sessions without a work folder.
    place: Option<ServerPlace>,
    /// The only session that uses it, if it is not shared.
    session: Option<SessionId>,
    host: Arc<ServerHost>,
    phase: watch::Sender<ServerPhase<Connection>>,
    /// The last known tools, also while it is stopped.
    catalogue: Mutex<Option<Arc<Catalogue>>>,
    /// Where the tools are kept for the next runtime.
    cache_file: PathBuf,
    /// The last known resources and prompts.
    content_list: CachedContentList,
    /// Its program ends at the first message of the stateless protocol.
    needs_handshake: AtomicBool,
}

impl Server {
    pub(crate) fn new(
        name: &str,
        settings: ServerSettings,
        place: Option<ServerPlace>,
        session: Option<SessionId>,
        host: Arc<ServerHost>,
    ) -> Arc<Self> {
        let cache_file = cache_file(&host, name, &settings, place.as_ref());
        let known = read_cached(&cache_file).map(Arc::new);
        let needs_handshake = AtomicBool::new(known.as_ref().is_some_and(|known| known.needs_handshake));
        let (name, content_list) = (name.to_owned(), CachedContentList::default());
        let (catalogue, phase) = (Mutex::new(known), watch::Sender::new(ServerPhase::default()));
        Arc::new(Self {
            name,
            settings,
            place,
            session,
            host,
            phase,
            catalogue,
            cache_file,
            content_list,
            needs_handshake,
        })
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
        matches!(self.phase.borrow().phase(), Phase::Ready(_)).then(|| self.catalogue()).flatten()
    }

    /// The tools for a new epoch: those of the running server, or of its last run if it is not known to have failed.
    pub(crate) fn offered_catalogue(&self) -> Option<Arc<Catalogue>> {
        (!matches!(self.phase.borrow().phase(), Phase::Failed(_))).then(|| self.catalogue()).flatten()
    }

    /// The connection to the running server. `None` while it does not run.
    pub(crate) fn live_connection(&self) -> Option<Arc<Connection>> {
        match self.phase.borrow().phase() {
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
            if let Phase::Ready(connection) = phase.phase() {
                // A turn that begins may use it.
                connection.calls().touch();
            }
            let begun = phase.begin_start(Connection::is_closed);
            if let Some((generation, failures)) = begun {
                tokio::spawn(Arc::clone(self).run(generation, failures));
            }
            begun.is_some()
        });
    }

    /// The connection, as soon as the server is ready.
    pub(crate) async fn ready(self: &Arc<Self>) -> Result<Arc<Connection>> {
        self.start();
        let mut phase = self.phase.subscribe();
        let settled = phase.wait_for(|phase| !matches!(phase.phase(), Phase::Starting)).await;
        let settled = settled.map_err(|_| Error::Ended("the runtime ends".to_owned()))?;
        match settled.phase() {
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
        self.phase.send_modify(ServerPhase::stop);
    }

    /// Closes the connection if the server refused the login, or if an HTTP server can't be reached any more. The next call opens another
    /// one, with the login that the user has by then. The connection to a program notices by itself when the program ends.
    pub(crate) fn fail_connection(&self, connection: &Arc<Connection>, error: &Error) {
        let is_over = match error {
            Error::LoginNeeded { .. } => true,
            Error::Ended(_) | Error::NotStarted(_) => !connection.is_to_program(),
            _ => false,
        };
        if is_over {
            self.phase.send_if_modified(|phase| phase.fail_connection(connection, error.clone()));
        }
    }

    /// Whether it neither runs nor starts.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.phase.borrow().phase(), Phase::Stopped | Phase::Failed(_))
    }

    /// Notes that the files for its next start are in use.
    pub(crate) fn note_use(&self) {
        if let Some(place) = &self.place {
            let (settings, work_dir) = (&self.settings, place.scope.work_dir());
            note_use(&self.host.own_folder(&self.name, settings, work_dir, self.session));
        }
        note_use(&self.cache_file);
    }

    pub(crate) fn status(&self) -> ServerStatus {
        let catalogue = self.catalogue();
        let mut warnings = catalogue.as_ref().map(|catalogue| catalogue.warnings.clone()).unwrap_or_default();
        let (state, reason, protocol) = match self.phase.borrow().phase() {
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

    /// Starts the server and watches it until it is idle, ends, or is stopped.
    async fn run(self: Arc<Self>, generation: Generation, failures: u32) {
        let connected = tokio::time::timeout(START_LIMIT, self.connect()).await;
        let connected = connected.unwrap_or(Err(Error::Timeout { seconds: START_LIMIT.as_secs() }));
        let connection = match connected {
            Ok(connection) => Arc::new(connection),
            // No backoff: the user may log in at any moment, and the next turn should use that.
            Err(error @ Error::LoginNeeded { .. }) => return self.fail(generation, error, 0),
            Err(error) => return self.fail(generation, error, failures + 1),
        };
        // It may have been stopped meanwhile.
        let is_wanted =
            self.phase.send_if_modified(|phase| phase.set_ready(generation, Arc::clone(&connection)));
        if is_wanted {
            self.watch(generation, &connection).await;
        }
    }

    async fn connect(&self) -> Result<Connection> {
        let transport = self.settings.transport().map_err(|problem| Error::Settings(problem.to_owned()))?;
        let connection = match (transport, &self.place) {
            (TransportKind::Http, _) => {
                let login = self.host.login(&self.name, &self.settings);
                Connection::to_address(self.host.http()?.clone(), login).await?
            }
            (TransportKind::Stdio, Some(place)) => self.start_program(place).await?,
            (TransportKind::Stdio, None) => {
                let reason = "it runs a program, and the session has no work folder";
                return Err(Error::NotStarted(reason.to_owned()));
            }
        };
        self.renew_catalogue(&connection).await?;
        Ok(connection)
    }

    /// Starts the program and begins to talk to it. If it fails when both protocols are tried, it is started once more with one of them. A
    /// server that needs the handshake from the first message on begins with that from then on.
    async fn start_program(&self, place: &ServerPlace) -> Result<Connection> {
        let was_needed = self.needs_handshake.load(Ordering::Relaxed);
        let first = if was_needed { ClientLifecycleMode::Initialize } else { lifecycle() };
        let StartFailure { error, next } = match self.launch(place, first).await {
            Ok(connection) => return Ok(connection),
            Err(failure) => failure,
        };
        // It may be a newer server by now.
        let next = if was_needed { Some(lifecycle()) } else { next };
        let second = next.ok_or(error)?;
        let needs_handshake = second == ClientLifecycleMode::Initialize;
        let connection = self.launch(place, second).await.map_err(|failure| failure.error)?;
        self.needs_handshake.store(needs_handshake, Ordering::Relaxed);
        Ok(connection)
    }

    async fn launch(
        &self,
        place: &ServerPlace,
        mode: ClientLifecycleMode,
    ) -> std::result::Result<Connection, StartFailure> {
        let (host, name) = (Arc::clone(&self.host), self.name.clone());
        let (settings, place) = (self.settings.clone(), place.clone());
        let own_folder = host.own_folder(&name, &settings, place.scope.work_dir(), self.session);
        let launching = tokio::task::spawn_blocking(move || {
            launch_server(host.tasks()?, &own_folder, &name, &settings, &place)
        });
        let launched = launching.await.map_err(|error| Error::NotStarted(error.to_string()))??;
        Connection::to_program(launched, Arc::clone(self.host.tasks()?), &self.settings, mode).await
    }

    async fn renew_catalogue(&self, connection: &Connection) -> Result<()> {
        let mut catalogue = connection.list_tools(&self.name, &self.settings).await?;
        catalogue.redact(self.host.redactor());
        catalogue.needs_handshake = self.needs_handshake.load(Ordering::Relaxed);
        let catalogue = Arc::new(catalogue);
        let known = self.lock_catalogue().replace(Arc::clone(&catalogue));
        if known.as_deref() != Some(&*catalogue) {
            write_cached(&self.cache_file, &catalogue);
        }
        Ok(())
    }

    /// Returns when the server has been idle for too long, has ended, or was stopped. Lists its tools again when they change.
    async fn watch(&self, generation: Generation, connection: &Arc<Connection>) {
        let mut phase = self.phase.subscribe();
        let mut next_renewal = tokio::time::Instant::now();
        // A server that does not list its tools any more can still end, or be stopped.
        let mut renewal: Option<BoxFuture<'_>> = None;
        loop {
            let idle_until =
                connection.calls().idle_since().unwrap_or_else(Instant::now) + self.host.idle_time;
            let wait = idle_until.saturating_duration_since(Instant::now()).max(Duration::from_millis(10));
            tokio::select! {
                () = tokio::time::sleep(wait) => {
                    let is_idle = connection.calls().idle_since().is_some_and(|since| since.elapsed() >= self.host.idle_time);
                    if is_idle {
                        self.phase.send_if_modified(|phase| phase.stop_generation(generation));
                        return;
                    }
                }
                () = async { tokio::time::sleep_until(next_renewal).await; connection.tools_changed().notified().await },
                    if renewal.is_none() =>
                {
                    next_renewal = tokio::time::Instant::now() + MIN_RENEWAL_INTERVAL;
                    // A server that can't list its tools any more keeps the ones that are known.
                    renewal = Some(Box::pin(async { drop(self.renew_catalogue(connection).await) }));
                }
                () = async { match renewal.as_mut() { Some(renewal) => renewal.await, None => std::future::pending().await } } => {
                    renewal = None;
                }
                () = connection.closed() => {
                    let reason = connection.end_reason().await;
                    return self.fail(generation, Error::Ended(reason), 0);
                }
                () = async { drop(phase.wait_for(|phase| !phase.is_running(generation)).await) } => return,
            }
        }
    }

    fn fail(&self, generation: Generation, error: Error, count: u32) {
        self.phase.send_if_modified(|phase| phase.fail(generation, error, count));
    }

    fn lock_catalogue(&self) -> MutexGuard<'_, Option<Arc<Catalogue>>> {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The catalogue of an earlier run, for the tools and their effects before the server runs again. The file can be deleted.
fn read_cached(file: &Path) -> Option<Catalogue> {
    note_use(file);
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

fn write_cached(file: &Path, catalogue: &Catalogue) {
    let bytes = serde_json::to_vec(catalogue).unwrap_or_default();
    // Without the cache, a tool counts as one that may do anything until its server runs.
    let _ = file.parent().map(|folder| DirBuilder::new().recursive(true).mode(0o700).create(folder));
    if let Ok(mut replacing) = ReplacingFile::create(file)
        && replacing.write_all(&bytes).is_ok()
    {
        let _ = replacing.finish();
    }
}

fn cache_file(
    host: &ServerHost,
    name: &str,
    settings: &ServerSettings,
    place: Option<&ServerPlace>,
) -> PathBuf {
    let work_dir = place.map(|place| place.scope.work_dir());
    host.catalogues_folder().join(format!("{name}-{}.json", settings.catalogue_fingerprint(work_dir)))
}
