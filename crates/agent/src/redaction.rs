//! Secrets that the runtime knows, taken out of everything before it is written or shown.
//!
//! A [`Redactor`] knows two things: secrets word for word (keys of providers) and expressions of the user for whatever looks
//! like one. In their place stands `[redacted]`. [`Redactor::redact`] is for a text that is there as a whole,
//! [`Redactor::redact_json`] for the body of a record, [`Redactor::holding`] for text that comes in pieces.
//!
//! A secret of fewer than six bytes is passed over, since it would redact half of every text, and so is one that is a part of
//! `[redacted]` itself. A secret is also found as it is written within JSON, because the arguments of a call are JSON inside a
//! string, and a key of many lines looks different there.

mod automaton;
mod body;
mod holding;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use longhaul_protocol::NewRecord;
use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use serde_json::value::RawValue;

use automaton::Automaton;
pub use holding::Holding;

/// What stands in place of a secret.
const MARK: &str = "[redacted]";
/// Shorter secrets are passed over: they would be found in ordinary words.
const SHORTEST: usize = 6;
/// How large an expression may be when compiled. `\w{20,300}` fits; `(\w{1000}){1000}` would eat the memory of the machine.
const LARGEST_PATTERN: usize = 4 * 1024 * 1024;

/// An expression that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern {pattern:?} can't be used to find secrets: {reason}")]
pub(crate) struct BadPattern {
    /// The expression, as it was given.
    pub(crate) pattern: String,
    /// What is wrong with it.
    pub(crate) reason: String,
}

impl BadPattern {
    fn new(pattern: &str, reason: impl Into<String>) -> Self {
        Self { pattern: pattern.to_owned(), reason: reason.into() }
    }
}

/// Takes secrets out of text. The default one knows none and costs nothing; a clone shares what it knows.
#[derive(Clone, Default)]
pub struct Redactor {
    rules: Option<Arc<Rules>>,
}

/// Says nothing of what it knows: whoever prints it must not print a secret.
impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// One that knows these secrets word for word, and whatever these expressions match.
    pub(crate) fn new(secrets: &[String], patterns: &[String]) -> Result<Self, BadPattern> {
        let rules = Rules::new(secrets, patterns)?;
        Ok(Self { rules: (!rules.automata.is_empty()).then(|| Arc::new(rules)) })
    }

    /// The text with `[redacted]` in place of every secret. Where two overlap, one mark covers both.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let redacted = self.rules.as_ref().and_then(|rules| rules.redact(text, &rules.patterns));
        redacted.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// The body of a record, as JSON text, with the secrets taken out of its string values. Names of fields and numbers stay,
    /// and so does every byte outside the values that held a secret. What is not JSON is redacted as text.
    pub(crate) fn redact_json<'a>(&self, body: &'a str) -> Cow<'a, str> {
        match &self.rules {
            Some(rules) => body::redact(rules, body).map_or(Cow::Borrowed(body), Cow::Owned),
            None => Cow::Borrowed(body),
        }
    }

    /// Whether a text has a place in it where a secret stood.
    pub(crate) fn has_marks(&self, text: &str) -> bool {
        self.rules.is_some() && text.contains(MARK)
    }

    /// The record, with the secrets taken out of its body.
    pub fn record(&self, record: NewRecord) -> NewRecord {
        let clean = match self.redact_json(record.body.get()) {
            Cow::Borrowed(_) => return record,
            Cow::Owned(body) => RawValue::from_string(body),
        };
        // What was JSON is JSON afterwards; if it were not, nothing of it may be kept.
        let body = clean.unwrap_or_else(|_| RawValue::NULL.to_owned());
        NewRecord { body, ..record }
    }

    /// Bytes, with the secrets taken out if they are text.
    pub(crate) fn bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(bytes) {
            Ok(text) => match self.redact(&text) {
                Cow::Owned(clean) => clean.into_bytes(),
                Cow::Borrowed(_) => text.into_bytes(),
            },
            Err(error) => error.into_bytes(),
        }
    }

    /// For one stream of deltas.
    pub fn holding(&self) -> Holding {
        Holding::new(self.rules.clone())
    }
}

/// What a redactor knows.
struct Rules {
    /// The secrets word for word, and as they are written within JSON.
    secrets: Vec<String>,
    patterns: Vec<Regex>,
    /// Together they notice whatever the secrets and the patterns find, perhaps a little more.
    automata: Vec<Automaton>,
}

impl Rules {
    fn new(secrets: &[String], patterns: &[String]) -> Result<Self, BadPattern> {
        let secrets = spellings(secrets);
        let mut automata = Vec::new();
        let mut regexes = Vec::with_capacity(patterns.len());
        let mut joined: Vec<String> = secrets.iter().map(|secret| escaped(secret)).collect();
        for pattern in patterns {
            regexes.push(compile(pattern)?);
            match Automaton::of_pattern(pattern)? {
                Some(automaton) => automata.push(automaton),
                None => joined.push(pattern.clone()),
            }
        }
        if !joined.is_empty() {
            automata.push(Automaton::of_all(joined)?);
        }
        Ok(Self { secrets, patterns: regexes, automata })
    }

    /// Whether there may be something to redact in a text, or in any part of it taken by itself.
    fn may_match(&self, text: &str) -> bool {
        self.automata.iter().any(|automaton| automaton.may_match(text))
    }

    /// The redacted text, if there was something to redact; with all secrets, but only these patterns.
    fn redact(&self, text: &str, patterns: &[Regex]) -> Option<String> {
        if !self.may_match(text) {
            return None;
        }
        let spans = self.spans(text, 0..text.len(), patterns);
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

    /// Where secrets are within a part of a text, in order, none overlapping another. The text around the part is only
    /// looked at for what surrounds a match, such as `\b`.
    fn spans(&self, text: &str, within: Range<usize>, patterns: &[Regex]) -> Vec<Range<usize>> {
        let mut spans = Vec::new();
        for secret in &self.secrets {
            let first = secret.chars().next().map_or(1, char::len_utf8);
            let mut from = within.start;
            // A secret may overlap itself, so the next one is looked for behind its first character, not behind its last.
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

    /// The length of the longest secret.
    fn longest(&self) -> usize {
        self.secrets.iter().map(String::len).max().unwrap_or(0)
    }
}

/// The secrets that are worth looking for, each once, in each way in which it is written.
fn spellings(secrets: &[String]) -> Vec<String> {
    let mut spellings: Vec<String> = Vec::new();
    for secret in secrets.iter().filter(|secret| secret.len() >= SHORTEST && !MARK.contains(secret.as_str()))
    {
        let quoted = serde_json::Value::from(secret.as_str()).to_string();
        spellings.push(secret.clone());
        spellings.push(quoted[1..quoted.len() - 1].to_owned());
    }
    spellings.sort_unstable();
    spellings.dedup();
    spellings
}

/// The expression that matches this text and nothing else.
fn escaped(text: &str) -> String {
    text.chars().map(|character| format!(r"\x{{{:X}}}", u32::from(character))).collect()
}

fn compile(pattern: &str) -> Result<Regex, BadPattern> {
    let parsed = syntax::parse(pattern).map_err(|error| BadPattern::new(pattern, error.to_string()))?;
    if parsed.properties().minimum_len() == Some(0) {
        return Err(BadPattern::new(pattern, "it matches the empty text, which is everywhere"));
    }
    Regex::builder()
        .configure(Regex::config().nfa_size_limit(Some(LARGEST_PATTERN)))
        .build_from_hir(&parsed)
        .map_err(|error| match error.size_limit() {
            Some(_) => BadPattern::new(pattern, "it is too large; ask for fewer repetitions"),
            None => BadPattern::new(pattern, error.to_string()),
        })
}

#[cfg(test)]
#[path = "redaction_tests.rs"]
mod tests;
