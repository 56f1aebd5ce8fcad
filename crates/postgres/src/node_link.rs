//! The direct way from one node to another: wakes and live events over whatever connects them.
//!
//! A process of another machine is woken directly if its node has an address, else through NOTIFY. Appends never wait for this:
//! the streams that are to be woken wait in a bounded map, and one task for each process sends them, a request at a time and at
//! most one each ten milliseconds. A wake is a hint, so every failure has the same answer: NOTIFY, and after that the sweep.
//!
//! | the other node | what happens |
//! | --- | --- |
//! | has no address | NOTIFY |
//! | does not answer within a second, refuses, or answers something else | NOTIFY; its address is left alone for a second, then two, at most ten. Until then NOTIFY at once |
//! | answers that it has no such process | NOTIFY |
//! | is slow | wakes for its processes are collected until it answers, those for other nodes don't wait |
//! | more wakes wait than fit | NOTIFY |

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use longhaul_journal::{Holder, Subscription};
use longhaul_protocol::StreamName;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_postgres::types::Type;

use crate::database::Database;
use crate::notification::{COALESCE_TIME, MAX_STREAMS, Notifier, channel_name};
use crate::rows::column;

/// How long an address counts before the table of nodes is asked again.
const ADDRESS_LIFETIME: Duration = Duration::from_secs(3);
/// How long another node may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// The streams that wait for one process. Further ones go through NOTIFY.
const MAX_WAITING_STREAMS: usize = 4_096;
/// The processes that streams wait for.
const MAX_WAITING_PROCESSES: usize = 1_024;
/// How long an address is left alone after a failure: the first time and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(10));

/// Reaches other nodes at their addresses. Its methods may take as long as they like: callers have a time limit.
#[async_trait]
pub trait NodeLink: fmt::Debug + Send + Sync {
    /// Wakes a process of the node at this address, once for each stream. Without a stream this only shows whether the node
    /// answers.
    async fn wake(&self, address: &str, holder: &Holder, streams: &[StreamName])
    -> Result<(), NodeLinkError>;

    /// Subscribes to a stream that a process of the node at this address holds.
    async fn subscribe(
        &self,
        address: &str,
        holder: &Holder,
        stream: &StreamName,
    ) -> Result<Subscription, NodeLinkError>;
}

/// Why another node did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeLinkError {
    /// The node answers, and can't do this now: it has no such process, or too many followers.
    Refused,
    /// There is no answer, or not one of a node of this cluster. The reason is for people.
    Unreachable(String),
}

impl fmt::Display for NodeLinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused => write!(f, "the node has no such process, or too many followers"),
            Self::Unreachable(reason) => write!(f, "{reason}"),
        }
    }
}

impl std::error::Error for NodeLinkError {}

/// The addresses of nodes, from the table of nodes.
pub(crate) struct NodeAddresses {
    given: Vec<(Holder, String)>,
    db: Weak<Database>,
    /// What the table said, and when.
    known: Mutex<HashMap<String, (Instant, Option<String>)>>,
}

impl NodeAddresses {
    pub(crate) fn new(given: Vec<(Holder, String)>, db: &Arc<Database>) -> Self {
        Self { given, db: Arc::downgrade(db), known: Mutex::default() }
    }

    /// The address of the node that a process belongs to. Called by the tasks that send wakes, at most once every ten
    /// milliseconds for a process, and when a follower connects; never by an append.
    pub(crate) async fn of(&self, holder: &Holder) -> Option<String> {
        if let Some((_, address)) = self.given.iter().find(|(known, _)| known == holder) {
            return Some(address.clone());
        }
        let process = serde_json::to_string(holder).ok()?;
        if let Some((at, address)) = lock(&self.known).get(&process)
            && at.elapsed() < ADDRESS_LIFETIME
        {
            return address.clone();
        }
        let sql = "SELECT node.address FROM longhaul.holder JOIN longhaul.node ON node.id = holder.node
                   WHERE holder.process = $1";
        let row = self.db.upgrade()?.read_row(sql, &[(&process, Type::TEXT)]).await.ok()?;
        let address: Option<String> = row.and_then(|row| column(&row, 0));
        let mut known = lock(&self.known);
        known.retain(|_, (at, _)| at.elapsed() < ADDRESS_LIFETIME);
        known.insert(process, (Instant::now(), address.clone()));
        address
    }
}

/// Wakes processes of other nodes, and subscribes to their streams.
pub(crate) struct NodeWakes {
    link: Arc<dyn NodeLink>,
    addresses: NodeAddresses,
    notifier: Arc<Notifier>,
    /// For each process that a task is sending wakes to, the streams that have come since.
    waiting: Mutex<HashMap<String, BTreeSet<StreamName>>>,
    backoff: AddressBackoff,
}

impl NodeWakes {
    pub(crate) fn new(link: Arc<dyn NodeLink>, addresses: NodeAddresses, notifier: Arc<Notifier>) -> Self {
        Self { link, addresses, notifier, waiting: Mutex::default(), backoff: AddressBackoff::default() }
    }

    /// Wakes the holder of a stream, without waiting for it.
    pub(crate) fn wake(self: &Arc<Self>, holder: &Holder, stream: &StreamName) {
        let process = channel_name(holder);
        let mut waiting = lock(&self.waiting);
        let has_room = waiting.len() < MAX_WAITING_PROCESSES;
        match waiting.get_mut(&process) {
            Some(streams) if streams.len() < MAX_WAITING_STREAMS => drop(streams.insert(stream.clone())),
            None if has_room => {
                waiting.insert(process.clone(), BTreeSet::from([stream.clone()]));
                tokio::spawn(Arc::clone(self).send_waiting(process, holder.clone()));
            }
            _ => self.notifier.wake(holder, stream),
        }
    }

    /// Returns when no wake waits to be sent.
    pub(crate) async fn flush(&self) {
        while !lock(&self.waiting).is_empty() {
            tokio::time::sleep(COALESCE_TIME / 5).await;
        }
    }

    /// Sends what waits for a process, until nothing does.
    async fn send_waiting(self: Arc<Self>, process: String, holder: Holder) {
        while let Some(streams) = self.take_waiting(&process) {
            let next = Instant::now() + COALESCE_TIME;
            for part in streams.chunks(MAX_STREAMS) {
                if !self.send(&holder, part).await {
                    part.iter().for_each(|stream| self.notifier.wake(&holder, stream));
                }
            }
            sleep_until(next).await;
        }
    }

    fn take_waiting(&self, process: &str) -> Option<Vec<StreamName>> {
        let mut waiting = lock(&self.waiting);
        let streams = waiting.get_mut(process).map(std::mem::take).filter(|streams| !streams.is_empty());
        if streams.is_none() {
            waiting.remove(process);
        }
        streams.map(|streams| streams.into_iter().collect())
    }

    /// Returns whether the node has passed the wakes on.
    async fn send(&self, holder: &Holder, streams: &[StreamName]) -> bool {
        let Some(address) = self.free_address(holder).await else { return false };
        self.answer(&address, self.link.wake(&address, holder, streams)).await.is_some()
    }

    /// Subscribes to a stream that a process of another node holds; `None` if that can't be done now.
    pub(crate) async fn subscribe(&self, holder: &Holder, stream: &StreamName) -> Option<Subscription> {
        let address = self.free_address(holder).await?;
        self.answer(&address, self.link.subscribe(&address, holder, stream)).await
    }

    /// The address of a process's node, unless it has just failed.
    async fn free_address(&self, holder: &Holder) -> Option<String> {
        self.addresses.of(holder).await.filter(|address| self.backoff.is_over(address))
    }

    async fn answer<T>(
        &self,
        address: &str,
        request: impl Future<Output = Result<T, NodeLinkError>>,
    ) -> Option<T> {
        match timeout(ANSWER_TIMEOUT, request).await {
            Ok(Ok(answer)) => {
                self.backoff.end(address);
                Some(answer)
            }
            Ok(Err(NodeLinkError::Refused)) => {
                self.backoff.end(address);
                None
            }
            Ok(Err(NodeLinkError::Unreachable(_))) | Err(_) => {
                self.backoff.extend(address);
                None
            }
        }
    }
}

/// The addresses that failed, each with its delay and the time until which it is left alone.
#[derive(Default)]
struct AddressBackoff(Mutex<HashMap<String, (Duration, Instant)>>);

impl AddressBackoff {
    fn is_over(&self, address: &str) -> bool {
        lock(&self.0).get(address).is_none_or(|(_, until)| *until <= Instant::now())
    }

    fn extend(&self, address: &str) {
        let mut failed = lock(&self.0);
        let now = Instant::now();
        let delay = match failed.get(address) {
            // Requests that failed together count once.
            Some((_, until)) if *until > now => return,
            Some((delay, _)) => (*delay * 2).min(BACKOFF.1),
            None => BACKOFF.0,
        };
        failed.insert(address.to_owned(), (delay, now + delay));
    }

    fn end(&self, address: &str) {
        lock(&self.0).remove(address);
    }
}

/// The values in these locks are complete at every moment, so a poisoned lock can be used.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
