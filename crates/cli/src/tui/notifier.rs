//! Tells a user who looks elsewhere that a turn has ended or a question waits: by a bell, or by a notification of the terminal.

use std::time::{Duration, Instant};

use longhaul_agent::config::Notify;
use longhaul_protocol::EventKind;

/// If the terminal does not say whether it is in focus, only the end of a turn that took this long is worth a signal.
const LONG_TURN: Duration = Duration::from_secs(10);
const BELL: &str = "\x07";
/// Terminals that show OSC 9 as a notification, by `TERM_PROGRAM`.
const OSC9_TERMINALS: [&str; 4] = ["iTerm.app", "WezTerm", "ghostty", "kitty"];

/// What the terminal has reported of its focus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Focus {
    Unknown,
    Here,
    Elsewhere,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Bell,
    Osc9,
    Off,
}

pub(crate) struct Notifier {
    signal: Signal,
    focus: Focus,
    turn_began: Option<Instant>,
}

impl Notifier {
    pub(crate) fn new(notify: Notify) -> Self {
        Self::in_terminal(notify, &std::env::var("TERM_PROGRAM").unwrap_or_default())
    }

    fn in_terminal(notify: Notify, program: &str) -> Self {
        let signal = match notify {
            Notify::Auto if OSC9_TERMINALS.contains(&program) => Signal::Osc9,
            Notify::Auto | Notify::Bell => Signal::Bell,
            Notify::Osc9 => Signal::Osc9,
            Notify::Off => Signal::Off,
        };
        Self { signal, focus: Focus::Unknown, turn_began: None }
    }

    /// The terminal has gained or lost the focus.
    pub(super) fn set_focused(&mut self, is_focused: bool) {
        self.focus = if is_focused { Focus::Here } else { Focus::Elsewhere };
    }

    /// The bytes that tell the user of an event, if it should be told.
    pub(super) fn signal_for(&mut self, kind: &EventKind, now: Instant) -> Option<&'static str> {
        let osc9 = match kind {
            EventKind::TurnStarted { .. } => {
                self.turn_began = Some(now);
                return None;
            }
            EventKind::TurnEnded { .. } => "\x1b]9;Longhaul is done\x07",
            EventKind::Question { .. } => "\x1b]9;Longhaul has a question\x07",
            _ => return None,
        };
        let was_long = self.turn_began.is_some_and(|began| now.saturating_duration_since(began) > LONG_TURN);
        if let EventKind::TurnEnded { .. } = kind {
            self.turn_began = None;
        }
        match (self.focus, self.signal) {
            (Focus::Here, _) | (_, Signal::Off) => None,
            (Focus::Unknown, _) if !was_long => None,
            (_, Signal::Bell) => Some(BELL),
            (_, Signal::Osc9) => Some(osc9),
        }
    }
}

#[cfg(test)]
#[path = "notifier_tests.rs"]
mod tests;
