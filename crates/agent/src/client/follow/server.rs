//! Sends the events of this process's sessions to followers in other processes.

use std::sync::{Arc, Weak};

use longhaul_journal::{Subscriber, Subscribers};
use longhaul_protocol::{Seq, SessionId};
use tokio::sync::Semaphore;

use crate::client::follow::wire;
use crate::client::watch::{NextItem, Watched, Watcher};
use crate::runtime::RuntimeShared;
use crate::runtime::slot::SessionSlot;

/// The most followers to serve at once, of this machine and of other nodes. Further connections are closed, and those followers poll
/// the records.
const MAX_SOCKET_FOLLOWERS: usize = 1_024;
/// Lines are collected up to this many bytes and then sent.
const SEND_BATCH_BYTES: usize = 64 << 10;

/// Serves followers until the runtime ends.
pub(crate) async fn serve_followers(mut subscribers: Subscribers, runtime: Weak<RuntimeShared>) {
    let room = Arc::new(Semaphore::new(MAX_SOCKET_FOLLOWERS));
    while let Some(subscriber) = subscribers.next().await {
        let Some(runtime) = runtime.upgrade() else { return };
        let Ok(permit) = room.clone().try_acquire_owned() else { continue };
        tokio::spawn(async move {
            let slot = match subscriber.stream().session_id() {
                Some(id) => find_session(&runtime, id).await,
                None => None,
            };
            if let Some(slot) = slot {
                // A follower must not keep the runtime alive.
                drop(runtime);
                let (watcher, head) = slot.hub.watch_with_heads(slot.clone());
                send_events(subscriber, &watcher, head).await;
            }
            drop(permit);
        });
    }
}

/// The session with this id, if this process runs it or would run it.
pub(super) async fn find_session(runtime: &Arc<RuntimeShared>, id: SessionId) -> Option<Arc<SessionSlot>> {
    match runtime.session_in_memory(id) {
        Some(slot) if slot.has_worker() || runtime.is_hosting() => Some(slot),
        None if runtime.is_hosting() => {
            let entry = runtime.journal.session_with_id(id).await.ok()??;
            Some(runtime.session_slot(&entry.key, Some(id)))
        }
        _ => None,
    }
}

/// Sends every event until one side ends. A subscriber that does not read delays nothing else, because its queue and
/// its time to read are bounded.
async fn send_events(mut subscriber: Subscriber, watcher: &Watcher, head: Seq) {
    let mut lines = wire::encode_head(head) + "\n";
    loop {
        if !subscriber.tell(&lines).await {
            return;
        }
        lines.clear();
        while lines.len() < SEND_BATCH_BYTES {
            let line = match watcher.take() {
                NextItem::Event(event) => wire::encode_watched(&Watched::Event(event)),
                NextItem::Missed(missed) => wire::encode_watched(&missed.to_watched()),
                NextItem::Head(head) => Some(wire::encode_head(head)),
                NextItem::Nothing if lines.is_empty() => {
                    tokio::select! {
                        () = watcher.wait() => continue,
                        () = subscriber.hung_up() => return,
                    }
                }
                NextItem::End if lines.is_empty() => return,
                NextItem::Nothing | NextItem::End => break,
            };
            if let Some(line) = line {
                lines = lines + &line + "\n";
            }
        }
    }
}
