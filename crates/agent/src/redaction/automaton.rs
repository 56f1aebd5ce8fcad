//! What tells, byte by byte, whether a secret may be in progress.
//!
//! A lazy DFA is in its start state exactly when no match has begun that could still end. That holds as long as nothing in an
//! expression looks at its surroundings (`^`, `\b`): those make several start states, and a Unicode `\b` can't be had
//! in a DFA at all. So what looks around is tracked without that: its automaton notices all that the expression matches, and
//! sometimes more, which costs a moment's delay and nothing else.

use std::panic::{RefUnwindSafe, UnwindSafe};

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::{self, Builder, NFA, State, Transition, WhichCaptures};
use regex_automata::util::pool::Pool;
use regex_automata::util::start;
use regex_automata::{Anchored, Input, MatchKind};

use super::BadPattern;

/// It matches nothing, and keeps the compiler from tying a list of expressions that all begin with `^` to the start of the text.
const NOTHING: &str = r"[^\s\S]";

type Caches = Pool<Cache, Box<dyn Fn() -> Cache + Send + Sync + UnwindSafe + RefUnwindSafe>>;

/// Notices what its expressions match.
pub(super) struct Automaton {
    dfa: DFA,
    caches: Caches,
}

impl Automaton {
    /// For one expression; none if it looks around.
    ///
    /// It ends as a search would end: once the match that would be chosen is there, it is over. So text after the end of
    /// `BEGIN.*?END` is not held back for another `END`.
    pub(super) fn of_pattern(pattern: &str) -> Result<Option<Self>, BadPattern> {
        let nfa = compile(&[pattern]).map_err(|error| BadPattern::new(pattern, error.to_string()))?;
        if !nfa.look_set_any().is_empty() {
            return Ok(None);
        }
        Self::of_nfa(nfa, MatchKind::LeftmostFirst).map(Some)
    }

    /// For many expressions, as if they did not look around.
    pub(super) fn of_all(mut patterns: Vec<String>) -> Result<Self, BadPattern> {
        patterns.push(NOTHING.to_owned());
        let nfa = compile(&patterns)
            .and_then(|nfa| without_looking_around(&nfa))
            .map_err(|error| too_many(&error))?;
        Self::of_nfa(nfa, MatchKind::All)
    }

    fn of_nfa(nfa: NFA, kind: MatchKind) -> Result<Self, BadPattern> {
        let config = DFA::config().match_kind(kind).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| too_many(&error))?;
        let of_caches = dfa.clone();
        Ok(Self { dfa, caches: Pool::new(Box::new(move || of_caches.create_cache())) })
    }

    /// Whether there may be a match in a text, or in any part of it taken by itself.
    pub(super) fn may_match(&self, text: &str) -> bool {
        let input = Input::new(text).earliest(true);
        // A search that gives up has seen no proof that there is none.
        self.dfa.try_search_fwd(&mut self.caches.get(), &input).map_or(true, |found| found.is_some())
    }
}

/// The pattern is not named: it is all of them, and some are secrets.
fn too_many(error: &dyn std::error::Error) -> BadPattern {
    BadPattern::new("(all together)", error.to_string())
}

fn compile<P: AsRef<str>>(patterns: &[P]) -> Result<NFA, Box<thompson::BuildError>> {
    let config = thompson::Config::new().which_captures(WhichCaptures::None);
    Ok(thompson::Compiler::new().configure(config).build_many(patterns)?)
}

/// The same automaton with every `^`, `\b` and the like fulfilled, and all patterns as one.
fn without_looking_around(nfa: &NFA) -> Result<NFA, Box<thompson::BuildError>> {
    let mut builder = Builder::new();
    let mut matched = None;
    builder.start_pattern()?;
    // One state for each, in their order: so their ids stay what they are.
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

/// An automaton on its way through one text.
#[derive(Clone)]
pub(super) struct Tracker {
    cache: Cache,
    /// How often the cache was cleared when `start` and `state` were taken from it.
    clears: usize,
    start: Option<LazyStateID>,
    /// None if nobody can tell any more: then a match may be in progress.
    state: Option<LazyStateID>,
    /// Where the match ended that would be chosen if nothing more came.
    ended: Option<usize>,
}

impl Tracker {
    pub(super) fn new(automaton: &Automaton) -> Self {
        let mut cache = automaton.dfa.create_cache();
        let start = start_state(&automaton.dfa, &mut cache);
        Self { clears: cache.clear_count(), cache, start, state: start, ended: None }
    }

    /// Begin anew, as at the start of a text.
    pub(super) fn reset(&mut self, automaton: &Automaton) {
        match (self.state, self.start) {
            (Some(_), Some(start)) => (self.state, self.ended) = (Some(start), None),
            _ => *self = Self::new(automaton),
        }
    }

    /// Takes the byte at a place, after all before it, and says whether a match was noticed.
    pub(super) fn feed(&mut self, automaton: &Automaton, text: &[u8], place: usize) -> bool {
        let (mut at, mut noticed) = (place, false);
        while at <= place {
            self.state = self.step(&automaton.dfa, text[at]);
            match self.state {
                None => return true,
                Some(state) if state.is_dead() => {
                    // Nothing can make the match longer: look for the next one, from where it ended.
                    let ended = self.ended.take();
                    self.state = self.start.filter(|_| ended.is_some());
                    at = ended.unwrap_or(place + 1);
                    continue;
                }
                Some(state) if state.is_match() => {
                    // A lazy DFA says so one byte late.
                    self.ended = Some(at);
                    noticed = true;
                }
                Some(_) => {}
            }
            at += 1;
        }
        noticed
    }

    /// Whether no match is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.state.is_some() && self.state == self.start
    }

    /// The first so many bytes of the text are gone.
    pub(super) fn shift(&mut self, bytes: usize) {
        self.ended = self.ended.map(|ended| ended.saturating_sub(bytes));
    }

    fn step(&mut self, dfa: &DFA, byte: u8) -> Option<LazyStateID> {
        let next = dfa.next_state(&mut self.cache, self.state?, byte).ok()?;
        if self.cache.clear_count() != self.clears {
            // The cache was full. All its states have new names, save the one that it just gave out.
            self.clears = self.cache.clear_count();
            self.start = start_state(dfa, &mut self.cache);
            if self.cache.clear_count() != self.clears {
                self.start = None;
                return None;
            }
        }
        (!next.is_quit()).then_some(next)
    }
}

/// There is only one where nothing looks around.
fn start_state(dfa: &DFA, cache: &mut Cache) -> Option<LazyStateID> {
    dfa.start_state(cache, &start::Config::new().anchored(Anchored::No)).ok()
}
