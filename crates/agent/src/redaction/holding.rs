//! Secrets in text that comes in pieces.

use std::fmt;
use std::mem;
use std::sync::Arc;

use super::automaton::Tracker;
use super::{MARK, Rules};

/// So many bytes are held back at most, whatever an expression still waits for.
const LONGEST_HOLD: usize = 64 * 1024;

/// One stream of deltas: gives out what can't be part of a secret any more, and holds back what may.
///
/// All that it gives out, put together, is what [`Redactor::redact`](super::Redactor::redact) makes of the whole, whatever the
/// cuts. Only where an expression matches more than 64 KiB, or waits that long for an end that may never come, may a part of
/// its match be seen: then what is held is given out, redacted as far as it can be told, and all but what may be the beginning
/// of a secret is forgotten. A secret word for word is never seen, however long.
#[derive(Clone)]
pub struct Holding {
    rules: Option<Arc<Rules>>,
    trackers: Vec<Tracker>,
    /// What is held back, behind the last character that was given out, which an expression may want to look at.
    held: String,
    /// How many bytes of `held` are given out.
    given: usize,
    /// How many bytes behind those are covered by a mark that is given out.
    covered: usize,
    /// Whether a match was noticed in what is held back.
    noticed: bool,
    longest_hold: usize,
}

impl fmt::Debug for Holding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Holding").finish_non_exhaustive()
    }
}

impl Holding {
    pub(super) fn new(rules: Option<Arc<Rules>>) -> Self {
        let longest = rules.as_ref().map_or(0, |rules| rules.longest());
        Self {
            rules,
            trackers: Vec::new(),
            held: String::new(),
            given: 0,
            covered: 0,
            noticed: false,
            longest_hold: LONGEST_HOLD.max(2 * longest),
        }
    }

    /// The same, giving up sooner.
    #[cfg(test)]
    pub(super) fn with_longest_hold(self, longest_hold: usize) -> Self {
        Self { longest_hold, ..self }
    }

    /// One more piece came: what of all that came can be shown now.
    pub fn push(&mut self, delta: &str) -> String {
        let Some(rules) = self.rules.clone() else { return delta.to_owned() };
        if self.trackers.is_empty() {
            self.trackers = rules.automata.iter().map(Tracker::new).collect();
        }
        let begin = self.held.len();
        self.held.push_str(delta);
        let (mut free, mut noticed) = (None, false);
        for at in begin..self.held.len() {
            self.feed(&rules, at);
            if self.held.is_char_boundary(at + 1) && self.trackers.iter().all(Tracker::is_idle) {
                free = Some(at + 1);
                noticed |= mem::take(&mut self.noticed);
            }
        }
        let mut shown = match free {
            Some(free) if noticed || self.covered > 0 => self.give_redacted(&rules, free, free),
            Some(free) => self.give(free),
            None => String::new(),
        };
        if self.held.len() - self.given > self.longest_hold {
            shown += &self.give_up(&rules);
        }
        shown
    }

    /// Nothing more comes: what is left to be shown.
    pub fn finish(&mut self) -> String {
        let Some(rules) = self.rules.take() else { return String::new() };
        let end = self.held.len();
        let shown = self.give_redacted(&rules, end, end);
        *self = Self { longest_hold: self.longest_hold, ..Self::new(Some(rules)) };
        shown
    }

    fn feed(&mut self, rules: &Rules, at: usize) {
        for (tracker, automaton) in self.trackers.iter_mut().zip(&rules.automata) {
            self.noticed |= tracker.feed(automaton, self.held.as_bytes(), at);
        }
    }

    /// Too much is held: give out all but what may be the beginning of a secret word for word, and begin anew with that.
    fn give_up(&mut self, rules: &Rules) -> String {
        let end = self.held.len();
        let tail = self.held.floor_char_boundary(end - rules.longest().saturating_sub(1)).max(self.given);
        let shown = self.give_redacted(rules, tail, end);
        for (tracker, automaton) in self.trackers.iter_mut().zip(&rules.automata) {
            tracker.reset(automaton);
        }
        self.noticed = false;
        for at in self.given..self.held.len() {
            self.feed(rules, at);
        }
        shown
    }

    /// Give out what is held up to a place, with the secrets taken out that are found up to another place, perhaps further on.
    fn give_redacted(&mut self, rules: &Rules, to: usize, seen: usize) -> String {
        let mut shown = String::new();
        let mut at = self.given + self.covered;
        for span in rules.spans(&self.held, self.given..seen, &rules.patterns) {
            if span.start >= to {
                break;
            }
            // One that begins before `at` goes on from a mark that is given out.
            if span.start >= at {
                shown.push_str(&self.held[at..span.start]);
                shown.push_str(MARK);
            }
            at = at.max(span.end);
        }
        if at < to {
            shown.push_str(&self.held[at..to]);
        }
        self.forget(to);
        self.covered = at.saturating_sub(to);
        shown
    }

    /// Give out what is held up to a place, as it is.
    fn give(&mut self, to: usize) -> String {
        let shown = self.held[self.given..to].to_owned();
        self.forget(to);
        shown
    }

    /// Keep only what is behind a place, and the character before it.
    fn forget(&mut self, to: usize) {
        let kept = self.held[..to].char_indices().next_back().map_or(0, |(at, _)| at);
        self.held.drain(..kept);
        self.given = to - kept;
        for tracker in &mut self.trackers {
            tracker.shift(kept);
        }
    }
}
