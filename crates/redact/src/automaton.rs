//! Lazy DFAs that tell, byte by byte, whether a match may be in progress.
//!
//! A lazy DFA is in its start state exactly when no unfinished match exists. Assertions (`^`, `\b`) break that: they
//! create several start states, and a DFA can't have a Unicode `\b` at all. So the automaton of such a pattern
//! ignores its assertions. It detects every match and some false ones, which only delay a stream for a moment.
//!
//! Literal secrets use the same automata as patterns. `aho-corasick` could handle only literals and hides its states,
//! so patterns would still need this tracker, and there would be a second one.

use std::panic::{RefUnwindSafe, UnwindSafe};

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, Builder, NFA, State, Transition, WhichCaptures};
use regex_automata::util::pool::Pool;
use regex_automata::util::start;
use regex_automata::{Anchored, Input, MatchKind};

use crate::InvalidPattern;

/// Matches nothing. It prevents the compiler from anchoring a list of patterns that all begin with `^`.
const NEVER_MATCHES: &str = r"[^\s\S]";

type Caches = Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>;

pub(crate) struct Automaton {
    dfa: DFA,
    caches: Caches,
}

impl Automaton {
    /// `None` if the pattern has assertions.
    ///
    /// A match ends where a leftmost-first search ends it, so text after `BEGIN.*?END` is not held back for another `END`.
    pub(crate) fn from_pattern(pattern: &str) -> Result<Option<Self>, InvalidPattern> {
        let nfa = compile(&[pattern]).map_err(|error| InvalidPattern::new(pattern, error.to_string()))?;
        if !nfa.look_set_any().is_empty() {
            return Ok(None);
        }
        Self::from_nfa(nfa, MatchKind::LeftmostFirst).map(Some)
    }

    /// Combines many patterns in one automaton, without their assertions.
    pub(crate) fn from_patterns(mut patterns: Vec<String>) -> Result<Self, InvalidPattern> {
        patterns.push(NEVER_MATCHES.to_owned());
        let nfa = compile(&patterns)
            .and_then(|nfa| without_assertions(&nfa))
            .map_err(|error| combined_error(&error))?;
        Self::from_nfa(nfa, MatchKind::All)
    }

    fn from_nfa(nfa: NFA, kind: MatchKind) -> Result<Self, InvalidPattern> {
        let config = DFA::config().match_kind(kind).skip_cache_capacity_check(true);
        let dfa =
            DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| combined_error(&error))?;
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

/// The message names no pattern, because some of them are secrets.
fn combined_error(error: &dyn std::error::Error) -> InvalidPattern {
    InvalidPattern::new("(all together)", error.to_string())
}

fn compile<P: AsRef<str>>(patterns: &[P]) -> Result<NFA, Box<thompson::BuildError>> {
    let config = thompson::Config::new().which_captures(WhichCaptures::None);
    Ok(thompson::Compiler::new().configure(config).build_many(patterns)?)
}

/// Treats every assertion as true and joins all patterns into one.
fn without_assertions(nfa: &NFA) -> Result<NFA, Box<thompson::BuildError>> {
    let mut builder = Builder::new();
    let mut matched = None;
    builder.start_pattern()?;
    // One new state per old one, in order, so that state ids stay valid.
    for state in nfa.states() {
        match state {
            State::ByteRange { trans } => builder.add_range(*trans)?,
            State::Sparse(sparse) => builder.add_sparse(sparse.transitions.to_vec())?,
            State::Dense(dense) => {
                let of_byte = |(byte, next): (u8, _)| Transition { start: byte, end: byte, next };
                builder
                    .add_sparse((0..=u8::MAX).zip(dense.transitions.iter().copied()).map(of_byte).collect())?
            }
            State::Union { alternates } => builder.add_union(alternates.to_vec())?,
            State::BinaryUnion { alt1, alt2 } => builder.add_union(vec![*alt1, *alt2])?,
            State::Fail => builder.add_fail()?,
            State::Look { next, .. } | State::Capture { next, .. } => {
                let empty = builder.add_empty()?;
                builder.patch(empty, *next)?;
                empty
            }
            State::Match { .. } => match matched {
                None => *matched.insert(builder.add_match()?),
                Some(first) => {
                    let empty = builder.add_empty()?;
                    builder.patch(empty, first)?;
                    empty
                }
            },
        };
    }
    builder.finish_pattern(nfa.start_anchored())?;
    Ok(builder.build(nfa.start_anchored(), nfa.start_unanchored())?)
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
