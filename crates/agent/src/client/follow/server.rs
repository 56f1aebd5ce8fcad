//! Telling other processes what happens in the sessions here.

use std::sync::{Arc, Weak};

use longhaul_journal::{Subscriber, Subscribers};
use longhaul_protocol::Seq;
use tokio::sync::Semaphore;

use crate::client::follow::wire;
use crate::client::watch::{Next, Watched, Watcher};
use crate::runtime::Inner;
use crate::runtime::slot::Shared;

/// How many callers are told at once; the next one is hung up on, and reads the records.
const CALLERS: usize = 64;
/// How much is said in one go.
const MOUTHFUL: usize = 64 << 10;

/// Tells whoever calls, until the runtime ends.
pub(crate) async fn tell_callers(mut callers: Subscribers, runtime: Weak<Inner>) {
    let room = Arc::new(Semaphore::new(CALLERS));
    while let Some(caller) = callers.next().await {
        let Some(runtime) = runtime.upgrade() else { return };
        let Ok(place) = room.clone().try_acquire_owned() else { continue };
        tokio::spawn(async move {
            if let Some(shared) = here(&runtime, &caller).await {
                // What is told must not keep the runtime.
                drop(runtime);
                let (watcher, head) = shared.hub.watch_with_heads(shared.clone());
                tell(caller, &watcher, head).await;
            }
            drop(place);
        });
    }
}

/// The session that somebody calls for, if it is run here, or would be.
async fn here(runtime: &Arc<Inner>, caller: &Subscriber) -> Option<Arc<Shared>> {
    let id = caller.stream().session_id()?;
    match runtime.session_in_memory(id) {
        Some(shared) if shared.has_worker() || runtime.is_hosting() => Some(shared),
        None if runtime.is_hosting() => {
            let entry = runtime.journal.session_with_id(id).await.ok()??;
            Some(runtime.shared(&entry.key, Some(id)))
        }
        _ => None,
    }
}

/// Tells everything until one side has gone. A caller that doesn't read holds up nobody: its queue is bounded, and so is the time
/// that it is given.
async fn tell(mut caller: Subscriber, watcher: &Watcher, head: Seq) {
    let mut lines = wire::head(head) + "\n";
    loop {
        if !caller.tell(&lines).await {
            return;
        }
        lines.clear();
        while lines.len() < MOUTHFUL {
            let line = match watcher.take() {
                Next::Event(event) => wire::watched(&Watched::Event(event)),
                Next::Missed(missed) => wire::watched(&missed.told()),
                Next::Head(head) => Some(wire::head(head)),
                Next::Nothing if lines.is_empty() => {
                    tokio::select! {
                        () = watcher.came() => continue,
                        () = caller.hung_up() => return,
                    }
                }
                Next::Over if lines.is_empty() => return,
                Next::Nothing | Next::Over => break,
            };
            if let Some(line) = line {
                lines = lines + &line + "\n";
            }
        }
    }
}
