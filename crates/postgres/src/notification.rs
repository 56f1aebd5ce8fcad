//! Wakes between machines: NOTIFY after the commit, many wakes in one.
//!
//! A process on the same machine is woken over its socket, one of a node with an address directly (`node_link`), any other one over
//! the channel `longhaul`. NOTIFY takes a lock at its commit, so an append never notifies: a task collects the wakes of ten
//! milliseconds and sends them in one statement. A wake is a hint. A pooler in transaction mode accepts LISTEN and delivers nothing,
//! so the listener sends itself a probe and reports whether it came back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use longhaul_journal::Holder;
use longhaul_journal::engine::WakeSocket;
use longhaul_protocol::{Hash, StreamName};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_postgres::types::Type;

use crate::connection::Connection;
use crate::database::Database;

/// How long wakes are collected before they are sent.
pub(crate) const COALESCE_TIME: Duration = Duration::from_millis(10);
/// Streams in one notification. A payload has at most 8,000 bytes, and the name of a stream about 40.
pub(crate) const MAX_STREAMS: usize = 100;
/// How often the listener checks that it hears anything.
const PROBE_INTERVAL: Duration = Duration::from_secs(10);
/// The wait before the listener connects again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// The stream name that a probe carries. No stream has it.
const PROBE: &str = "probe";

/// The name of a process on the channel.
pub(crate) fn channel_name(holder: &Holder) -> String {
    let Holder { host, boot, pid_namespace, pid, started, .. } = holder;
    let hash = Hash::of(format!("{host} {boot} {pid_namespace} {pid} {started}")).to_string();
    hash[..16].to_owned()
}

/// Sends wakes to processes on other machines.
pub(crate) struct Notifier {
    wakes: mpsc::UnboundedSender<(String, StreamName)>,
    /// How many wakes are not sent yet.
    unsent: Arc<watch::Sender<usize>>,
    task: JoinHandle<()>,
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Notifier {
    pub(crate) fn start(db: &Arc<Database>) -> Self {
        let (wakes, queue) = mpsc::unbounded_channel();
        let unsent = Arc::new(watch::Sender::new(0));
        let task = tokio::spawn(send_notifications(Arc::downgrade(db), queue, Arc::clone(&unsent)));
        Self { wakes, unsent, task }
    }

    /// Wakes the holder of a stream. It may be too late or lost: a wake is a hint.
    pub(crate) fn wake(&self, holder: &Holder, stream: &StreamName) {
        self.unsent.send_modify(|unsent| *unsent += 1);
        let _ = self.wakes.send((channel_name(holder), stream.clone()));
    }

    /// Returns when all wakes so far are sent. A command that ends right after an append waits for this.
    pub(crate) async fn flush(&self) {
        let _ = self.unsent.subscribe().wait_for(|unsent| *unsent == 0).await;
    }
}

async fn send_notifications(
    db: Weak<Database>,
    mut queue: mpsc::UnboundedReceiver<(String, StreamName)>,
    unsent: Arc<watch::Sender<usize>>,
) {
    while let Some(first) = queue.recv().await {
        tokio::time::sleep(COALESCE_TIME).await;
        let mut wakes: BTreeMap<String, BTreeSet<StreamName>> = BTreeMap::new();
        let (mut next, mut taken) = (Some(first), 0);
        while let Some((holder, stream)) = next {
            taken += 1;
            wakes.entry(holder).or_default().insert(stream);
            next = queue.try_recv().ok();
        }
        let Some(db) = db.upgrade() else { return };
        let payloads: Vec<String> = wakes
            .iter()
            .flat_map(|(holder, streams)| {
                let streams: Vec<&str> = streams.iter().map(StreamName::as_str).collect();
                let parts = streams.chunks(MAX_STREAMS).map(|part| format!("{holder} {}", part.join(" ")));
                parts.collect::<Vec<_>>()
            })
            .collect();
        let sql = "SELECT pg_notify('longhaul', payload) FROM unnest($1::text[]) AS payload";
        let _ = db.write_repeatably(sql, &[(&payloads, Type::TEXT_ARRAY)]).await;
        unsent.send_modify(|unsent| *unsent -= taken);
    }
}

/// Hears the wakes that other machines send to this process.
pub(crate) struct Listener {
    is_heard: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    pub(crate) fn start(db: &Arc<Database>, socket: &Arc<WakeSocket>, own: &Holder) -> Self {
        let own = channel_name(own);
        let is_heard = Arc::new(AtomicBool::new(false));
        let (db, socket, heard) = (Arc::downgrade(db), Arc::downgrade(socket), Arc::clone(&is_heard));
        let task = tokio::spawn(async move {
            while db.strong_count() > 0 {
                listen(&db, &socket, &own, &heard).await;
                heard.store(false, Ordering::Relaxed);
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
        });
        Self { is_heard, task }
    }

    /// Ends the connection, and opens none any more.
    pub(crate) fn stop(&self) {
        self.task.abort();
    }

    /// Whether the last probe came back.
    pub(crate) fn is_heard(&self) -> bool {
        self.is_heard.load(Ordering::Relaxed)
    }
}

/// Listens on one connection until it breaks, or a probe does not come back.
async fn listen(
    db: &Weak<Database>,
    socket: &Weak<WakeSocket>,
    own: &str,
    is_heard: &AtomicBool,
) -> Option<()> {
    let address = db.upgrade()?.address.clone();
    let (sender, mut heard) = mpsc::unbounded_channel();
    let connection = Connection::open_listening(&address, sender).await.ok()?;
    connection.run_script(&address, "LISTEN longhaul").await.ok()?;
    let probe = format!("{own} {PROBE}");
    let mut is_back = true;
    let mut interval = tokio::time::interval(PROBE_INTERVAL);
    loop {
        tokio::select! {
            payload = heard.recv() => {
                let payload = payload?;
                let Some((to, streams)) = payload.split_once(' ') else { continue };
                if to != own {
                    continue;
                }
                for stream in streams.split(' ') {
                    if stream == PROBE {
                        is_back = true;
                        is_heard.store(true, Ordering::Relaxed);
                    } else if let Ok(stream) = stream.parse() {
                        socket.upgrade()?.wake(&stream);
                    }
                }
            }
            _ = interval.tick() => {
                if !is_back {
                    return None;
                }
                is_back = false;
                let sql = "SELECT pg_notify('longhaul', $1)";
                // Over another connection: a pooler passes on what comes with an answer, and nothing else.
                db.upgrade()?.write_repeatably(sql, &[(&probe, Type::TEXT)]).await.ok()?;
            }
        }
    }
}
