//! `PostgresJournal`: the trait `Journal` on top of the other modules.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_journal::engine::{WakeSocket, wake_socket};
use longhaul_journal::{
    Append, Blob, Cluster, Error, FoundStreams, Head, Holder, Home, Journal, Lease, Page, RecordVector,
    Result, SearchAnswer, SearchHit, SearchQuery, SessionEntry, StreamSize, Subscribers, Subscription,
    UnembeddedRecord, VerifyReport, WakeSignals,
};
use longhaul_protocol::{Hash, Record, Seq, SessionId, StreamName};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tokio_postgres::types::Type;

use crate::address::DatabaseAddress;
use crate::append::{self, KnownHeads};
use crate::database::Database;
use crate::lease::{self, RegisteredProcess};
use crate::lease_clock::{LeaseClock, SinceBoot};
use crate::node::{NodeOptions, ThisNode};
use crate::node_link::{NodeAddresses, NodeLink, NodeWakes};
use crate::notification::{Listener, Notifier};
use crate::search::Search;
use crate::snapshot::Snapshot;
use crate::{adopt, backup, erase, rows, schema, verify};

/// How long the last wakes may take when the journal is closed.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(300);
/// How long a notification to this process itself may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// A journal in a PostgreSQL database. The home has the search index and the sockets of this machine's processes.
pub struct PostgresJournal {
    pub(crate) db: Arc<Database>,
    home: Home,
    pub(crate) process: RegisteredProcess,
    heads: KnownHeads,
    search: Search,
    lease_expiry: Duration,
    lease_clock: LeaseClock,
    pub(crate) node: ThisNode,
    wake_socket: OnceCell<Arc<WakeSocket>>,
    listener: OnceLock<Listener>,
    notifier: Arc<Notifier>,
    /// How processes of other nodes are reached directly.
    node_wakes: Option<Arc<NodeWakes>>,
    is_closed: AtomicBool,
}

/// Options of a journal. A program sets the node; most of the rest is for tests.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    /// How long a lease is valid without a renewal or an append by its holder.
    pub lease_expiry: Duration,
    /// The id of this process's node, and how others reach it.
    pub node: NodeOptions,
    /// The oldest server that is accepted, as `server_version_num` counts.
    pub oldest_server: i32,
    /// Reaches other nodes directly. Without it, wakes go through the database, and live events don't cross machines.
    pub link: Option<Arc<dyn NodeLink>>,
    /// The addresses of the nodes of these processes.
    pub addresses: Vec<(Holder, String)>,
    /// The holder of this journal's leases: this process, except in tests that play a process of another machine.
    pub holder: Holder,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self::of_node(NodeOptions::default())
    }
}

impl PostgresOptions {
    /// The options of a node. Its leases are valid as long as it may be silent.
    pub fn of_node(node: NodeOptions) -> Self {
        Self {
            lease_expiry: node.dead_after,
            node,
            oldest_server: schema::OLDEST_SERVER,
            link: None,
            addresses: Vec::new(),
            holder: Holder::this_process(),
        }
    }
}

impl PostgresJournal {
    /// Opens the journal in a database, and makes its tables if the database is empty.
    pub async fn open(address: &DatabaseAddress, home: &Home) -> Result<Self> {
        Self::open_with(address, home, PostgresOptions::default()).await
    }

    /// [`open`](Self::open) with options.
    pub async fn open_with(address: &DatabaseAddress, home: &Home, options: PostgresOptions) -> Result<Self> {
        let node = ThisNode::of_home(home, options.node)?;
        let clock = schema::prepare(address, options.oldest_server).await.map_err(cant_open)?;
        let db = Arc::new(Database::new(address.clone(), clock));
        let process = RegisteredProcess::register(&db, options.holder, &node.id).await.map_err(cant_open)?;
        let notifier = Arc::new(Notifier::start(&db));
        let addresses = NodeAddresses::new(options.addresses, &db);
        let node_wakes =
            options.link.map(|link| Arc::new(NodeWakes::new(link, addresses, Arc::clone(&notifier))));
        Ok(Self {
            search: Search::new(&db, home),
            notifier,
            node_wakes,
            db,
            home: home.clone(),
            process,
            heads: KnownHeads::default(),
            lease_expiry: options.lease_expiry,
            lease_clock: LeaseClock::default(),
            node,
            wake_socket: OnceCell::new(),
            listener: OnceLock::new(),
            is_closed: AtomicBool::new(false),
        })
    }

    /// The address of the database, which shows no password.
    pub fn address(&self) -> &DatabaseAddress {
        &self.db.address
    }

    /// The folder of the home.
    pub fn home_folder(&self) -> &Path {
        self.home.folder()
    }

    /// Whether the database delivers notifications to this process. A pooler in transaction mode delivers none, and work is then
    /// found by looking for it.
    pub async fn delivers_wakes(&self) -> Result<bool> {
        self.wake_socket().await?;
        let Some(listener) = self.listener.get() else { return Ok(false) };
        let until = tokio::time::Instant::now() + PROBE_TIMEOUT;
        while !listener.is_heard() && tokio::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(listener.is_heard())
    }

    /// How far the clock of this machine is ahead of the database's, in milliseconds.
    pub fn clock_ahead_ms(&self) -> i64 {
        self.db.clock_ahead_ms()
    }

    /// Whether the last notification that this process sent itself has arrived.
    pub(crate) fn hears_wakes(&self) -> bool {
        self.listener.get().is_some_and(Listener::is_heard)
    }

    fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Relaxed) { Err(Error::Closed) } else { Ok(()) }
    }

    async fn wake_socket(&self) -> Result<&Arc<WakeSocket>> {
        self.check_open()?;
        let socket =
            self.wake_socket.get_or_try_init(|| async { WakeSocket::bind(&self.home).map(Arc::new) }).await?;
        self.listener.get_or_init(|| Listener::start(&self.db, socket, &self.process.holder));
        Ok(socket)
    }

    /// Wakes one process: over its socket if it is on this machine and has this home, else directly at the address of its node, else
    /// through the database.
    async fn wake(&self, holder: &Holder, stream: &StreamName) -> Result<()> {
        if *holder == self.process.holder
            && let Some(socket) = self.wake_socket.get()
        {
            socket.wake(stream);
            return Ok(());
        }
        if self.may_be_here(holder) && wake_socket::wake(&self.home, holder, stream).await? {
            return Ok(());
        }
        match &self.node_wakes {
            Some(node_wakes) => node_wakes.wake(holder, stream),
            None => self.notifier.wake(holder, stream),
        }
        Ok(())
    }

    /// Whether a process may have its socket in this home. Another node names the socket, so it must be what that process would name.
    fn may_be_here(&self, holder: &Holder) -> bool {
        holder.boot == self.process.holder.boot && holder.socket == format!("{}.sock", holder.pid)
    }

    /// Runs something on one snapshot of the whole journal.
    async fn with_snapshot<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Snapshot) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.check_open()?;
        let (address, runtime) = (self.db.address.clone(), Handle::current());
        let job = move || act(&Snapshot::begin(&address, runtime)?);
        tokio::task::spawn_blocking(job).await.map_err(|_| Error::Closed)?
    }
}

/// An unreachable database is final while a journal is opened: the user decides whether to wait.
fn cant_open(error: Error) -> Error {
    match error {
        Error::Unreachable { database, reason } => Error::Database {
            database,
            reason: format!("can't reach it: {reason}"),
            next_step: "check that the server runs, and the address in journal.url".to_owned(),
        },
        other => other,
    }
}

#[async_trait]
impl Journal for PostgresJournal {
    async fn append(&self, append: Append) -> Result<Vec<Record>> {
        let (lease, sent) = (append.lease.clone(), SinceBoot::now());
        let records = append::append(&self.db, &self.heads, append, self.lease_expiry).await?;
        if let Some(lease) = lease {
            self.lease_clock.confirm(&lease, sent);
        }
        Ok(records)
    }

    async fn read(&self, stream: &StreamName, from: Seq, page: Page) -> Result<Vec<Record>> {
        rows::checked_page(&self.db, stream, from, page).await
    }

    async fn records_of_kind(&self, stream: &StreamName, kind: &str) -> Result<Vec<Record>> {
        rows::records_of_kind(&self.db, stream, kind).await
    }

    async fn head(&self, stream: &StreamName) -> Result<Head> {
        rows::head(&self.db, stream).await
    }

    async fn newest_epoch(&self, stream: &StreamName, through: Seq) -> Result<Option<Seq>> {
        rows::newest_epoch(&self.db, stream, through).await
    }

    async fn size(&self, stream: &StreamName) -> Result<StreamSize> {
        rows::size(&self.db, stream).await
    }

    async fn find(&self, stream: &StreamName, key: &str) -> Result<Option<Seq>> {
        rows::find(&self.db, stream, key).await
    }

    async fn streams(&self) -> Result<Vec<StreamName>> {
        rows::streams(&self.db).await
    }

    async fn session(&self, key: &str) -> Result<Option<SessionEntry>> {
        Ok(rows::sessions(&self.db, "named.key = $1", &[(&key, Type::TEXT)]).await?.pop())
    }

    async fn session_with_id(&self, id: SessionId) -> Result<Option<SessionEntry>> {
        Ok(rows::sessions(&self.db, "named.id = $1", &[(&id.to_string(), Type::TEXT)]).await?.pop())
    }

    async fn sessions(&self, after: Option<&str>, limit: usize) -> Result<Vec<SessionEntry>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let condition = "named.key > $1 OR $1 IS NULL ORDER BY named.key LIMIT $2";
        rows::sessions(&self.db, condition, &[(&after, Type::TEXT), (&limit, Type::INT8)]).await
    }

    async fn acquire_lease(&self, stream: &StreamName) -> Result<Lease> {
        let sent = SinceBoot::now();
        let lease = lease::acquire_lease(&self.db, &self.process, stream, self.lease_expiry).await?;
        self.lease_clock.confirm(&lease, sent);
        Ok(lease)
    }

    async fn renew_lease(&self, held: &Lease) -> Result<()> {
        let sent = SinceBoot::now();
        lease::renew_lease(&self.db, held, self.lease_expiry).await?;
        self.lease_clock.confirm(held, sent);
        Ok(())
    }

    async fn confirm_lease(&self, held: &Lease) -> Result<()> {
        match self.lease_clock.is_certain(held, self.lease_expiry) {
            true => Ok(()),
            false => self.renew_lease(held).await,
        }
    }

    async fn release_lease(&self, held: &Lease) -> Result<()> {
        self.lease_clock.forget(held);
        lease::release_lease(&self.db, held).await
    }

    async fn holder(&self, stream: &StreamName) -> Result<Option<Holder>> {
        lease::holder(&self.db, stream).await
    }

    async fn live_holder(&self, stream: &StreamName) -> Result<Option<Holder>> {
        lease::live_holder(&self.db, stream).await
    }

    fn cluster(&self) -> Option<&dyn Cluster> {
        Some(self)
    }

    async fn host_for(&self, session: &StreamName) -> Result<StreamName> {
        self.host_stream_for(session).await
    }

    async fn wake_holder(&self, stream: &StreamName) -> Result<()> {
        let holder = match lease::reachable_holder(&self.db, stream).await? {
            Some(holder) => Some(holder),
            None => lease::reachable_holder(&self.db, &self.host_stream_for(stream).await?).await?,
        };
        match holder {
            Some(holder) => self.wake(&holder, stream).await,
            None => Ok(()),
        }
    }

    async fn wake_signals(&self) -> Result<WakeSignals> {
        self.wake_socket().await?.wakes()
    }

    async fn subscribe(&self, holder: &Holder, stream: &StreamName) -> Result<Option<Subscription>> {
        if self.may_be_here(holder)
            && let Some(subscription) = wake_socket::subscribe(&self.home, holder, stream).await?
        {
            return Ok(Some(subscription));
        }
        match &self.node_wakes {
            Some(node_wakes) => Ok(node_wakes.subscribe(holder, stream).await),
            None => Ok(None),
        }
    }

    async fn subscribers(&self) -> Result<Subscribers> {
        self.wake_socket().await?.subscribers()
    }

    async fn wake_here(&self, holder: &Holder, streams: &[StreamName]) -> Result<bool> {
        if *holder == self.process.holder {
            let Some(socket) = self.wake_socket.get() else { return Ok(false) };
            streams.iter().for_each(|stream| socket.wake(stream));
            return Ok(true);
        }
        if !self.may_be_here(holder) {
            return Ok(false);
        }
        for stream in streams {
            if !wake_socket::wake(&self.home, holder, stream).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    async fn subscribe_here(&self, holder: &Holder, stream: &StreamName) -> Result<Option<Subscription>> {
        if *holder == self.process.holder {
            return self.wake_socket.get().map(|socket| socket.subscribe(stream)).transpose();
        }
        if !self.may_be_here(holder) {
            return Ok(None);
        }
        wake_socket::subscribe(&self.home, holder, stream).await
    }

    async fn blob(&self, hash: Hash) -> Result<Vec<u8>> {
        let bytes = rows::blob(&self.db, hash).await?.ok_or(Error::NoSuchBlob { hash })?;
        if Hash::of(&bytes) == hash {
            return Ok(bytes);
        }
        let reason = format!("the blob {hash} does not match its hash");
        Err(Error::Corrupt { path: self.db.address.to_string().into(), reason })
    }

    async fn erase(&self, places: &[(StreamName, Seq)], reason: &str) -> Result<()> {
        self.search.prepare_erasure(places).await?;
        erase::erase_bodies(&self.db, places, reason).await?;
        let scrub = async {
            self.search.erase(places).await?;
            erase::vacuum(&self.db, places).await
        };
        let path = self.db.address.to_string().into();
        scrub.await.map_err(|error| Error::NotScrubbed { path, reason: error.to_string() })
    }

    async fn remove(&self, stream: &StreamName, held: Option<&Lease>) -> Result<()> {
        lease::check_lease(&self.db, stream, held).await?;
        self.search.prepare_removal(stream).await?;
        erase::remove_stream(&self.db, stream, held).await?;
        self.heads.forget(stream).await;
        self.search.forget(stream).await
    }

    async fn drop_unused_blobs(&self) -> Result<u64> {
        erase::drop_unused_blobs(&self.db).await
    }

    async fn sync(&self) -> Result<()> {
        // Every commit is on the disk already.
        self.db.read("SELECT 1", &[]).await.map(drop)
    }

    async fn adopt(&self, held: &Lease, records: Vec<Record>, blobs: Vec<Blob>) -> Result<()> {
        adopt::adopt(&self.db, &self.heads, held, records, &blobs, self.lease_expiry).await
    }

    async fn search(&self, query: &SearchQuery) -> Result<SearchAnswer> {
        self.search.search(query).await
    }

    async fn unembedded(
        &self,
        stream: &StreamName,
        model: &str,
        limit: usize,
    ) -> Result<Vec<UnembeddedRecord>> {
        self.search.unembedded(stream, model, limit).await
    }

    async fn put_vectors(&self, model: &str, vectors: Vec<RecordVector>) -> Result<()> {
        self.search.put_vectors(model, vectors).await
    }

    async fn search_vectors(
        &self,
        query: &SearchQuery,
        model: &str,
        vector: Vec<f32>,
    ) -> Result<Vec<SearchHit>> {
        self.search.search_vectors(query, model, vector).await
    }

    async fn streams_with_words(&self, words: &str) -> Result<FoundStreams> {
        self.search.streams_with_words(words).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        self.with_snapshot(verify::verify).await
    }

    async fn backup(&self, file: &Path) -> Result<VerifyReport> {
        let file = file.to_owned();
        self.with_snapshot(move |snapshot| backup::write_backup(snapshot, &file)).await
    }

    async fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
        let flush = async {
            if let Some(node_wakes) = &self.node_wakes {
                node_wakes.flush().await;
            }
            self.notifier.flush().await;
        };
        // A wake is a hint.
        let _ = tokio::time::timeout(FLUSH_TIMEOUT, flush).await;
        if let Some(socket) = self.wake_socket.get() {
            socket.close();
        }
        if let Some(listener) = self.listener.get() {
            listener.stop();
        }
        self.db.close().await;
    }
}
