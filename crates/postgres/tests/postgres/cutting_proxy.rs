//! A proxy in front of a server. It reads an answer and cuts the connection instead of passing it on, so that what the server
//! committed is committed and the client doesn't know; it cuts all connections, holds them up, or delays each by another time, so
//! that what was sent first over one connection arrives after what was sent later over another.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use longhaul_testkit::{PostgresServer, SeededRandom};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

/// The message with which an answer ends: the server is ready for the next statement, outside of a transaction.
const READY: &[u8] = &[b'Z', 0, 0, 0, 5, b'I'];

pub(crate) struct CuttingProxy {
    folder: tempfile::TempDir,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    to_lose: AtomicU64,
    lost: AtomicU64,
    /// Directions of connections so far.
    passages: AtomicU64,
    /// Each message waits at most so many milliseconds.
    delay: AtomicU64,
    /// How often all connections were cut.
    cuts: watch::Sender<u64>,
    is_paused: watch::Sender<bool>,
}

impl Counters {
    /// Takes one answer that is to be lost.
    fn take(&self) -> bool {
        let less = |left: u64| left.checked_sub(1);
        let taken = self.to_lose.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if taken {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        taken
    }
}

impl CuttingProxy {
    pub(crate) fn start(server: &PostgresServer) -> Self {
        let folder = tempfile::Builder::new().prefix("lh-px-").tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join(".s.PGSQL.5432")).unwrap();
        let (counters, target) =
            (Arc::new(Counters::default()), server.socket_folder().join(".s.PGSQL.5432"));
        let shared = Arc::clone(&counters);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(relay(client, target.clone(), Arc::clone(&shared)));
            }
        });
        Self { folder, counters }
    }

    pub(crate) fn url(&self, database: &str) -> String {
        let folder: &Path = self.folder.path();
        format!("postgres://postgres@/{database}?host={}", folder.display())
    }

    /// Loses the answer to the next statement, and its connection. Asked again before that, it is still one.
    pub(crate) fn lose_next_answer(&self) {
        self.counters.to_lose.store(1, Ordering::Relaxed);
    }

    /// Cuts all connections, whatever is under way over them.
    pub(crate) fn cut_all(&self) {
        self.counters.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Holds up everything in both directions, or lets it go on.
    pub(crate) fn pause(&self, is_paused: bool) {
        self.counters.is_paused.send_replace(is_paused);
    }

    /// Delays each message by up to so many milliseconds, each connection by others.
    pub(crate) fn delay(&self, milliseconds: u64) {
        self.counters.delay.store(milliseconds, Ordering::Relaxed);
    }

    pub(crate) fn lost_answers(&self) -> u64 {
        self.counters.lost.load(Ordering::Relaxed)
    }
}

/// Passes on bytes in one direction until one side is closed, or an answer is to be lost.
async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    counters: &Counters,
    is_from_server: bool,
) -> Option<()> {
    let seed = counters.passages.fetch_add(1, Ordering::Relaxed);
    let (mut random, mut is_paused) = (SeededRandom::from_seed(seed), counters.is_paused.subscribe());
    let mut is_greeting = true;
    let mut buffer = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
        let is_answer = is_from_server && buffer[..read].ends_with(READY);
        if is_answer && !is_greeting && counters.take() {
            return None;
        }
        is_greeting &= !is_answer;
        let delay = counters.delay.load(Ordering::Relaxed);
        if delay > 0 {
            tokio::time::sleep(Duration::from_millis(random.below(delay + 1))).await;
        }
        is_paused.wait_for(|is_paused| !is_paused).await.ok()?;
        to.write_all(&buffer[..read]).await.ok()?;
    }
}

async fn relay(client: UnixStream, target: PathBuf, counters: Arc<Counters>) -> Option<()> {
    let mut cuts = counters.cuts.subscribe();
    let server = UnixStream::connect(target).await.ok()?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::select! {
        _ = cuts.changed() => None,
        stopped = pass_on(from_client, to_server, &counters, false) => stopped,
        stopped = pass_on(from_server, to_client, &counters, true) => stopped,
    }
}
