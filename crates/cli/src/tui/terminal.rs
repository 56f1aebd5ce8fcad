//! The modes and the width of the terminal.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::tui;

const DEFAULT_WIDTH: usize = 80;

/// The modes of the terminal when the program started. They are restored on drop.
pub(crate) struct Terminal(Option<Termios>);

impl Terminal {
    pub(crate) fn remember() -> Self {
        Self(tcgetattr(rustix::stdio::stdin()).ok())
    }

    /// Columns of the terminal.
    pub(crate) fn width() -> usize {
        let size = tcgetwinsize(rustix::stdio::stderr()).ok().filter(|size| size.ws_col > 0);
        size.map_or(DEFAULT_WIDTH, |size| usize::from(size.ws_col))
    }

    pub(crate) fn restore(&self) {
        tui::release_terminal();
        if let Some(before) = &self.0 {
            // Not after the output has drained: a stopped terminal may never take it.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.restore();
    }
}
