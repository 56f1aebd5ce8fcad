//! Literal secrets and patterns, and their matches in a text.

use std::error::Error;
use std::ops::Range;

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use regex_automata::{Input, MatchKind};
use regex_syntax::hir::Hir;

use crate::automaton::{Automaton, without_assertions};
use crate::{InvalidPattern, MARK};

/// Shorter literal secrets are ignored, because ordinary words would contain them.
const MIN_SECRET_BYTES: usize = 6;
/// The size limit of a compiled pattern. `\w{20,300}` fits. `(\w{1000}){1000}` would take all memory.
const MAX_PATTERN_BYTES: usize = 4 * 1024 * 1024;

pub(crate) struct Rules {
    /// Literal secrets, both plain and escaped as in JSON.
    secrets: Vec<String>,
    pub(crate) patterns: Vec<Regex>,
    /// Together they detect every match of the secrets and patterns, with a few false positives.
    pub(crate) automata: Vec<Automaton>,
}

impl Rules {
    pub(crate) fn new(secrets: &[String], patterns: &[String]) -> Result<Self, InvalidPattern> {
        let secrets = secret_spellings(secrets);
        let mut automata = Vec::new();
        let mut regexes = Vec::with_capacity(patterns.len());
        let mut joined: Vec<Hir> = secrets.iter().map(|secret| Hir::literal(secret.as_bytes())).collect();
        for pattern in patterns {
            let parsed =
                syntax::parse(pattern).map_err(|error| InvalidPattern::new(pattern, error.to_string()))?;
            regexes.push(compile_pattern(pattern, &parsed)?);
            if parsed.properties().look_set().is_empty() {
                let automaton = Automaton::new(&parsed, MatchKind::LeftmostFirst);
                automata.push(automaton.map_err(|error| InvalidPattern::new(pattern, error.to_string()))?);
            } else {
                joined.push(without_assertions(&parsed));
            }
        }
        if !joined.is_empty() {
            let automaton = Automaton::new(&Hir::alternation(joined), MatchKind::All);
            // Names no pattern, because some of them are secrets.
            let unusable = |error: Box<dyn Error>| InvalidPattern::new("(all together)", error.to_string());
            automata.push(automaton.map_err(unusable)?);
        }
        Ok(Self { secrets, patterns: regexes, automata })
    }

    /// False only if neither the text nor any substring of it contains a match.
    pub(crate) fn may_match(&self, text: &str) -> bool {
        self.automata.iter().any(|automaton| automaton.may_match(text))
    }

    /// Redacts all literal secrets and the matches of `patterns`. `None` if there is nothing to redact.
    pub(crate) fn redact(&self, text: &str, patterns: &[Regex]) -> Option<String> {
        if !self.may_match(text) {
            return None;
        }
        let spans = self.find_matches(text, 0..text.len(), patterns);
        if spans.is_empty() {
            return None;
        }
        let (mut redacted, mut at) = (String::with_capacity(text.len()), 0);
        for span in spans {
            redacted.push_str(&text[at..span.start]);
            redacted.push_str(MARK);
            at = span.end;
        }
        redacted.push_str(&text[at..]);
        Some(redacted)
    }

    /// The matches inside `within`, in order, and merged if they overlap. The text around `within` only matters for
    /// assertions such as `\b`.
    pub(crate) fn find_matches(
        &self,
        text: &str,
        within: Range<usize>,
        patterns: &[Regex],
    ) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        for secret in &self.secrets {
            let first = secret.chars().next().map_or(1, char::len_utf8);
            let mut from = within.start;
            // A secret may overlap itself, so the search continues after its first character.
            while let Some(at) = text[from..within.end].find(secret) {
                spans.push(from + at..from + at + secret.len());
                from += at + first;
            }
        }
        for pattern in patterns {
            let input = Input::new(text).span(within.clone());
            spans.extend(pattern.find_iter(input).map(|found| found.range()));
        }
        spans.sort_unstable_by_key(|span| span.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(spans.len());
        for span in spans {
            match merged.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                _ => merged.push(span),
            }
        }
        merged
    }

    pub(crate) fn longest_secret(&self) -> usize {
        self.secrets.iter().map(String::len).max().unwrap_or(0)
    }
}

/// Each usable secret, plain and escaped as in JSON, without duplicates.
fn secret_spellings(secrets: &[String]) -> Vec<String> {
    let mut spellings: Vec<String> = Vec::new();
    for secret in
        secrets.iter().filter(|secret| secret.len() >= MIN_SECRET_BYTES && !MARK.contains(secret.as_str()))
    {
        let quoted = serde_json::Value::from(secret.as_str()).to_string();
        spellings.push(secret.clone());
        spellings.push(quoted[1..quoted.len() - 1].to_owned());
    }
    spellings.sort_unstable();
    spellings.dedup();
    spellings
}

fn compile_pattern(pattern: &str, parsed: &Hir) -> Result<Regex, InvalidPattern> {
    if parsed.properties().minimum_len() == Some(0) {
        return Err(InvalidPattern::new(pattern, "it matches the empty string"));
    }
    Regex::builder()
        .configure(Regex::config().nfa_size_limit(Some(MAX_PATTERN_BYTES)))
        .build_from_hir(parsed)
        .map_err(|error| match error.size_limit() {
            Some(_) => InvalidPattern::new(pattern, "it is too large; use fewer repetitions"),
            None => InvalidPattern::new(pattern, error.to_string()),
        })
}
