//! One thread that commits the appends of all sessions together.
//!
//! While one commit waits for the disk, others queue up; the next commit takes them all. Each has a savepoint of
//! its own, so a conflict costs only the append that had it. Nothing is answered before the commit has returned.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use longhaul_protocol::{At, StreamName};
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::sqlite::presence::Ties;
use crate::sqlite::rows::{self, StreamNumber};
use crate::sqlite::{SqliteOptions, failure, heads};
use crate::{Error, Holder, Home, Result};

/// How many appends one commit takes at most, so that the first of them does not wait for a whole crowd.
const LARGEST_BATCH: usize = 512;

/// How often heads are noted at the most: it costs a look at all of them.
const NOTE_EVERY: Duration = Duration::from_secs(5);

/// What a piece of work sees of the commit that it is part of.
pub(crate) struct Commit<'a> {
    pub(crate) db: &'a Connection,
    pub(crate) now: At,
    pub(crate) this_process: &'a Holder,
    pub(crate) lease_expiry: Duration,
    /// Streams whose heads moved, to be noted once the commit has returned.
    pub(crate) touched: Vec<StreamName>,
    path: &'a PathBuf,
}

impl Commit<'_> {
    /// An answer of SQLite, as ours.
    pub(crate) fn sql<T>(&self, answer: rusqlite::Result<T>) -> Result<T> {
        answer.map_err(|error| failure(self.path, &error))
    }

    /// The number of a stream, given now if it has none.
    pub(crate) fn stream(&self, stream: &StreamName) -> Result<StreamNumber> {
        if let Some(number) = self.sql(rows::number_of(self.db, stream))? {
            return Ok(number);
        }
        let insert = |db: &Connection| {
            db.prepare_cached("INSERT INTO streams (name) VALUES (?1)")?.insert([stream.as_str()])
        };
        self.sql(insert(self.db)).map(StreamNumber)
    }
}

/// A piece of work, and where its answer goes.
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
            // Whatever it found then, such as a record with the same key, may have gone with the commit.
            (Err(error), _) => Err(error),
            (Ok(()), Some(outcome)) => outcome,
            (Ok(()), None) => Err(Error::Closed),
        };
        // Whoever asked may have gone away; what was committed stays.
        let _ = self.reply.send(outcome);
    }
}

enum Order {
    /// Part of a commit.
    Work(Box<dyn Work>),
    /// Something that needs the connection for itself, between two commits.
    Alone(Box<dyn FnOnce(&mut Writer) + Send>),
    /// Finish.
    Close,
}

/// The other end of the writer's queue.
#[derive(Clone)]
pub(crate) struct Queue(mpsc::Sender<Order>);

impl Queue {
    /// Does something as part of the next commit; durable when it returns.
    pub(crate) async fn commit<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Commit<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let job = Job { act: Some(act), outcome: None, reply };
        self.0.send(Order::Work(Box::new(job))).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    /// Does something between two commits.
    pub(crate) async fn alone<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Writer) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (reply, answer) = oneshot::channel();
        let order = Order::Alone(Box::new(move |writer| {
            let _ = reply.send(act(writer));
        }));
        self.0.send(order).map_err(|_| Error::Closed)?;
        answer.await.map_err(|_| Error::Closed)?
    }

    pub(crate) fn close(&self) {
        // An error means that it is closed already.
        let _ = self.0.send(Order::Close);
    }
}

/// The state of the writer's thread.
pub(crate) struct Writer {
    pub(crate) db: Connection,
    pub(crate) home: Home,
    pub(crate) path: PathBuf,
    this_process: Holder,
    lease_expiry: Duration,
    checkpoint_pages: u32,
    log_pages: Arc<AtomicU32>,
    /// How long the log was when it was last moved to the file: while somebody reads, it can't begin anew.
    checkpointed: u32,
    touched: BTreeSet<StreamName>,
    noted_at: Option<Instant>,
}

impl Writer {
    /// Starts the thread. It ends when it is told to close or when the last queue is dropped.
    pub(crate) fn start(
        home: &Home,
        mut db: Connection,
        options: &SqliteOptions,
        ties: Arc<Ties>,
    ) -> Result<(Queue, JoinHandle<()>)> {
        let path = home.journal_file();
        let said = |error| failure(&path, &error);
        db.set_prepared_statement_cache_capacity(64);
        let log_pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&log_pages);
        // This takes the place of SQLite's own automatic checkpoint, so that the heads can be noted at the same time.
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
            noted_at: None,
        };
        let (sender, orders) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || {
                writer.run(&orders);
                // Only now that its connection is closed.
                drop(ties);
            })
            .map_err(|error| Error::Io { path, reason: error.to_string() })?;
        Ok((Queue(sender), thread))
    }

    fn run(mut self, orders: &mpsc::Receiver<Order>) {
        let mut next = orders.recv().ok();
        while let Some(order) = next.take() {
            match order {
                Order::Close => break,
                Order::Alone(act) => act(&mut self),
                Order::Work(first) => {
                    let mut batch = vec![first];
                    while batch.len() < LARGEST_BATCH {
                        match orders.try_recv() {
                            Ok(Order::Work(work)) => batch.push(work),
                            Ok(other) => {
                                next = Some(other);
                                break;
                            }
                            Err(_) => break,
                        }
                    }
                    self.commit(batch);
                    self.checkpoint_if_due();
                }
            }
            next = next.or_else(|| orders.recv().ok());
        }
        self.finish();
    }

    fn commit(&mut self, mut batch: Vec<Box<dyn Work>>) {
        let committed = self.transact(&mut batch);
        if !self.db.is_autocommit() {
            // What failed half-way must not stay open; if even this fails, the next commit says so.
            let _ = self.db.execute_batch("ROLLBACK");
        }
        for work in batch {
            work.answer(committed.clone());
        }
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
            // A full disk makes SQLite give the whole transaction up. Going on would start another one by accident.
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
            if self.noted_at.is_none_or(|at| at.elapsed() >= NOTE_EVERY) {
                self.note_heads();
            }
        }
    }

    /// Moves what is in the log to the file, as far as nobody reads it. What can't be moved now is moved later; it was
    /// committed all the same.
    fn checkpoint(&self) {
        let _ = self.db.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
    }

    /// Moves what is in the log to the file, says so if the disk refuses, and notes the heads.
    pub(crate) fn sync(&mut self) -> Result<()> {
        self.db
            .query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))
            .map_err(|error| failure(&self.path, &error))?;
        self.note_heads();
        Ok(())
    }

    /// Moves everything to the file and leaves no byte in the log, or says that somebody is reading it.
    pub(crate) fn empty_log(&self) -> Result<()> {
        let busy = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        if busy.map_err(|error| failure(&self.path, &error))? {
            let by = "another process that reads".to_owned();
            return Err(Error::Locked { path: self.path.clone(), by });
        }
        Ok(())
    }

    fn note_heads(&mut self) {
        self.noted_at = Some(Instant::now());
        // What can't be noted now is kept for the next time.
        if !self.touched.is_empty() && heads::note(&self.home, &self.db, &self.touched).is_ok() {
            self.touched.clear();
        }
    }

    fn finish(mut self) {
        self.checkpoint();
        self.note_heads();
    }
}

pub(crate) fn now() -> At {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    At(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
