//! This process as a part of a node, where several nodes share the journal: heartbeats, draining, and which sessions may run here.
//!
//! On a journal of one machine, all of this does nothing.

use std::sync::Arc;
use std::time::Duration;

use longhaul_journal::{Error as JournalError, Lease, NodeReport, RunPermission, place_session};
use longhaul_protocol::{SessionId, StreamName, TaskStarted};
use tokio::time::MissedTickBehavior;

use super::{Runtime, RuntimeShared};
use crate::housekeeping::backoff::RetryDelay;
use crate::session::state::State;
use crate::subagents::LOCAL_TARGET;
use crate::worker::{WorkerResult, WorkerStop};
use crate::{Error, Result};

/// How often the host of a node sends a heartbeat.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(3);
/// At least this many heartbeats fit into the time that a node may be silent.
const MIN_HEARTBEATS: u32 = 3;
/// The back-off while a lease can't be confirmed.
const CONFIRM_DELAY: RetryDelay = RetryDelay::new(Duration::from_millis(100), Duration::from_secs(1));

impl RuntimeShared {
    /// The stream whose lease the process holds that runs this machine's sessions.
    pub(crate) fn own_host_stream(&self) -> StreamName {
        let node = self.journal.cluster().map(|cluster| StreamName::host_of(cluster.node()));
        node.and_then(std::result::Result::ok).unwrap_or_else(StreamName::host)
    }

    /// Whether this node hands its sessions over.
    pub(crate) fn is_draining(&self) -> bool {
        *self.draining.borrow()
    }

    /// Refuses to run a session that another node should run.
    pub(crate) async fn check_run_permission(&self, id: SessionId) -> WorkerResult<()> {
        let Some(cluster) = self.journal.cluster() else { return Ok(()) };
        match cluster.run_permission(id).await? {
            RunPermission::Granted { .. } => Ok(()),
            RunPermission::Refused(error) => Err(WorkerStop::HeldElsewhere(error)),
        }
    }

    /// Binds a session to this node before it uses its work folder, unless it was placed before. Called under the session's lease. Returns
    /// whether the session is bound to this node.
    pub(crate) async fn bind_to_node(&self, id: SessionId, state: &State) -> WorkerResult<bool> {
        let Some(cluster) = self.journal.cluster() else { return Ok(true) };
        // A session that has not begun gets a folder with its first record.
        let has_folder = state.created.as_ref().is_none_or(|created| created.work_dir.is_some());
        let placed = match cluster.placement(id).await? {
            None if has_folder => place_session(&*self.journal, cluster, id, cluster.node()).await?,
            placed => placed.flatten(),
        };
        match placed {
            Some(node) if node == cluster.node() => Ok(true),
            None => Ok(false),
            // Another node was faster.
            Some(node) => {
                let stream = StreamName::session(id);
                let elsewhere = JournalError::OtherNode { stream, node, is_live: true, seen_ago_ms: Some(0) };
                Err(WorkerStop::HeldElsewhere(elsewhere))
            }
        }
    }

    /// Returns when it is certain that only this process runs the session of the lease. Never returns if another process runs it: then the
    /// worker's next append or renewal fails, and the worker drops this future.
    pub(crate) async fn confirm_lease(&self, lease: &Lease) {
        let mut delay = CONFIRM_DELAY;
        loop {
            match self.journal.confirm_lease(lease).await {
                Ok(()) => return,
                Err(error) if error.may_pass() => tokio::time::sleep(delay.next()).await,
                Err(_) => std::future::pending().await,
            }
        }
    }

    /// Whether this is the id of a node other than this one.
    pub(crate) fn is_other_node(&self, node: &str) -> bool {
        self.journal.cluster().is_some_and(|cluster| cluster.node() != node)
    }

    /// Whether a node was given up.
    pub(crate) async fn is_node_gone(&self, node: &str) -> bool {
        match self.journal.cluster() {
            Some(cluster) => cluster.is_gone(node).await.unwrap_or(false),
            None => false,
        }
    }

    /// The start of a task, with the node whose keeper has the command.
    pub(crate) fn with_node(&self, task: TaskStarted) -> TaskStarted {
        match self.journal.cluster() {
            Some(cluster) if task.session.is_none() && task.target == LOCAL_TARGET => {
                TaskStarted { target: cluster.node().to_owned(), ..task }
            }
            _ => task,
        }
    }

    /// Enters this node into the list of nodes, and keeps it there until the runtime ends.
    pub(super) async fn join_cluster(self: &Arc<Self>) -> Result<()> {
        let Some(cluster) = self.journal.cluster() else { return Ok(()) };
        cluster.join().await?;
        if !self.spawn(send_heartbeats(self.clone())) {
            return Err(Error::Suspended);
        }
        Ok(())
    }
}

/// How often a node says that it is there, if it may be silent for so long.
fn heartbeat_interval(dead_after: Duration) -> Duration {
    HEARTBEAT_INTERVAL.min(dead_after / MIN_HEARTBEATS)
}

async fn send_heartbeats(runtime: Arc<RuntimeShared>) {
    let Some(cluster) = runtime.journal.cluster() else { return };
    let mut suspension = runtime.suspension();
    let dead_after = runtime.config.settings.node.dead_after();
    let mut ticks = tokio::time::interval(heartbeat_interval(dead_after));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut was_in_use = false;
    loop {
        tokio::select! {
            _ = suspension.wait_for(|suspended| *suspended) => break,
            _ = ticks.tick() => {}
        }
        match cluster.heartbeat().await {
            Ok(health) => {
                was_in_use = false;
                runtime.draining.send_if_modified(|draining| {
                    std::mem::replace(draining, health.is_draining) != health.is_draining
                });
            }
            Err(error @ JournalError::NodeInUse { .. }) if !was_in_use => {
                was_in_use = true;
                runtime.warn("", "node_in_use", &error.to_string());
            }
            // The database can't be reached. The other nodes notice if this one stays silent for too long.
            Err(_) => {}
        }
    }
    // Workers that are still ending keep their leases. From now on, other nodes are woken instead of this one.
    let _ = cluster.leave().await;
}

impl Runtime {
    /// The nodes that share the journal. `None` if one machine has it alone.
    pub async fn nodes(&self) -> Result<Option<Vec<NodeReport>>> {
        match self.0.journal.cluster() {
            Some(cluster) => Ok(Some(cluster.nodes().await?)),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::heartbeat_interval;

    #[test]
    fn a_node_that_may_be_silent_for_a_short_time_is_heard_of_more_often() {
        let every = |seconds| heartbeat_interval(Duration::from_secs(seconds)).as_secs();

        assert_eq!([every(3), every(6), every(10), every(60)], [1, 2, 3, 3]);
    }
}
