//! Wake signals from other processes: an inbox or the list of schedules has something new.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use longhaul_journal::WakeSignal;
use longhaul_protocol::{SessionId, StreamName};

use super::{RuntimeShared, host, lock};
use crate::Result;
use crate::client::follow::serve_followers;

impl RuntimeShared {
    /// Passes wake signals on to their sessions, and serves followers in other processes.
    pub(super) async fn listen(self: &Arc<Self>) -> Result<()> {
        let mut signals = self.journal.wake_signals().await?;
        let inner = Arc::downgrade(self);
        let listening = tokio::spawn(async move {
            loop {
                let signal = signals.next().await;
                let Some(inner) = inner.upgrade() else { return };
                match signal {
                    WakeSignal::Stream(stream) if stream == StreamName::schedules() => {
                        inner.schedules.catalog_changed();
                    }
                    WakeSignal::Stream(stream) => inner.wake_session(stream.session_id()),
                    WakeSignal::Lagged => {
                        inner.wake_all();
                        inner.schedules.catalog_changed();
                    }
                    WakeSignal::Closed => return,
                }
            }
        });
        let telling = tokio::spawn(serve_followers(self.journal.subscribers().await?, Arc::downgrade(self)));
        *lock(&self.listening) = [listening, telling].into();
        Ok(())
    }

    fn wake_session(self: &Arc<Self>, id: Option<SessionId>) {
        let Some(id) = id else { return };
        match self.session_in_memory(id) {
            Some(slot) => slot.wake(self),
            None if self.hosting.load(Ordering::SeqCst) => {
                self.spawn(host::wake_stored_session(self.clone(), id));
            }
            None => {}
        }
    }

    fn wake_all(self: &Arc<Self>) {
        for slot in self.all_sessions() {
            slot.wake(self);
        }
    }
}
