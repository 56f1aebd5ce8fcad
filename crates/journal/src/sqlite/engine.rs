//! `SqliteJournal`: the trait `Journal` on top of the writer, the readers, the search index and the wake socket.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::{Hash, Record, Seq, SessionId, StreamName};
use tokio::sync::OnceCell;

use crate::chain::ChainCheck;
use crate::home::{Home, with_suffix};
use crate::prepared_append::PreparedAppend;
use crate::sqlite::append::adopt_records;
use crate::sqlite::open_files::{OpenFile, ProcessLocks};
use crate::sqlite::readers::Readers;
use crate::sqlite::rows::{self, StreamNumber};
use crate::sqlite::schema::{self, Access, FileKind};
use crate::sqlite::search_index::SearchIndex;
use crate::sqlite::wake_socket::{self, WakeSocket};
use crate::sqlite::writer::{Commit, Queue, Writer};
use crate::sqlite::{backup, erase, known_heads, lease, verify, writer};
use crate::{
    Append, Blob, Error, FoundStreams, Head, Holder, Journal, Lease, Page, RecordVector, Result,
    SearchAnswer, SearchHit, SearchQuery, SessionEntry, StreamSize, Subscribers, Subscription,
    UnembeddedRecord, VerifyReport, WakeSignals,
};

/// A journal in a home's `journal.db`.
pub struct SqliteJournal {
    home: Home,
    readers: Readers,
    /// For searches, verification and backups, so that short reads do not wait for them.
    long_readers: Readers,
    index: Arc<SearchIndex>,
    /// The reason as an error, if the journal is read-only.
    queue: std::result::Result<Queue, Error>,
    thread: Mutex<Option<JoinHandle<()>>>,
    wake_socket: OnceCell<WakeSocket>,
}

/// Settings, mostly for tests.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// How long a lease is valid without a renewal or an append by its holder.
    pub lease_expiry: Duration,
    /// The most pages of the write-ahead log before a checkpoint moves them to the file.
    pub checkpoint_pages: u32,
    /// The SQLite file layer (VFS) to use. Tests use it to record or refuse what reaches the disk.
    pub vfs: Option<String>,
    pub reads_on: ReadThread,
}

/// The thread on which a record or an entry is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadThread {
    /// One of tokio's blocking threads, so that a slow disk delays only the caller.
    Pool,
    /// The caller's. For a process with one session, whose work has to wait for each read anyway: a hand-over to another thread and
    /// back takes longer than most reads. Searches still run on the pool.
    Caller,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        let lease_expiry = Duration::from_secs(10);
        Self { lease_expiry, checkpoint_pages: 1_000, vfs: None, reads_on: ReadThread::Pool }
    }
}

impl SqliteJournal {
    /// Opens the journal of a home, or creates one. A file of an older format is migrated first. A file of a newer
    /// format is opened for reading only.
    pub async fn open(home: &Home) -> Result<Self> {
        Self::open_with(home, SqliteOptions::default()).await
    }

    /// [`open`](Self::open) with options. A thread begins to open it before the returned future is polled.
    pub fn open_with(
        home: &Home,
        options: SqliteOptions,
    ) -> impl Future<Output = Result<Self>> + Send + use<> {
        let home = home.clone();
        let opened = tokio::task::spawn_blocking(move || Self::open_now(&home, &options));
        async { opened.await.map_err(|_| Error::Closed)? }
    }

    fn open_now(home: &Home, options: &SqliteOptions) -> Result<Self> {
        let path = home.journal_file();
        let vfs = options.vfs.as_deref();
        home.remove_partial_files();
        backup::finish_restore(home)?;
        let home_lock = home.lock_shared()?;
        if backup::restoring_file(home).exists() {
            // Another process began a restore and died before this process got the lock.
            drop(home_lock);
            return Self::open_now(home, options);
        }
        let open_file = OpenFile::register(&path, || match schema::file_kind(&path)? {
            FileKind::Journal { .. } => Ok(()),
            FileKind::Missing => match leftover_file(home)? {
                Some(left) => Err(Error::Missing { path: path.clone(), left }),
                None => schema::create(&path, vfs),
            },
        })?;
        let locks = Arc::new(ProcessLocks { _home_lock: home_lock, _open_file: open_file });
        let (queue, thread) = match schema::connect_to_write(&path, vfs) {
            Ok(Access::Current(db)) => {
                let (queue, thread) = Writer::start(home, db, options, Arc::clone(&locks))?;
                (Ok(queue), Some(thread))
            }
            Ok(Access::Older) => {
                drop(locks);
                schema::migrate(home, vfs)?;
                return Self::open_now(home, options);
            }
            // A read-only journal can still be read.
            Err(error @ (Error::Newer { .. } | Error::ReadOnly { .. })) => (Err(error), None),
            Err(error) => return Err(error),
        };
        let readers = match options.reads_on {
            ReadThread::Pool => Readers::new(&path, vfs, &locks),
            ReadThread::Caller => Readers::on_caller(&path, vfs, &locks)?,
        };
        Ok(Self {
            home: home.clone(),
            readers,
            long_readers: Readers::new(&path, vfs, &locks),
            index: Arc::new(SearchIndex::new(home)),
            queue,
            thread: Mutex::new(thread),
            wake_socket: OnceCell::new(),
        })
    }

    /// Why the journal is read-only, if it is.
    pub fn read_only(&self) -> Option<&Error> {
        self.queue.as_ref().err()
    }

    fn queue(&self) -> Result<&Queue> {
        self.queue.as_ref().map_err(Clone::clone)
    }

    async fn wake_socket(&self) -> Result<&WakeSocket> {
        self.wake_socket.get_or_try_init(|| async { WakeSocket::bind(&self.home) }).await
    }

    /// Reads from one stream; returns `none` if there is no such stream.
    async fn read_stream<T: Send + 'static>(
        &self,
        stream: &StreamName,
        none: T,
        act: impl FnOnce(&rusqlite::Connection, StreamNumber) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let stream = stream.clone();
        self.readers
            .read(move |db| match rows::stream_number(db, &stream)? {
                Some(number) => act(db, number),
                None => Ok(none),
            })
            .await
    }

    /// Closes everything. Tells the writer's thread to end and returns its handle, so that the caller can join it.
    fn shut(&self) -> Option<JoinHandle<()>> {
        if let Some(wake_socket) = self.wake_socket.get() {
            wake_socket.close();
        }
        // Readers first: the last connection to close must be able to write. Otherwise SQLite leaves its log behind.
        self.readers.close();
        self.long_readers.close();
        if let Ok(queue) = &self.queue {
            queue.close();
        }
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A file that proves that this home had a journal, although there is none now. SQLite would apply the old journal's
/// log to a new one.
fn leftover_file(home: &Home) -> Result<Option<PathBuf>> {
    let log = with_suffix(&home.journal_file(), "-wal");
    if log.metadata().is_ok_and(|log| log.len() > 0) {
        return Ok(Some(log));
    }
    let known = known_heads::load(home)?;
    Ok((!known.heads.is_empty() || !known.lost.is_empty()).then(|| home.heads_file()))
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        if let Some(thread) = self.shut() {
            // After a panic in the thread, every waiting caller has got `Closed`.
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn append(&self, append: Append) -> Result<Vec<Record>> {
        let prepared = PreparedAppend::new(append)?;
        self.queue()?.commit(move |commit| prepared.perform(commit)).await
    }

    async fn read(&self, stream: &StreamName, from: Seq, page: Page) -> Result<Vec<Record>> {
        let name = stream.clone();
        let rows = self
            .read_stream(stream, Vec::new(), move |db, number| {
                rows::page(db, (number, &name), from.max(1), page)
            })
            .await
            .map_err(|error| match error {
                Error::Corrupt { reason, .. } => {
                    Error::Damaged { stream: stream.clone(), seq: from.max(1), reason }
                }
                other => other,
            })?;
        rows::check_page(stream, from, rows)
    }

    async fn records_of_kind(&self, stream: &StreamName, kind: &str) -> Result<Vec<Record>> {
        let (name, kind) = (stream.clone(), kind.to_owned());
        let read = move |db: &rusqlite::Connection, number| rows::of_kind(db, (number, &name), &kind);
        let mut records = self.read_stream(stream, Vec::new(), read).await?;
        records.retain(|record| ChainCheck::from(record.seq).follow(record).is_ok());
        Ok(records)
    }

    async fn head(&self, stream: &StreamName) -> Result<Head> {
        self.read_stream(stream, Head::EMPTY, rows::head).await
    }

    async fn newest_epoch(&self, stream: &StreamName, through: Seq) -> Result<Option<Seq>> {
        self.read_stream(stream, None, move |db, number| rows::newest_epoch(db, number, through)).await
    }

    async fn size(&self, stream: &StreamName) -> Result<StreamSize> {
        self.read_stream(stream, StreamSize::default(), rows::size).await
    }

    async fn find(&self, stream: &StreamName, key: &str) -> Result<Option<Seq>> {
        let key = Hash::of(key);
        self.read_stream(stream, None, move |db, number| rows::seq_with_key(db, number, key)).await
    }

    async fn streams(&self) -> Result<Vec<StreamName>> {
        let streams = self.readers.read(rows::streams).await?;
        Ok(streams.into_iter().map(|(_, name)| name).collect())
    }

    async fn session(&self, key: &str) -> Result<Option<SessionEntry>> {
        let key = key.to_owned();
        self.readers.read(move |db| rows::in_snapshot(db, |db| rows::session(db, &key))).await
    }

    async fn session_with_id(&self, id: SessionId) -> Result<Option<SessionEntry>> {
        self.readers.read(move |db| rows::in_snapshot(db, |db| rows::session_with_id(db, id))).await
    }

    async fn sessions(&self, after: Option<&str>, limit: usize) -> Result<Vec<SessionEntry>> {
        let after = after.map(str::to_owned);
        self.readers
            .read(move |db| rows::in_snapshot(db, |db| rows::sessions(db, after.as_deref(), limit)))
            .await
    }

    async fn acquire_lease(&self, stream: &StreamName) -> Result<Lease> {
        let stream = stream.clone();
        self.queue()?.commit_lease(move |commit| lease::acquire_lease(commit, &stream)).await
    }

    async fn renew_lease(&self, lease: &Lease) -> Result<()> {
        let lease = lease.clone();
        self.queue()?.commit(move |commit| lease::renew_lease(commit, &lease)).await
    }

    async fn release_lease(&self, lease: &Lease) -> Result<()> {
        let lease = lease.clone();
        self.queue()?.commit_lease(move |commit| lease::release_lease(commit, &lease)).await
    }

    async fn holder(&self, stream: &StreamName) -> Result<Option<Holder>> {
        let stream = stream.clone();
        self.readers.read(move |db| lease::holder(db, &stream)).await
    }

    async fn live_holder(&self, stream: &StreamName) -> Result<Option<Holder>> {
        let (stream, now) = (stream.clone(), writer::now());
        self.readers.read(move |db| lease::live_holder(db, &stream, now)).await
    }

    async fn wake_holder(&self, stream: &StreamName) -> Result<()> {
        let this_process = Holder::this_process();
        let is_alive = |holder: &Holder| !holder.is_gone();
        let holder = match self.holder(stream).await?.filter(is_alive) {
            Some(holder) => Some(holder),
            None => self.holder(&StreamName::host()).await?.filter(is_alive),
        };
        let Some(holder) = holder else { return Ok(()) };
        match self.wake_socket.get() {
            Some(wake_socket) if holder == this_process => {
                wake_socket.wake(stream);
                Ok(())
            }
            _ => wake_socket::wake(&self.home, &holder, stream).await.map(drop),
        }
    }

    async fn wake_signals(&self) -> Result<WakeSignals> {
        self.wake_socket().await?.wakes()
    }

    async fn subscribe(&self, holder: &Holder, stream: &StreamName) -> Result<Option<Subscription>> {
        wake_socket::subscribe(&self.home, holder, stream).await
    }

    async fn subscribers(&self) -> Result<Subscribers> {
        self.wake_socket().await?.subscribers()
    }

    async fn blob(&self, hash: Hash) -> Result<Vec<u8>> {
        let bytes = self.readers.read(move |db| rows::blob(db, hash)).await?;
        let bytes = bytes.ok_or(Error::NoSuchBlob { hash })?;
        if Hash::of(&bytes) == hash {
            return Ok(bytes);
        }
        let reason = format!("the blob {hash} does not match its hash");
        Err(Error::Corrupt { path: self.home.journal_file(), reason })
    }

    async fn erase(&self, places: &[(StreamName, Seq)], reason: &str) -> Result<()> {
        let (places, reason, index) = (places.to_vec(), reason.to_owned(), Arc::clone(&self.index));
        let (marked, marking) = (places.clone(), Arc::clone(&index));
        self.long_readers.with(move |_| marking.prepare_erasure(&marked)).await?;
        let erased = places.clone();
        let stubs = move |commit: &mut Commit<'_>| {
            places.iter().try_for_each(|(stream, seq)| erase::erase_body(commit, stream, *seq, &reason))
        };
        self.queue()?.commit(stubs).await?;
        let scrub = async {
            // Not in the writer's queue: appends don't wait for a search that indexes.
            self.long_readers.with(move |_| index.erase(&erased)).await?;
            self.queue()?.run_exclusive(erase::scrub).await
        };
        let path = self.home.journal_file();
        scrub.await.map_err(|error| Error::NotScrubbed { path, reason: error.to_string() })
    }

    async fn remove(&self, stream: &StreamName, lease: Option<&Lease>) -> Result<()> {
        let (name, shown) = (stream.clone(), lease.cloned());
        self.queue()?.commit(move |commit| erase::check_removal(commit, &name, shown.as_ref())).await?;
        let forget_head = || {
            let (name, home) = (stream.clone(), self.home.clone());
            move |_: &mut Writer| known_heads::forget(&home, &name)
        };
        // Before the removal, so that a crash leaves no known head of a removed stream. Also after it, because
        // another process may have written the head meanwhile.
        self.queue()?.run_exclusive(forget_head()).await?;
        let (name, index) = (stream.clone(), Arc::clone(&self.index));
        self.long_readers.with(move |_| index.prepare_removal(&name)).await?;
        let (name, shown) = (stream.clone(), lease.cloned());
        self.queue()?.commit(move |commit| erase::remove_stream(commit, &name, shown.as_ref())).await?;
        self.queue()?.run_exclusive(forget_head()).await?;
        let (name, index) = (stream.clone(), Arc::clone(&self.index));
        self.long_readers.with(move |_| index.erase_stream(&name)).await
    }

    async fn drop_unused_blobs(&self) -> Result<u64> {
        self.queue()?.commit(erase::drop_unused_blobs).await
    }

    async fn sync(&self) -> Result<()> {
        self.queue()?.run_exclusive(Writer::sync).await
    }

    async fn adopt(&self, lease: &Lease, records: Vec<Record>, blobs: Vec<Blob>) -> Result<()> {
        let lease = lease.clone();
        self.queue()?.commit(move |commit| adopt_records(commit, &lease, records, blobs)).await
    }

    async fn search(&self, search: &SearchQuery) -> Result<SearchAnswer> {
        let (search, index) = (search.clone(), Arc::clone(&self.index));
        self.long_readers.with(move |db| index.search(db, &search)).await
    }

    async fn unembedded(
        &self,
        stream: &StreamName,
        model: &str,
        limit: usize,
    ) -> Result<Vec<UnembeddedRecord>> {
        let (stream, model, index) = (stream.clone(), model.to_owned(), Arc::clone(&self.index));
        self.long_readers.with(move |db| index.unembedded(db, &stream, &model, limit)).await
    }

    async fn put_vectors(&self, model: &str, vectors: Vec<RecordVector>) -> Result<()> {
        let (model, index) = (model.to_owned(), Arc::clone(&self.index));
        self.long_readers.with(move |_| index.put_vectors(&model, &vectors)).await
    }

    async fn search_vectors(
        &self,
        search: &SearchQuery,
        model: &str,
        vector: Vec<f32>,
    ) -> Result<Vec<SearchHit>> {
        let (search, model, index) = (search.clone(), model.to_owned(), Arc::clone(&self.index));
        self.long_readers.with(move |db| index.search_vectors(db, &search, &model, &vector)).await
    }

    async fn streams_with_words(&self, words: &str) -> Result<FoundStreams> {
        let (words, index) = (words.to_owned(), Arc::clone(&self.index));
        self.long_readers.with(move |db| index.streams_with_words(db, &words)).await
    }

    async fn verify(&self) -> Result<VerifyReport> {
        let home = self.home.clone();
        self.long_readers.with(move |db| Ok(verify::verify_connection(db, Some(&home)))).await
    }

    async fn backup(&self, file: &Path) -> Result<VerifyReport> {
        let file = file.to_owned();
        self.long_readers.with(move |db| backup::backup(db, &file)).await
    }

    async fn close(&self) {
        if let Some(thread) = self.shut() {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}
