//! Waiting for news of a subagent, in whichever process it runs.

use std::sync::Arc;
use std::time::Duration;

use longhaul_protocol::{EventKind, Seq, SessionId, StreamName};

use crate::client::watch::{Watched, Watcher};
use crate::runtime::RuntimeShared;
use crate::runtime::slot::SessionSlot;

/// How often to check a subagent that this process does not run.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Watches a subagent, and keeps it running.
pub(crate) struct ChildWatch {
    runtime: Arc<RuntimeShared>,
    id: SessionId,
    /// `None` until its session has its first record.
    watched: Option<(Arc<SessionSlot>, Watcher)>,
    head: Seq,
}

impl ChildWatch {
    /// Watches from now on. Read the subagent's state after this call.
    pub(crate) async fn new(runtime: &Arc<RuntimeShared>, id: SessionId) -> Self {
        let mut watch = Self { runtime: runtime.clone(), id, watched: None, head: 0 };
        watch.find().await;
        watch
    }

    async fn find(&mut self) {
        if self.watched.is_none()
            && let Ok(Some(entry)) = self.runtime.journal.session_with_id(self.id).await
            // A worker that is woken earlier would hold the lease that is needed to write the first record, which names the parent.
            && entry.head.seq > 0
        {
            let slot = self.runtime.session_slot(&entry.key, Some(self.id));
            let watcher = slot.hub.watch(slot.clone(), self.runtime.journal.clone());
            // This watcher can't answer questions: only a client of the parent can.
            watcher.set_unattended();
            self.head = entry.head.seq;
            self.watched = Some((slot, watcher));
        }
    }

    /// Wakes the subagent in the process that runs it, or here.
    pub(crate) async fn wake(&self) {
        let Some((slot, _)) = &self.watched else { return };
        if !slot.has_lease() && self.runtime.is_held_elsewhere(self.id).await {
            let _ = self.runtime.journal.wake_holder(&StreamName::session(self.id)).await;
        } else if !self.runtime.worker_backoff.is_backing_off(self.id) {
            slot.wake(&self.runtime);
        }
    }

    /// Returns when the subagent may have ended, asked something or got an answer. If no process runs it, this one does.
    pub(crate) async fn wait_for_news(&mut self) {
        self.find().await;
        loop {
            let is_news = match &mut self.watched {
                Some((_, watcher)) => tokio::time::timeout(CHECK_INTERVAL, next_news(watcher)).await.is_ok(),
                None => {
                    tokio::time::sleep(CHECK_INTERVAL).await;
                    false
                }
            };
            if is_news || self.watched.is_none() {
                return;
            }
            let Some((slot, _)) = &self.watched else { return };
            if slot.has_lease() {
                continue;
            }
            self.wake().await;
            let head = self.runtime.journal.head(&StreamName::session(self.id)).await;
            let head = head.map_or(self.head, |head| head.seq);
            if std::mem::replace(&mut self.head, head) != head {
                return;
            }
        }
    }
}

/// Returns at the next event that matters to the parent: an end, a question or an answer.
async fn next_news(watcher: &mut Watcher) {
    loop {
        match watcher.next().await {
            Some(Watched::Event(event)) => {
                let is_news = matches!(
                    event.kind,
                    EventKind::TurnEnded { .. } | EventKind::Question { .. } | EventKind::Answered { .. }
                );
                if is_news {
                    return;
                }
            }
            Some(Watched::Missed { .. }) => return,
            // The runtime ends, and the call or the monitor that waits ends with it.
            None => std::future::pending().await,
        }
    }
}
