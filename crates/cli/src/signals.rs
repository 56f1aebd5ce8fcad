//! The signals that end or suspend a process. SIGTERM during a turn suspends it: the loop that waits for signals returns, and
//! `Runtime::shutdown` leaves the turn open.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::tui::editor;

/// The number of the signal that Ctrl-C sends.
pub(crate) const SIGINT: u8 = 2;
/// The number of the signal that Ctrl-\ sends.
const SIGQUIT: u8 = 3;
/// The number of the signal that comes when the terminal is gone.
const SIGHUP: u8 = 1;

/// SIGTERM, SIGINT, SIGHUP and SIGQUIT. Once it exists, they no longer end the process by themselves.
pub(crate) struct ExitSignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    quit: Signal,
}

impl ExitSignals {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// Waits for a signal and returns its number. Of several at once, SIGHUP comes last: after it another one would count as the
    /// second signal, which ends the process at once.
    pub(crate) async fn next(&mut self) -> u8 {
        loop {
            let number = tokio::select! {
                biased;
                _ = self.terminate.recv() => 15,
                _ = self.interrupt.recv() => SIGINT,
                _ = self.quit.recv() => SIGQUIT,
                _ = self.hang_up.recv() => SIGHUP,
            };
            // Keys in the editor, whose terminal sends them to this process, too.
            if !(matches!(number, SIGINT | SIGQUIT) && editor::is_running()) {
                return number;
            }
        }
    }

    /// Waits for a signal that asks a process to hurry which is already on its way out. SIGHUP is not one: when a terminal goes, both the
    /// system and the shell send it.
    pub(crate) async fn next_deliberate(&mut self) -> u8 {
        loop {
            let number = self.next().await;
            if number != SIGHUP {
                return number;
            }
        }
    }
}
