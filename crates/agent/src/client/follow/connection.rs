//! The lines of the process that holds a session: over its socket, or directly if that is this process.

use std::sync::{Arc, Weak};
use std::time::Duration;

use longhaul_journal::{Holder, Result, Subscription};
use longhaul_protocol::{Seq, SessionId, StreamName};
use tokio::time::Instant;

use crate::client::follow::FollowSources;
use crate::client::follow::reader::{POLL_INTERVAL, UNANNOUNCED_POLL_INTERVAL};
use crate::client::follow::server::find_session;
use crate::client::follow::wire::Line;
use crate::client::watch::{EventHub, NextItem, Watcher};
use crate::runtime::slot::SessionSlot;

/// An open connection to the process that holds the session.
pub(super) struct HolderConnection {
    pub(super) lines: LineSource,
    holder: Holder,
    /// The newest record that the holder announced; `None` before its first line.
    pub(super) announced: Option<Seq>,
    since: Instant,
}

/// Where the lines come from.
pub(super) enum LineSource {
    Socket(Subscription),
    /// This process holds the session. The watcher keeps the hub in memory.
    Here {
        watcher: Box<Watcher>,
        hub: Weak<EventHub>,
        first: Option<Seq>,
    },
}

impl HolderConnection {
    /// Connects to a holder. `None` if it can't be reached.
    pub(super) async fn open(sources: &FollowSources, holder: Holder, id: SessionId) -> Result<Option<Self>> {
        let lines = match slot_here(sources, &holder, id).await {
            Some(slot) => {
                let (watcher, head) = slot.hub.watch_with_heads(slot.clone());
                if sources.is_unattended {
                    watcher.set_unattended();
                }
                Some(LineSource::Here {
                    watcher: Box::new(watcher),
                    hub: Arc::downgrade(&slot.hub),
                    first: Some(head),
                })
            }
            None => {
                let subscription = sources.journal.subscribe(&holder, &StreamName::session(id)).await?;
                subscription.map(LineSource::Socket)
            }
        };
        Ok(lines.map(|lines| Self { lines, holder, announced: None, since: Instant::now() }))
    }

    /// Whether the lines still come from where the session is.
    pub(super) fn is_current(&self, holder: &Holder, sources: &FollowSources, id: SessionId) -> bool {
        let is_same_hub = match &self.lines {
            LineSource::Socket(_) => true,
            // A session that was deleted and imported again may have another hub.
            LineSource::Here { hub, .. } => {
                let runtime = sources.runtime.as_ref().and_then(Weak::upgrade);
                let now = runtime.and_then(|runtime| runtime.session_in_memory(id));
                now.is_none_or(|now| std::ptr::eq(hub.as_ptr(), Arc::as_ptr(&now.hub)))
            }
        };
        self.holder == *holder && is_same_hub
    }

    /// How long to wait for a line before the next poll. A holder gets a full interval for its first line. Otherwise
    /// records that the reader polls would overtake the holder's deltas.
    pub(super) fn wait_limit(&self) -> Duration {
        let is_silent = self.announced.is_none() && self.age() >= POLL_INTERVAL;
        if is_silent { UNANNOUNCED_POLL_INTERVAL } else { POLL_INTERVAL }
    }

    /// The time since the connection was opened.
    pub(super) fn age(&self) -> Duration {
        self.since.elapsed()
    }
}

/// The slot of the session, if this process holds it or would take it.
async fn slot_here(sources: &FollowSources, holder: &Holder, id: SessionId) -> Option<Arc<SessionSlot>> {
    if holder.is_another() {
        return None;
    }
    let runtime = sources.runtime.as_ref()?.upgrade()?;
    find_session(&runtime, id).await
}

impl LineSource {
    /// The next line; `None` when the holder has disconnected. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Line> {
        match self {
            Self::Socket(subscription) => subscription.next().await.map(|line| Line::parse(&line)),
            Self::Here { watcher, first, .. } => {
                if let Some(head) = first.take() {
                    return Some(Line::Head(head));
                }
                loop {
                    match watcher.take() {
                        NextItem::Event(event) => return Some(Line::Event(Box::new(event))),
                        NextItem::Missed(_) => return Some(Line::Missed),
                        NextItem::Head(head) => return Some(Line::Head(head)),
                        NextItem::End => return None,
                        NextItem::Nothing => watcher.wait().await,
                    }
                }
            }
        }
    }
}
