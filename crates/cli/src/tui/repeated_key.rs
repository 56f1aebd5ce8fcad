//! Keys that act only when they are pressed twice: Ctrl-C leaves, Esc goes back to an earlier message.

use std::time::{Duration, Instant};

/// How soon the second press has to come.
const REPEAT_WINDOW: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepeatedKey {
    Interrupt,
    Escape,
}

/// The first press, as long as a second one counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FirstPress(Option<(RepeatedKey, Instant)>);

impl FirstPress {
    /// Records a press. True if it is the second one.
    pub(super) fn press(&mut self, key: RepeatedKey, now: Instant) -> bool {
        let is_second = self.pending(now) == Some(key);
        self.0 = (!is_second).then_some((key, now));
        is_second
    }

    /// The key whose second press still counts.
    fn pending(&self, now: Instant) -> Option<RepeatedKey> {
        let (key, pressed_at) = self.0?;
        (now.saturating_duration_since(pressed_at) < REPEAT_WINDOW).then_some(key)
    }

    pub(super) fn is_pending(&self, now: Instant) -> bool {
        self.pending(now).is_some()
    }

    /// What the second press would do.
    pub(super) fn hint(&self, now: Instant) -> Option<&'static str> {
        self.pending(now).map(|key| match key {
            RepeatedKey::Interrupt => "Ctrl-C again to leave",
            RepeatedKey::Escape => "Esc again to go back to an earlier message",
        })
    }
}

#[cfg(test)]
#[path = "repeated_key_tests.rs"]
mod tests;
