//! A small pool of connections for reading. Readers never wait for the writer, and the writer never for them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::Semaphore;

use crate::home::{beside, path_text};
use crate::sqlite::presence::Ties;
use crate::sqlite::{failure, open, open_address};
use crate::{Error, Result};

/// How many reads go on at the same time; more wait for their turn.
const READERS: usize = 4;

/// The pool. Connections are made when they are needed and used again.
#[derive(Clone)]
pub(crate) struct Readers(Arc<Pool>);

struct Pool {
    path: PathBuf,
    vfs: Option<String>,
    state: Mutex<State>,
    turns: Arc<Semaphore>,
}

#[derive(Default)]
struct State {
    idle: Vec<Reader>,
    /// None when the pool is closed.
    ties: Option<Arc<Ties>>,
}

/// A connection with its share of what the process holds; the connection goes first.
struct Reader {
    db: Connection,
    _ties: Arc<Ties>,
}

impl Readers {
    pub(crate) fn new(path: &Path, vfs: Option<&str>, ties: &Arc<Ties>) -> Self {
        let (path, vfs) = (path.to_owned(), vfs.map(str::to_owned));
        let state = Mutex::new(State { idle: Vec::new(), ties: Some(Arc::clone(ties)) });
        Self(Arc::new(Pool { path, vfs, state, turns: Arc::new(Semaphore::new(READERS)) }))
    }

    /// Reads with a connection of its own, off the async threads.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T> {
        let path = self.0.path.clone();
        self.with(move |db| act(db).map_err(|error| failure(&path, &error))).await
    }

    /// The same for work that has errors of its own.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Connection) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let pool = Arc::clone(&self.0);
        let turn = Arc::clone(&pool.turns).acquire_owned().await.map_err(|_| Error::Closed)?;
        let done = tokio::task::spawn_blocking(move || {
            // It is held to the end even if whoever asked has gone away.
            let _turn = turn;
            let reader = pool.take()?;
            let answer = act(&reader.db);
            pool.give_back(reader);
            answer
        });
        done.await.map_err(|_| Error::Closed)?
    }

    /// Lets go of every connection; reads that come later are refused, and those under way let go when they are done.
    pub(crate) fn close(&self) {
        self.0.turns.close();
        *self.0.state() = State::default();
    }
}

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Result<Reader> {
        let ties = {
            let mut state = self.state();
            if let Some(reader) = state.idle.pop() {
                return Ok(reader);
            }
            state.ties.clone().ok_or(Error::Closed)?
        };
        Ok(Reader { db: connect_to_read(&self.path, self.vfs.as_deref())?, _ties: ties })
    }

    fn give_back(&self, reader: Reader) {
        let mut state = self.state();
        if state.ties.is_some() {
            state.idle.push(reader);
        }
    }
}

/// A connection that can't write. In a folder that can't be written, where SQLite could not keep its own notes, a
/// file at rest is read as it is.
pub(crate) fn connect_to_read(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    let attempt = open(path, vfs, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|db| usable(db, path));
    match attempt {
        Err(Error::ReadOnly { .. }) if is_at_rest(path) => connect_at_rest(path, vfs),
        other => other,
    }
}

/// Whether all of a journal is in its file: nobody has left a log beside it.
pub(crate) fn is_at_rest(path: &Path) -> bool {
    std::fs::metadata(beside(path, "-wal")).map_or(true, |log| log.len() == 0)
}

/// A connection to a file that nobody writes: it leaves nothing beside it.
pub(crate) fn connect_at_rest(path: &Path, vfs: Option<&str>) -> Result<Connection> {
    let plain = path_text(path)?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let address = format!("file:{plain}?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    open_address(Path::new(&address), path, vfs, flags).and_then(|db| usable(db, path))
}

/// Opening alone reads nothing; this shows whether reading works.
fn usable(db: Connection, path: &Path) -> Result<Connection> {
    db.execute_batch("PRAGMA cache_size = -1024;")
        .and_then(|()| db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())))
        .map_err(|error| failure(path, &error))?;
    Ok(db)
}
