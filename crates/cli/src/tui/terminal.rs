//! The terminal as it was before.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

use crate::tui;

const DEFAULT_WIDTH: usize = 80;

/// What a terminal was like when the program began. It is that again when this goes, whatever happened in between.
pub(crate) struct Terminal(Option<Termios>);

impl Terminal {
    pub(crate) fn remember() -> Self {
        Self(tcgetattr(rustix::stdio::stdin()).ok())
    }

    /// How many columns it has; the usual number, where it does not say.
    pub(crate) fn width() -> usize {
        let size = tcgetwinsize(rustix::stdio::stderr()).ok().filter(|size| size.ws_col > 0);
        size.map_or(DEFAULT_WIDTH, |size| usize::from(size.ws_col))
    }

    /// Makes it what it was.
    pub(crate) fn restore(&self) {
        tui::let_go();
        if let Some(before) = &self.0 {
            // Not when everything is written: a terminal that is held may never take it.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.restore();
    }
}
