//! Group commit: one thread commits the appends of all sessions together.
//!
//! While one commit waits for the disk, others queue up, and the next commit takes them all. Each append has its own
//! savepoint, so a conflict affects only that append. The thread answers only after the commit has returned.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use longhaul_protocol::{At, StreamName};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::sqlite::open_files::ProcessLocks;
use crate::sqlite::rows::{self, StreamNumber};
use crate::sqlite::{SqliteOptions, failure, known_heads};
use crate::{Error, Holder, Home, Result};

/// The most appends in one commit, so that the first of them does not wait too long.
const MAX_BATCH: usize = 512;

/// The shortest time between two writes of `heads.json`.
const HEADS_INTERVAL: Duration = Duration::from_secs(5);

/// A commit, from the view of one job in it.
pub(crate) struct Commit<'a> {
    pub(crate) db: &'a Connection,
    pub(crate) now: At,
    pub(crate) this_process: &'a Holder,
    pub(crate) lease_expiry: Duration,
    /// Streams whose heads moved. They go into `heads.json` after the commit.
    pub(crate) touched: Vec<StreamName>,
    path: &'a PathBuf,
}

impl Commit<'_> {
    /// Turns an error of SQLite into one of the journal.
    pub(crate) fn sql<T>(&self, answer: rusqlite::Result<T>) -> Result<T> {
        answer.map_err(|error| failure(self.path, &error))
    }

    /// The number of a stream, assigned now if it has none.
    pub(crate) fn stream(&self, stream: &StreamName) -> Result<StreamNumber> {
        if let Some(number) = self.sql(rows::stream_number(self.db, stream))? {
            return Ok(number);
        }
        let insert = |db: &Connection| {
            db.prepare_cached("INSERT INTO streams (name) VALUES (?1)")?.insert([stream.as_str()])
        };
        self.sql(insert(self.db)).map(StreamNumber)
    }
}

/// A job of any type.
trait Work: Send {
    fn perform(&mut self, commit: &mut Commit<'_>) -> Result<()>;
    fn answer(self: Box<Self>, committed: Result<()>);
}

struct Job<F, T> {
    act: Option<F>,
    outcome: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<F, T> Work for Job<F, T>
where
    F: FnOnce(&mut Commit<'_>) -> Result<T> + Send,
    T: Send,
{
    fn perform(&mut self, commit: &mut Commit<'_>) -> Result<()> {
        let act = self.act.take().ok_or(Error::Closed)?;
        let outcome = act(commit);
        let verdict = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        self.outcome = Some(outcome);
        verdict
    }

    fn answer(self: Box<Self>, committed: Result<()>) {
        let outcome = match (committed, self.outcome) {
            // The job's own outcome, such as a duplicate key, may depend on something that the failed commit rolled
            // back.
            (Err(error), _) => Err(error),
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(Error::Closed),
        };
        // The caller may have dropped its future. The commit is still valid.
        let _ = self.reply.send(outcome);
    }
}

/// Whether a commit waits until it is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sync {
    Now,
    /// With the next commit that waits. Until then only a crash of the machine loses it, and that ends every process.
    Later,
}

enum WriterRequest {
    /// Runs as part of a commit.
    Commit(Box<dyn Work>, Sync),
    /// Runs between two commits, with exclusive use of the connection.
    Exclusive(Box<dyn FnOnce(&mut Writer) + Send>),
    Close,
}

/// The callers' end of the writer's queue.
#[derive(Clone)]
pub(crate) struct Queue(mpsc::Sender<WriterRequest>);

impl Queue {
    /// Runs a job as part of the next commit. Its effect is durable when this returns.
    pub(crate) async fn commit<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Commit<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.send(act, Sync::Now).await
    }

    /// Like [`Self::commit`] for leases. They tell processes apart and no process outlives the machine, so they are
    /// synced only with the next append: before any record that relies on them.
    pub(crate) async fn commit_lease<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Commit<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.send(act, Sync::Later).await
    }

    async fn send<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Commit<'_>) -> Result<T> + Send + 'static,
        sync: Sync,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = Job { act: Some(act), outcome: None, reply };
        self.0.send(WriterRequest::Commit(Box::new(job), sync)).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    /// Runs something between two commits.
    pub(crate) async fn run_exclusive<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let order = WriterRequest::Exclusive(Box::new(move |writer| {
            let _ = reply.send(act(writer));
        }));
        self.0.send(order).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    pub(crate) fn close(&self) {
        // An error means that it is already closed.
        let _ = self.0.send(WriterRequest::Close);
    }
}

/// The writer's thread.
pub(crate) struct Writer {
    pub(crate) db: Connection,
    pub(crate) home: Home,
    pub(crate) path: PathBuf,
    this_process: Holder,
    lease_expiry: Duration,
    checkpoint_pages: u32,
    log_pages: Arc<AtomicU32>,
    /// The length of the log at the last checkpoint. The log can't start over while a reader uses it.
    checkpointed: u32,
    touched: BTreeSet<StreamName>,
    heads_written_at: Option<Instant>,
    /// A commit that need not wait for the disk was made, and the connection still has that setting.
    is_sync_deferred: bool,
}

impl Writer {
    /// Starts the thread. It ends when it is asked to close or when the last queue is dropped.
    pub(crate) fn start(
        home: &Home,
        mut db: Connection,
        options: &SqliteOptions,
        locks: Arc<ProcessLocks>,
    ) -> Result<(Queue, JoinHandle<()>)> {
        let path = home.journal_file();
        let said = |error| failure(&path, &error);
        db.set_prepared_statement_cache_capacity(64);
        let log_pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&log_pages);
        // This replaces SQLite's automatic checkpoint, so that the heads are written at the same time.
        db.wal_hook(Some(move |_: &mut _, pages| {
            seen.store(u32::try_from(pages).unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))
        .map_err(said)?;
        let writer = Self {
            db,
            home: home.clone(),
            path: path.clone(),
            this_process: Holder::this_process(),
            lease_expiry: options.lease_expiry,
            checkpoint_pages: options.checkpoint_pages,
            log_pages,
            checkpointed: 0,
            touched: BTreeSet::new(),
            heads_written_at: None,
            is_sync_deferred: false,
        };
        let (sender, requests) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                writer.run(&requests);
                // Not earlier: now the connection is closed.
                drop(locks);
            })
            .map_err(|error| Error::Io { path, reason: error.to_string() })?;
        Ok((Queue(sender), thread))
    }

    fn run(mut self, requests: &mpsc::Receiver<WriterRequest>) {
        let mut next = requests.recv().ok();
        while let Some(order) = next.take() {
            match order {
                WriterRequest::Close => break,
                WriterRequest::Exclusive(act) => act(&mut self),
                WriterRequest::Commit(first, mut sync) => {
                    let mut batch = vec![first];
                    while batch.len() < MAX_BATCH {
                        match requests.try_recv() {
                            Ok(WriterRequest::Commit(work, wanted)) => {
                                batch.push(work);
                                if wanted == Sync::Now {
                                    sync = Sync::Now;
                                }
                            }
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.commit(batch, sync);
                    self.checkpoint_if_due();
                }
            }
            next = next.or_else(|| requests.recv().ok());
        }
        self.finish();
    }

    fn commit(&mut self, mut batch: Vec<Box<dyn Work>>, sync: Sync) {
        // Only if this connection could not be set back after a deferred commit is it not FULL already.
        if sync == Sync::Now
            && let Err(error) = self.restore_sync()
        {
            return batch.into_iter().for_each(|work| work.answer(Err(error.clone())));
        }
        // If this fails, the commit is synced, as usual.
        let is_deferred = sync == Sync::Later && self.db.execute_batch("PRAGMA synchronous = NORMAL").is_ok();
        let committed = self.transact(&mut batch);
        if !self.db.is_autocommit() {
            // A transaction that failed half-way must not stay open. If the rollback fails, so will the next commit.
            let _ = self.db.execute_batch("ROLLBACK");
        }
        // No commit with records may come before this.
        self.is_sync_deferred |= is_deferred;
        let committed = committed.and(self.restore_sync());
        for work in batch {
            work.answer(committed.clone());
        }
    }

    /// Lets commits wait for the disk again.
    fn restore_sync(&mut self) -> Result<()> {
        if self.is_sync_deferred {
            self.db
                .execute_batch("PRAGMA synchronous = FULL")
                .map_err(|error| failure(&self.path, &error))?;
            self.is_sync_deferred = false;
        }
        Ok(())
    }

    fn transact(&mut self, batch: &mut [Box<dyn Work>]) -> Result<()> {
        let said = |error: rusqlite::Error| failure(&self.path, &error);
        let run = |sql: &str| {
            self.db.prepare_cached(sql).and_then(|mut statement| statement.execute([])).map_err(said)
        };
        run("BEGIN IMMEDIATE")?;
        let mut commit = Commit {
            db: &self.db,
            now: now(),
            this_process: &self.this_process,
            lease_expiry: self.lease_expiry,
            touched: Vec::new(),
            path: &self.path,
        };
        for work in batch {
            run("SAVEPOINT one")?;
            let touched = commit.touched.len();
            let verdict = work.perform(&mut commit);
            // A full disk makes SQLite roll back the whole transaction. Continuing would start another one.
            if self.db.is_autocommit() {
                return verdict.and(Err(Error::Closed));
            }
            if verdict.is_err() {
                commit.touched.truncate(touched);
                run("ROLLBACK TO one")?;
            }
            run("RELEASE one")?;
        }
        let touched = commit.touched;
        run("COMMIT")?;
        self.touched.extend(touched);
        Ok(())
    }

    fn checkpoint_if_due(&mut self) {
        let pages = self.log_pages.load(Ordering::Relaxed);
        if pages < self.checkpointed {
            self.checkpointed = 0;
        }
        if pages - self.checkpointed >= self.checkpoint_pages {
            self.checkpointed = pages;
            self.checkpoint();
            if self.heads_written_at.is_none_or(|at| at.elapsed() >= HEADS_INTERVAL) {
                self.write_known_heads();
            }
        }
    }

    /// Moves the log into the file, except for the part that a reader uses. A failure loses nothing, because the log
    /// keeps the rest.
    fn checkpoint(&self) {
        let _ = self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }

    /// Moves the log into the file and writes the heads. Unlike at a checkpoint, an error is returned.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.db
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(|error| failure(&self.path, &error))?;
        self.write_known_heads();
        Ok(())
    }

    /// Moves the log into the file and truncates it. Fails if a reader uses it.
    pub(crate) fn empty_log(&self) -> Result<()> {
        let busy = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        if busy.map_err(|error| failure(&self.path, &error))? {
            let by = "another process that reads".to_owned();
            return Err(Error::Locked { path: self.path.clone(), by });
        }
        Ok(())
    }

    fn write_known_heads(&mut self) {
        self.heads_written_at = Some(Instant::now());
        // After a failure, the streams stay listed for the next attempt.
        if !self.touched.is_empty() && known_heads::update(&self.home, &self.db, &self.touched).is_ok() {
            self.touched.clear();
        }
    }

    /// The last checkpoint, and the heads. Both wait for the disk, so they are written side by side: all heads are
    /// durable already.
    fn finish(self) {
        let heads = match self.touched.is_empty() {
            true => None,
            false => known_heads::prepare_update(&self.home, &self.db, &self.touched).ok(),
        };
        std::thread::scope(|scope| {
            let write = || heads.as_ref().map(known_heads::HeadsUpdate::write);
            let writing = std::thread::Builder::new().name("heads".to_owned()).spawn_scoped(scope, write);
            self.checkpoint();
            if writing.is_err() {
                // A failure does no harm: the next process notes the heads.
                let _ = write();
            }
        });
    }
}

pub(crate) fn now() -> At {
    SystemTime::now().into()
}
