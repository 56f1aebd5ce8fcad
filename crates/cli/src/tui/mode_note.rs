//! The line about a change of the permission mode. It stays above the prompt and is replaced while the user goes through the modes; the
//! transcript gets the last one.

use longhaul_protocol::PermissionMode;
use longhaul_transcript::{StyledLine, mode_change_text};

#[derive(Default)]
pub(super) struct ModeNote {
    /// The mode before the first change, and the present one.
    change: Option<(PermissionMode, PermissionMode)>,
}

impl ModeNote {
    pub(super) fn add(&mut self, from: PermissionMode, to: PermissionMode) {
        let first = self.change.map_or(from, |(first, _)| first);
        self.change = (first != to).then_some((first, to));
    }

    pub(super) fn line(&self) -> Option<StyledLine> {
        self.change.map(|(from, to)| StyledLine::dim(mode_change_text(from, to)))
    }

    /// The text for the transcript, once.
    pub(super) fn take(&mut self) -> Option<String> {
        self.change.take().map(|(from, to)| mode_change_text(from, to))
    }
}
