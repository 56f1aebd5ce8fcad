//! The signals that end a process that runs for long.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The number of the signal that Ctrl-C sends.
pub(crate) const SIGINT: u8 = 2;

/// The number of the signal that comes when a terminal is gone.
const SIGHUP: u8 = 1;

/// The signals that end or suspend.
pub(crate) struct ExitSignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    quit: Signal,
}

impl ExitSignals {
    /// From here on they are ours.
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// The number of the next one.
    pub(crate) async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 15,
            _ = self.interrupt.recv() => SIGINT,
            _ = self.hang_up.recv() => SIGHUP,
            _ = self.quit.recv() => 3,
        }
    }

    /// The number of the next one that means it, for whoever is on the way out already. When a terminal goes, its signal comes
    /// from the system, from the shell, and beside another one: nobody asks twice by that.
    pub(crate) async fn next_deliberate(&mut self) -> u8 {
        loop {
            let number = self.next().await;
            if number != SIGHUP {
                return number;
            }
        }
    }
}
