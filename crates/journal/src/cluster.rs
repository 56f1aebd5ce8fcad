//! Several nodes that share one journal: who they are, which of them may run a session, and what there is to do.
//!
//! A node is a home with its processes. One of these hosts the node: it holds the lease [`StreamName::host_of`], sends
//! heartbeats, and looks for work. A session is bound to a node by a record `session_placed` in the stream `names`.
//!
//! | a crash after | is on record | then |
//! | --- | --- | --- |
//! | the lease of a session, before anything is appended | who held it, and that the session is due | another node takes it when the lease has expired, or at once if it sees that the process is gone |
//! | `session_placed`, before the session's first record | the node | that node runs it when it is back; the user may let others (`portable`) |
//! | `session_placed` without a node | that any node may run it | the next node that looks takes it |
//! | a heartbeat, before the next one | when the node was last seen | the others see it as dead when `dead_after` has passed; it stays bound to its sessions |
//! | the order to drain | that the node drains | it learns it from its next heartbeat, after a restart as well |
//! | a node was given up | that it is gone | the next worker of a session with its tasks records them as lost, once |
//!
//! Never: two nodes that run one session, since every append names the token of its lease; a session that is due and
//! that no node finds, since the mark stays until a node has found the session at rest and nothing has changed since.

use async_trait::async_trait;
use longhaul_protocol::{NamesRecord, SessionId, SessionPlaced, StreamName};
use serde::Serialize;

use crate::{Append, Error, Journal, Result, SessionEntry};

/// The nodes that share a journal, seen from one of them.
#[async_trait]
pub trait Cluster: Send + Sync {
    /// The id of this node.
    fn node(&self) -> &str;

    /// Enters this node into the list of nodes. Fails with [`Error::NodeInUse`] if another home uses its id; this takes as long
    /// as the other one may be silent.
    async fn join(&self) -> Result<()>;

    /// Says that this node is there. Sent every few seconds by the process that hosts it.
    async fn heartbeat(&self) -> Result<NodeHealth>;

    /// Says that this process hosts the node no more.
    async fn leave(&self) -> Result<()>;

    /// All nodes, by id.
    async fn nodes(&self) -> Result<Vec<NodeReport>>;

    /// Makes a node hand its sessions over and take no new ones, or take them again.
    async fn set_draining(&self, node: &str, draining: bool) -> Result<()>;

    /// Gives a node up: its tasks count as lost. Fails with [`Error::NodeIsLive`] if it is there.
    async fn give_up(&self, node: &str) -> Result<()>;

    /// Whether a node was given up, or is not known.
    async fn is_gone(&self, node: &str) -> Result<bool>;

    /// Whether this node may run a session now.
    async fn run_permission(&self, session: SessionId) -> Result<RunPermission>;

    /// The node that a session is bound to. `Some(None)`: the user lets any node run it. `None`: it was never placed.
    async fn placement(&self, session: SessionId) -> Result<Option<Option<String>>>;

    /// Sessions that this node may run, that no living process holds, and that may have something to do.
    async fn due_sessions(&self) -> Result<Vec<DueSession>>;

    /// Marks sessions as being at rest, unless something has happened to them since they were listed.
    async fn settle(&self, sessions: &[DueSession]) -> Result<()>;
}

/// A session that may have something to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueSession {
    /// The session.
    pub entry: SessionEntry,
    /// Changes whenever something happens to the session.
    pub mark: i64,
}

/// What a node learns from its heartbeat.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NodeHealth {
    /// The node should hand its sessions over.
    pub is_draining: bool,
}

/// Whether a node may run a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunPermission {
    /// It may. `is_placed` says whether it was decided where the session belongs.
    Granted {
        /// A record says which node the session is bound to, or that it is bound to none.
        is_placed: bool,
    },
    /// Another node runs it: [`Error::OtherNode`] or [`Error::Draining`].
    Refused(Error),
}

/// What a node is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// It runs sessions.
    Live,
    /// It hands its sessions over.
    Draining,
    /// It was shut down.
    Stopped,
    /// It was not heard of for too long.
    Dead,
    /// It was given up.
    Gone,
}

/// A node as the others see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodeReport {
    /// Its id.
    pub id: String,
    /// What it is doing.
    pub state: NodeState,
    /// How long ago it was last seen.
    pub seen_ago_ms: u64,
    /// How other nodes reach it.
    pub address: Option<String>,
    /// The machine.
    pub host: String,
    /// The version of its program.
    pub version: String,
    /// Sessions that its processes run now.
    pub running: u64,
    /// Sessions that are bound to it.
    pub bound: u64,
    /// Whether the database delivers notifications to it. Otherwise it looks for work each second.
    pub hears_wakes: bool,
    /// How far its clock is ahead of the database's, in milliseconds.
    pub clock_ahead_ms: i64,
    /// Whether it is the node of this process.
    pub is_this: bool,
}

impl NodeReport {
    /// When it was last seen, as a part of a sentence.
    pub fn last_seen(&self) -> String {
        crate::error::last_seen(Some(self.seen_ago_ms))
    }
}

/// The ids of nodes, for messages.
pub fn node_names(nodes: &[NodeReport]) -> Vec<String> {
    nodes.iter().map(|node| node.id.clone()).collect()
}

/// Binds a session to a node, unless it was placed before, and returns where it is now.
pub async fn place_session(
    journal: &dyn Journal,
    cluster: &dyn Cluster,
    id: SessionId,
    node: &str,
) -> Result<Option<String>> {
    loop {
        let head = journal.head(&StreamName::names()).await?.seq;
        if let Some(placed) = cluster.placement(id).await? {
            return Ok(placed);
        }
        if append_placed(journal, head, id, Some(node)).await? {
            return Ok(Some(node.to_owned()));
        }
    }
}

/// Lets any node run a session. Returns false if any node may already.
pub async fn make_portable(journal: &dyn Journal, cluster: &dyn Cluster, id: SessionId) -> Result<bool> {
    loop {
        let head = journal.head(&StreamName::names()).await?.seq;
        if cluster.placement(id).await? == Some(None) {
            return Ok(false);
        }
        if append_placed(journal, head, id, None).await? {
            return Ok(true);
        }
    }
}

/// False if another process has moved the head of `names`.
async fn append_placed(journal: &dyn Journal, head: u64, id: SessionId, node: Option<&str>) -> Result<bool> {
    let record = NamesRecord::Placed(SessionPlaced { id, node: node.map(str::to_owned) });
    let append = Append::to(&StreamName::names()).expecting(head).record(record.encode());
    match journal.append(append).await {
        Ok(_) => Ok(true),
        Err(Error::Conflict { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
