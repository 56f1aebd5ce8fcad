//! Redaction of text that arrives in deltas.

use std::fmt;
use std::mem;
use std::sync::Arc;

use crate::MARK;
use crate::automaton::MatchTracker;
use crate::rules::Rules;

/// The most bytes to hold back, whatever a pattern still waits for.
const MAX_HELD_BYTES: usize = 64 * 1024;

/// Redacts one stream of deltas. It releases text that can't be part of a secret and holds back the rest.
///
/// The released text, joined, equals [`Redactor::redact`](crate::Redactor::redact) of the whole text, wherever the
/// deltas are cut. If a pattern holds back more than 64 KiB, the held text is redacted with the matches known so far
/// and released, except for the possible beginning of a literal secret. So a part of a pattern's match may be shown,
/// but never a part of a literal secret.
#[derive(Clone)]
pub struct StreamRedactor {
    rules: Option<Arc<Rules>>,
    trackers: Vec<MatchTracker>,
    /// The last released character, which assertions of patterns need, and the held text after it.
    held: String,
    /// Bytes at the start of `held` that were already released.
    released: usize,
    /// Bytes after those for which a mark was already released.
    covered: usize,
    /// Whether the held text may contain a match.
    detected: bool,
    max_held_bytes: usize,
}

impl fmt::Debug for StreamRedactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("StreamRedactor").finish_non_exhaustive()
    }
}

impl StreamRedactor {
    pub(crate) fn new(rules: Option<Arc<Rules>>) -> Self {
        let longest_secret = rules.as_ref().map_or(0, |rules| rules.longest_secret());
        Self {
            rules,
            trackers: Vec::new(),
            held: String::new(),
            released: 0,
            covered: 0,
            detected: false,
            max_held_bytes: MAX_HELD_BYTES.max(2 * longest_secret),
        }
    }

    #[cfg(test)]
    pub(crate) fn with_max_held_bytes(self, max_held_bytes: usize) -> Self {
        Self { max_held_bytes, ..self }
    }

    /// Takes the next delta and returns the text that can be shown now.
    pub fn push(&mut self, delta: &str) -> String {
        let Some(rules) = self.rules.clone() else { return delta.to_owned() };
        if self.trackers.is_empty() {
            self.trackers = rules.automata.iter().map(MatchTracker::new).collect();
        }
        let begin = self.held.len();
        self.held.push_str(delta);
        let (mut safe_end, mut detected) = (None, false);
        for at in begin..self.held.len() {
            self.feed(&rules, at);
            if self.held.is_char_boundary(at + 1) && self.trackers.iter().all(MatchTracker::is_idle) {
                safe_end = Some(at + 1);
                detected |= mem::take(&mut self.detected);
            }
        }
        let mut shown = match safe_end {
            Some(safe_end) if detected || self.covered > 0 => {
                self.release_redacted(&rules, safe_end, safe_end)
            }
            Some(safe_end) => self.release(safe_end),
            None => String::new(),
        };
        if self.held.len() - self.released > self.max_held_bytes {
            shown += &self.release_held(&rules);
        }
        shown
    }

    /// Ends the stream and returns the rest. The next `push` begins a new stream.
    pub fn finish(&mut self) -> String {
        let Some(rules) = self.rules.take() else { return String::new() };
        let end = self.held.len();
        let shown = self.release_redacted(&rules, end, end);
        *self = Self { max_held_bytes: self.max_held_bytes, ..Self::new(Some(rules)) };
        shown
    }

    fn feed(&mut self, rules: &Rules, at: usize) {
        for (tracker, automaton) in self.trackers.iter_mut().zip(&rules.automata) {
            self.detected |= tracker.feed(automaton, self.held.as_bytes(), at);
        }
    }

    /// Releases the held text when it is too long, except for the possible beginning of a literal secret, and
    /// restarts the trackers there.
    fn release_held(&mut self, rules: &Rules) -> String {
        let end = self.held.len();
        let tail =
            self.held.floor_char_boundary(end - rules.longest_secret().saturating_sub(1)).max(self.released);
        let shown = self.release_redacted(rules, tail, end);
        for (tracker, automaton) in self.trackers.iter_mut().zip(&rules.automata) {
            tracker.reset(automaton);
        }
        self.detected = false;
        for at in self.released..self.held.len() {
            self.feed(rules, at);
        }
        shown
    }

    /// Releases the held text up to `to`, with marks for the matches that begin before it. A match may end as late as
    /// `search_end`.
    fn release_redacted(&mut self, rules: &Rules, to: usize, search_end: usize) -> String {
        let mut shown = String::new();
        let mut at = self.released + self.covered;
        for span in rules.find_matches(&self.held, self.released..search_end, &rules.patterns) {
            if span.start >= to {
                break;
            }
            // A match that begins before `at` continues one whose mark was already released.
            if span.start >= at {
                shown.push_str(&self.held[at..span.start]);
                shown.push_str(MARK);
            }
            at = at.max(span.end);
        }
        if at < to {
            shown.push_str(&self.held[at..to]);
        }
        self.drop_released(to);
        self.covered = at.saturating_sub(to);
        shown
    }

    /// Releases the held text up to `to` unchanged.
    fn release(&mut self, to: usize) -> String {
        let shown = self.held[self.released..to].to_owned();
        self.drop_released(to);
        shown
    }

    /// Drops the text before `to`, except for its last character.
    fn drop_released(&mut self, to: usize) {
        let kept = self.held[..to].char_indices().next_back().map_or(0, |(at, _)| at);
        self.held.drain(..kept);
        self.released = to - kept;
        for tracker in &mut self.trackers {
            tracker.drop_prefix(kept);
        }
    }
}
