//! A pool of read-only connections. Readers never wait for the writer, nor the writer for them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use crate::home::{path_str, with_suffix};
use crate::sqlite::open_files::ProcessLocks;
use crate::sqlite::{ReadThread, failure, open, open_address};
use crate::{Error, Result};

/// The most concurrent reads. Further ones wait.
const MAX_READERS: usize = 4;

/// The pool. It opens connections on demand and reuses them.
#[derive(Clone)]
pub(crate) struct Readers(Arc<Pool>);

struct Pool {
    path: PathBuf,
    vfs: Option<String>,
    state: Mutex<State>,
    turns: Arc<Semaphore>,
    reads_on: ReadThread,
}

#[derive(Default)]
struct State {
    idle: Vec<Reader>,
    /// `None` once the pool is closed.
    locks: Option<Arc<ProcessLocks>>,
}

/// A connection and its share of the locks. The connection is dropped first.
struct Reader {
    db: Connection,
    _locks: Arc<ProcessLocks>,
}

impl Readers {
    pub(crate) fn new(path: &Path, vfs: Option<&str>, locks: &Arc<ProcessLocks>) -> Self {
        Self(Arc::new(Pool::new(path, vfs, locks, ReadThread::Pool)))
    }

    /// Readers that read on the thread of their caller. The first connection is opened now.
    pub(crate) fn on_caller(path: &Path, vfs: Option<&str>, locks: &Arc<ProcessLocks>) -> Result<Self> {
        let pool = Pool::new(path, vfs, locks, ReadThread::Caller);
        pool.give_back(pool.take()?);
        Ok(Self(Arc::new(pool)))
    }

    /// Runs a query on a connection of the pool.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let path = self.0.path.clone();
        self.with(move |db| act(db).map_err(|error| failure(&path, &error))).await
    }

    /// Like [`read`](Self::read), for work with other errors than those of SQLite.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let pool = Arc::clone(&self.0);
        let turn = Arc::clone(&pool.turns).acquire_owned().await.map_err(|_| Error::Closed)?;
        if pool.reads_on == ReadThread::Caller {
            return pool.read_with(act);
        }
        let done = tokio::task::spawn_blocking(move || {
            // Held to the end, even if the caller has dropped its future.
            let _turn = turn;
            pool.read_with(act)
        });
        done.await.map_err(|_| Error::Closed)?
    }

    /// Closes every connection. Later reads are refused. Reads under way close their connection when they are done.
    pub(crate) fn close(&self) {
        self.0.turns.close();
        *self.0.state() = State::default();
    }
}

impl Pool {
    fn new(path: &Path, vfs: Option<&str>, locks: &Arc<ProcessLocks>, reads_on: ReadThread) -> Self {
        let (path, vfs) = (path.to_owned(), vfs.map(str::to_owned));
        let state = Mutex::new(State { idle: Vec::new(), locks: Some(Arc::clone(locks)) });
        Self { path, vfs, state, turns: Arc::new(Semaphore::new(MAX_READERS)), reads_on }
    }

    fn read_with<T>(&self, act: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let reader = self.take()?;
        let answer = act(&reader.db);
        self.give_back(reader);
        answer
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<Reader> {
        let locks = {
            let mut state = self.state();
            if let Some(reader) = state.idle.pop() {
                return Ok(reader);
            }
            state.locks.clone().ok_or(Error::Closed)?
        };
        Ok(Reader { db: connect_to_read(&self.path, self.vfs.as_deref())?, _locks: locks })
    }

    fn give_back(&self, reader: Reader) {
        let mut state = self.state();
        if state.locks.is_some() {
            state.idle.push(reader);
        }
    }
}

/// Opens a read-only connection. In a folder where SQLite can't create its shared-memory file, a file without a log is
/// opened as immutable.
pub(crate) fn connect_to_read(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    let attempt = open(path, vfs, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|db| check_readable(db, path));
    match attempt {
        Err(Error::ReadOnly { .. }) if is_at_rest(path) => connect_at_rest(path, vfs),
        other => other,
    }
}

/// Whether the whole journal is in its file and its log is empty.
pub(crate) fn is_at_rest(path: &Path) -> bool {
    std::fs::metadata(with_suffix(path, "-wal")).map_or(true, |log| log.len() == 0)
}

/// Opens a file that no process writes. This leaves no other file beside it.
pub(crate) fn connect_at_rest(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    let plain = path_str(path)?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let address = format!("file:{plain}?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    open_address(Path::new(&address), path, vfs, flags).and_then(|db| check_readable(db, path))
}

/// Runs a query, because only that shows whether the file is readable. Opening it does not.
fn check_readable(db: Connection, path: &Path) -> Result<Connection> {
    db.execute_batch("PRAGMA cache_size = -1024;")
        .and_then(|()| db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())))
        .map_err(|error| failure(path, &error))?;
    Ok(db)
}
