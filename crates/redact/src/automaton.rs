//! Lazy DFAs that tell, byte by byte, whether a match may be in progress.
//!
//! A lazy DFA is in its start state exactly when no unfinished match exists. Assertions (`^`, `\b`) break that: they
//! create several start states, and a DFA can't have a Unicode `\b` at all. So the automaton of such a pattern
//! ignores its assertions. It detects every match and some false ones, which only delay a stream for a moment.
//!
//! Literal secrets use the same automata as patterns. `aho-corasick` could handle only literals and hides its states,
//! so patterns would still need this tracker, and there would be a second one.

use std::error::Error;
use std::panic::{RefUnwindSafe, UnwindSafe};

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::pool::Pool;
use regex_automata::util::start;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Hir, HirKind, Repetition};

type Caches = Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>;

pub(crate) struct Automaton {
    dfa: DFA,
    caches: Caches,
}

impl Automaton {
    /// With [`MatchKind::LeftmostFirst`], a match ends where a search ends it, so text after `BEGIN.*?END` is not held back
    /// for another `END`.
    pub(crate) fn new(pattern: &Hir, kind: MatchKind) -> Result<Self, Box<dyn Error>> {
        let config = thompson::Config::new().which_captures(WhichCaptures::None);
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(pattern)?;
        let config = DFA::config().match_kind(kind).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa)?;
        let of_caches = dfa.clone();
        Ok(Self { dfa, caches: Pool::new(Box::new(move || of_caches.create_cache())) })
    }

    /// False only if neither the text nor any substring of it contains a match.
    pub(crate) fn may_match(&self, text: &str) -> bool {
        let input = Input::new(text).earliest(true);
        // A search that gave up proves nothing.
        self.dfa.try_search_fwd(&mut self.caches.get(), &input).map_or(true, |found| found.is_some())
    }
}

/// The pattern with every assertion taken as true.
pub(crate) fn without_assertions(pattern: &Hir) -> Hir {
    let each = |parts: &[Hir]| parts.iter().map(without_assertions).collect();
    match pattern.kind() {
        HirKind::Look(_) => Hir::empty(),
        HirKind::Capture(capture) => without_assertions(&capture.sub),
        HirKind::Concat(parts) => Hir::concat(each(parts)),
        HirKind::Alternation(parts) => Hir::alternation(each(parts)),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(without_assertions(&repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition.clone() })
        }
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => pattern.clone(),
    }
}

/// The position of an automaton in one text.
#[derive(Clone)]
pub(crate) struct MatchTracker {
    cache: Cache,
    /// The cache's clear count when `start` and `state` were read. A clear invalidates both.
    cache_clears: usize,
    start: Option<LazyStateID>,
    /// `None` means unknown, so a match may be in progress.
    state: Option<LazyStateID>,
    /// Where the current match ends if no more text comes.
    match_end: Option<usize>,
}

impl MatchTracker {
    pub(crate) fn new(automaton: &Automaton) -> Self {
        let mut cache = automaton.dfa.create_cache();
        let start = start_state(&automaton.dfa, &mut cache);
        Self { cache_clears: cache.clear_count(), cache, start, state: start, match_end: None }
    }

    /// Restarts at the beginning of a text.
    pub(crate) fn reset(&mut self, automaton: &Automaton) {
        match (self.state, self.start) {
            (Some(_), Some(start)) => (self.state, self.match_end) = (Some(start), None),
            _ => *self = Self::new(automaton),
        }
    }

    /// Consumes the byte at `place`. Returns true if a match may have been found. Call this for each byte, in order.
    pub(crate) fn feed(&mut self, automaton: &Automaton, text: &[u8], place: usize) -> bool {
        let (mut at, mut detected) = (place, false);
        while at <= place {
            self.state = self.step(&automaton.dfa, text[at]);
            match self.state {
                None => return true,
                Some(state) if state.is_dead() => {
                    // The match can't grow any more: search for the next one from its end.
                    let end = self.match_end.take();
                    self.state = self.start.filter(|_| end.is_some());
                    at = end.unwrap_or(place + 1);
                    continue;
                }
                Some(state) if state.is_match() => {
                    // A lazy DFA reports a match one byte late.
                    self.match_end = Some(at);
                    detected = true;
                }
                Some(_) => {}
            }
            at += 1;
        }
        detected
    }

    /// Whether no match is in progress.
    pub(crate) fn is_idle(&self) -> bool {
        self.state.is_some() && self.state == self.start
    }

    /// Adjusts to a text whose first `bytes` were removed.
    pub(crate) fn drop_prefix(&mut self, bytes: usize) {
        self.match_end = self.match_end.map(|end| end.saturating_sub(bytes));
    }

    fn step(&mut self, dfa: &DFA, byte: u8) -> Option<LazyStateID> {
        let next = dfa.next_state(&mut self.cache, self.state?, byte).ok()?;
        if self.cache.clear_count() != self.cache_clears {
            // The full cache was cleared, so every state id except the returned one is invalid.
            self.cache_clears = self.cache.clear_count();
            self.start = start_state(dfa, &mut self.cache);
            if self.cache.clear_count() != self.cache_clears {
                self.start = None;
                return None;
            }
        }
        (!next.is_quit()).then_some(next)
    }
}

/// The start state. Without assertions there is exactly one.
fn start_state(dfa: &DFA, cache: &mut Cache) -> Option<LazyStateID> {
    dfa.start_state(cache, &start::Config::new().anchored(Anchored::No)).ok()
}
