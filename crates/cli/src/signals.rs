//! The signals that end a process that runs for long.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The number of the signal that Ctrl-C sends.
pub(crate) const INTERRUPT: u8 = 2;

/// The signals that end or suspend.
pub(crate) struct Ends {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Ends {
    /// From here on they are ours.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The number of the next one.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 15,
            _ = self.interrupt.recv() => INTERRUPT,
            _ = self.hang_up.recv() => 1,
        }
    }
}
