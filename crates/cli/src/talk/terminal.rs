//! The terminal as it was before.

use std::io::{IsTerminal, Write};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// What a terminal was like when the program began. It is that again when this goes, whatever happened in between.
pub(crate) struct Terminal(Option<Termios>);

impl Terminal {
    pub(crate) fn remember() -> Self {
        Self(tcgetattr(rustix::stdio::stdin()).ok())
    }

    /// Makes it what it was.
    pub(crate) fn restore(&self) {
        let Some(before) = &self.0 else { return };
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Drain, before);
        let mut out = std::io::stdout().lock();
        if out.is_terminal() {
            // The editor asks for pasted text to be marked; whoever comes next has not.
            let _ = out.write_all(b"\x1b[?2004l").and_then(|()| out.flush());
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.restore();
    }
}
