//! The engine as others see it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use longhaul_protocol::{Hash, Record, Seq, SessionId, StreamName};
use tokio::sync::OnceCell;

use crate::chain::ChainCheck;
use crate::home::{Home, beside};
use crate::sqlite::append::{Prepared, adopt};
use crate::sqlite::doorbell::{self, Doorbell};
use crate::sqlite::index::Index;
use crate::sqlite::presence::{Presence, Ties};
use crate::sqlite::readers::Readers;
use crate::sqlite::rows::{self, Found, StreamNumber};
use crate::sqlite::schema::{self, Access, FileKind};
use crate::sqlite::writer::{Commit, Queue, Writer};
use crate::sqlite::{backup, check, erase, heads, lease};
use crate::{
    Append, Blob, Call, Callers, Error, Frequencies, Head, Hit, Holder, Journal, Lease, Page, Report, Result,
    Rings, Search, SessionEntry, Size,
};

/// A journal in a home's `journal.db`.
pub struct SqliteJournal {
    home: Home,
    readers: Readers,
    /// For what takes long, so that short reads don't wait behind it.
    long_readers: Readers,
    index: Arc<Index>,
    /// Why nothing can be written, where that is so.
    queue: std::result::Result<Queue, Error>,
    thread: Mutex<Option<JoinHandle<()>>>,
    doorbell: OnceCell<Doorbell>,
}

/// What can be set, mostly for tests: the defaults are for everybody.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// How long a lease stands without a sign of its holder.
    pub lease_expiry: Duration,
    /// How many pages the log may have before it is moved to the file.
    pub checkpoint_pages: u32,
    /// The SQLite file layer to use, for tests that record or refuse what reaches the disk.
    pub vfs: Option<String>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self { lease_expiry: Duration::from_secs(10), checkpoint_pages: 1_000, vfs: None }
    }
}

impl SqliteJournal {
    /// Opens the journal of a home, or makes one. A file of an older format is brought up to date first; one of a
    /// newer format is opened for reading only.
    pub async fn open(home: &Home) -> Result<Self> {
        Self::open_with(home, SqliteOptions::default()).await
    }

    /// The same, with options.
    pub async fn open_with(home: &Home, options: SqliteOptions) -> Result<Self> {
        let home = home.clone();
        let opened = tokio::task::spawn_blocking(move || Self::open_now(&home, &options));
        opened.await.map_err(|_| Error::Closed)?
    }

    fn open_now(home: &Home, options: &SqliteOptions) -> Result<Self> {
        let path = home.journal_file();
        let vfs = options.vfs.as_deref();
        home.sweep();
        backup::finish_restore(home)?;
        let together = home.lock_shared()?;
        if backup::restoring_file(home).exists() {
            // A restore was decided, and cut short, just before the lock was ours.
            drop(together);
            return Self::open_now(home, options);
        }
        let presence = Presence::enter(&path, || match schema::file_kind(&path)? {
            FileKind::Journal { .. } => Ok(()),
            FileKind::Missing => match left_over(home)? {
                Some(left) => Err(Error::Missing { path: path.clone(), left }),
                None => schema::create(&path, vfs),
            },
        })?;
        let ties = Arc::new(Ties { _together: together, _presence: presence });
        let (queue, thread) = match schema::connect_to_write(&path, vfs) {
            Ok(Access::Current(db)) => {
                let (queue, thread) = Writer::start(home, db, options, Arc::clone(&ties))?;
                (Ok(queue), Some(thread))
            }
            Ok(Access::Older) => {
                drop(ties);
                schema::migrate(home, vfs)?;
                return Self::open_now(home, options);
            }
            // What can't be written can still be read.
            Err(error @ (Error::Newer { .. } | Error::ReadOnly { .. })) => (Err(error), None),
            Err(error) => return Err(error),
        };
        Ok(Self {
            home: home.clone(),
            readers: Readers::new(&path, vfs, &ties),
            long_readers: Readers::new(&path, vfs, &ties),
            index: Arc::new(Index::new(home)),
            queue,
            thread: Mutex::new(thread),
            doorbell: OnceCell::new(),
        })
    }

    /// Why nothing can be written, where that is so.
    pub fn read_only(&self) -> Option<&Error> {
        self.queue.as_ref().err()
    }

    fn queue(&self) -> Result<&Queue> {
        self.queue.as_ref().map_err(Clone::clone)
    }

    async fn doorbell(&self) -> Result<&Doorbell> {
        self.doorbell.get_or_try_init(|| async { Doorbell::hang(&self.home) }).await
    }

    /// Reads of one stream; `none` is the answer if there is no such stream.
    async fn of_stream<T: Send + 'static>(
        &self,
        stream: &StreamName,
        none: T,
        act: impl FnOnce(&rusqlite::Connection, StreamNumber) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let stream = stream.clone();
        self.readers
            .read(move |db| match rows::number_of(db, &stream)? {
                Some(number) => act(db, number),
                None => Ok(none),
            })
            .await
    }

    /// Lets go of everything but the writer's thread, which is on its way out and is returned to be waited for.
    fn shut(&self) -> Option<JoinHandle<()>> {
        if let Some(doorbell) = self.doorbell.get() {
            doorbell.take_down();
        }
        // Readers first: the last to leave must be one that can write, or SQLite leaves its log behind.
        self.readers.close();
        self.long_readers.close();
        if let Ok(queue) = &self.queue {
            queue.close();
        }
        self.thread.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// What shows that there was a journal in this home, where there is none. The log of an old one would be played into
/// a new one.
fn left_over(home: &Home) -> Result<Option<PathBuf>> {
    let log = beside(&home.journal_file(), "-wal");
    if log.metadata().is_ok_and(|log| log.len() > 0) {
        return Ok(Some(log));
    }
    let noted = heads::load(home)?;
    Ok((!noted.heads.is_empty() || !noted.lost.is_empty()).then(|| home.heads_file()))
}

impl Drop for SqliteJournal {
    fn drop(&mut self) {
        if let Some(thread) = self.shut() {
            // A panic there has been answered with `Closed` to everybody who waited.
            let _ = thread.join();
        }
    }
}

#[async_trait]
impl Journal for SqliteJournal {
    async fn append(&self, append: Append) -> Result<Vec<Record>> {
        let prepared = Prepared::new(append)?;
        self.queue()?.commit(move |commit| prepared.perform(commit)).await
    }

    async fn read(&self, stream: &StreamName, from: Seq, page: Page) -> Result<Vec<Record>> {
        let name = stream.clone();
        let rows = self
            .of_stream(stream, Vec::new(), move |db, number| {
                rows::page(db, (number, &name), from.max(1), page)
            })
            .await
            .map_err(|error| match error {
                Error::Corrupt { reason, .. } => {
                    Error::Damaged { stream: stream.clone(), seq: from.max(1), reason }
                }
                other => other,
            })?;
        let mut chain = ChainCheck::from(from);
        let mut records = Vec::with_capacity(rows.len());
        for row in rows {
            let seq = chain.next_seq();
            let verdict = match row {
                Found::Record(record) => chain.follow(&record).map(|()| record),
                Found::Unreadable(_, reason) => Err(reason.to_owned()),
            };
            match verdict {
                Ok(record) => records.push(record),
                Err(reason) if records.is_empty() => {
                    return Err(Error::Damaged { stream: stream.clone(), seq, reason });
                }
                Err(_) => break,
            }
        }
        Ok(records)
    }

    async fn head(&self, stream: &StreamName) -> Result<Head> {
        self.of_stream(stream, Head::EMPTY, rows::head).await
    }

    async fn newest_epoch(&self, stream: &StreamName) -> Result<Option<Seq>> {
        self.of_stream(stream, None, rows::newest_epoch).await
    }

    async fn size(&self, stream: &StreamName) -> Result<Size> {
        self.of_stream(stream, Size::default(), rows::size).await
    }

    async fn find(&self, stream: &StreamName, key: &str) -> Result<Option<Seq>> {
        let key = Hash::of(key);
        self.of_stream(stream, None, move |db, number| rows::with_key(db, number, key)).await
    }

    async fn streams(&self) -> Result<Vec<StreamName>> {
        let streams = self.readers.read(rows::streams).await?;
        Ok(streams.into_iter().map(|(_, name)| name).collect())
    }

    async fn session(&self, key: &str) -> Result<Option<SessionEntry>> {
        let key = key.to_owned();
        self.readers.read(move |db| rows::at_once(db, |db| rows::session(db, &key))).await
    }

    async fn session_with_id(&self, id: SessionId) -> Result<Option<SessionEntry>> {
        self.readers.read(move |db| rows::at_once(db, |db| rows::session_with_id(db, id))).await
    }

    async fn sessions(&self, after: Option<&str>, limit: usize) -> Result<Vec<SessionEntry>> {
        let after = after.map(str::to_owned);
        self.readers.read(move |db| rows::at_once(db, |db| rows::sessions(db, after.as_deref(), limit))).await
    }

    async fn acquire(&self, stream: &StreamName) -> Result<Lease> {
        let stream = stream.clone();
        self.queue()?.commit(move |commit| lease::acquire(commit, &stream)).await
    }

    async fn renew(&self, lease: &Lease) -> Result<()> {
        let lease = lease.clone();
        self.queue()?.commit(move |commit| lease::renew(commit, &lease)).await
    }

    async fn release(&self, lease: &Lease) -> Result<()> {
        let lease = lease.clone();
        self.queue()?.commit(move |commit| lease::release(commit, &lease)).await
    }

    async fn holder(&self, stream: &StreamName) -> Result<Option<Holder>> {
        let stream = stream.clone();
        self.readers.read(move |db| lease::holder(db, &stream)).await
    }

    async fn ring(&self, stream: &StreamName) -> Result<()> {
        let this_process = Holder::this_process();
        let lives = |holder: &Holder| !holder.is_gone();
        let holder = match self.holder(stream).await?.filter(lives) {
            Some(holder) => Some(holder),
            None => self.holder(&StreamName::host()).await?.filter(lives),
        };
        let Some(holder) = holder else { return Ok(()) };
        match self.doorbell.get() {
            Some(doorbell) if holder == this_process => {
                doorbell.ring(stream);
                Ok(())
            }
            _ => doorbell::ring(&self.home, &holder, stream).await,
        }
    }

    async fn rings(&self) -> Result<Rings> {
        Ok(Rings(self.doorbell().await?.rings()?))
    }

    async fn call(&self, holder: &Holder, stream: &StreamName) -> Result<Option<Call>> {
        doorbell::call(&self.home, holder, stream).await
    }

    async fn callers(&self) -> Result<Callers> {
        self.doorbell().await?.callers()
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
        let stubs = move |commit: &mut Commit<'_>| {
            places.iter().try_for_each(|(stream, seq)| erase::erase(commit, stream, *seq, &reason))
        };
        self.queue()?.commit(stubs).await?;
        let scrubbed =
            self.queue()?.alone(move |writer| index.reset().and_then(|()| erase::scrub(writer))).await;
        let path = self.home.journal_file();
        scrubbed.map_err(|error| Error::NotScrubbed { path, reason: error.to_string() })
    }

    async fn remove(&self, stream: &StreamName, lease: Option<&Lease>) -> Result<()> {
        let (name, shown) = (stream.clone(), lease.cloned());
        self.queue()?.commit(move |commit| erase::may_remove(commit, &name, shown.as_ref())).await?;
        let forget_head = || {
            let (name, home) = (stream.clone(), self.home.clone());
            move |_: &mut Writer| heads::forget(&home, &name)
        };
        // Before, so that a crash leaves no head of a stream that is gone; after, for whoever noted it meanwhile.
        self.queue()?.alone(forget_head()).await?;
        let (name, shown) = (stream.clone(), lease.cloned());
        self.queue()?.commit(move |commit| erase::remove(commit, &name, shown.as_ref())).await?;
        self.queue()?.alone(forget_head()).await?;
        let (name, index) = (stream.clone(), Arc::clone(&self.index));
        self.queue()?.alone(move |_| index.forget(&name)).await
    }

    async fn drop_unused_blobs(&self) -> Result<u64> {
        self.queue()?.commit(erase::drop_unused_blobs).await
    }

    async fn sync(&self) -> Result<()> {
        self.queue()?.alone(Writer::sync).await
    }

    async fn adopt(&self, lease: &Lease, records: Vec<Record>, blobs: Vec<Blob>) -> Result<()> {
        let lease = lease.clone();
        self.queue()?.commit(move |commit| adopt(commit, &lease, records, blobs)).await
    }

    async fn search(&self, search: &Search) -> Result<Vec<Hit>> {
        let (search, index) = (search.clone(), Arc::clone(&self.index));
        self.long_readers.with(move |db| index.search(db, &search)).await
    }

    async fn frequencies(&self, words: &[String]) -> Result<Frequencies> {
        let (words, index) = (words.to_vec(), Arc::clone(&self.index));
        self.long_readers.with(move |_| index.frequencies(&words)).await
    }

    async fn verify(&self) -> Result<Report> {
        let home = self.home.clone();
        self.long_readers.with(move |db| Ok(check::verify(db, Some(&home)))).await
    }

    async fn backup(&self, file: &Path) -> Result<Report> {
        let file = file.to_owned();
        self.long_readers.with(move |db| backup::backup(db, &file)).await
    }

    async fn close(&self) {
        if let Some(thread) = self.shut() {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }
}
