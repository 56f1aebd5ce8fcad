//! A proxy in front of a server that reads an answer and cuts the connection instead of passing it on: what the server committed
//! is committed, and the client doesn't know.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use longhaul_testkit::PostgresServer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

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

    pub(crate) fn lost_answers(&self) -> u64 {
        self.counters.lost.load(Ordering::Relaxed)
    }
}

async fn relay(client: UnixStream, target: PathBuf, counters: Arc<Counters>) -> Option<()> {
    let server = UnixStream::connect(target).await.ok()?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asking = async { tokio::io::copy(&mut from_client, &mut to_server).await.ok() };
    let answering = async {
        let mut is_greeting = true;
        let mut buffer = vec![0; 64 << 10];
        loop {
            let read = from_server.read(&mut buffer).await.ok().filter(|read| *read > 0)?;
            let is_answer = buffer[..read].ends_with(READY);
            if is_answer && !is_greeting && counters.take() {
                return None;
            }
            is_greeting &= !is_answer;
            to_client.write_all(&buffer[..read]).await.ok()?;
        }
    };
    tokio::select! {
        _ = asking => None,
        stopped = answering => stopped,
    }
}
