//! Redaction: secrets are replaced by `[redacted]` before anything is written or shown.
//!
//! # What this crate promises
//!
//! - **A literal secret never gets through**, however a stream splits it, and even if it is escaped inside JSON.
//! - **The output of [`StreamRedactor`], joined, equals [`Redactor::redact`] of the whole text.** The only exception
//!   is a pattern that matches more than 64 KiB: a part of such a match may be shown.
//! - **Text without a secret is not copied**, and the rest of a JSON body keeps its bytes.
//!
//! Literal secrets of fewer than six bytes are ignored, because ordinary words contain them. So are parts of the mark itself.
//!
//! # Where things are
//!
//! | module | what it holds |
//! | --- | --- |
//! | `rules` | literal secrets and patterns, and where they match |
//! | `automaton` | lazy DFAs that tell, byte by byte, whether a match may be in progress |
//! | `json` | redaction of record bodies |
//! | `stream` | redaction of text that arrives in deltas, with a hold-back |
//!
//! # Example
//!
//! ```
//! let redactor = longhaul_redact::Redactor::new(&["sk-live-0123".to_owned()], &["ghp_[a-z]{4}".to_owned()])?;
//! assert_eq!(redactor.redact("sk-live-0123 and ghp_abcd"), "[redacted] and [redacted]");
//!
//! let mut stream = redactor.stream();
//! let shown = stream.push("key: sk-live") + &stream.push("-0123.") + &stream.finish();
//! assert_eq!(shown, "key: [redacted].");
//! # Ok::<(), longhaul_redact::InvalidPattern>(())
//! ```

mod automaton;
mod json;
mod rules;
mod stream;

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use longhaul_protocol::NewRecord;
use serde_json::value::RawValue;

use rules::Rules;
pub use stream::StreamRedactor;

/// Replaces a secret.
const MARK: &str = "[redacted]";

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid pattern {pattern:?}: {reason}")]
pub struct InvalidPattern {
    pub pattern: String,
    pub reason: String,
}

impl InvalidPattern {
    fn new(pattern: &str, reason: impl Into<String>) -> Self {
        Self { pattern: pattern.to_owned(), reason: reason.into() }
    }
}

/// Removes secrets from text. The default redactor has no rules and costs next to nothing. Clones share the rules.
#[derive(Clone, Default)]
pub struct Redactor(Arc<RwLock<KnownSecrets>>);

/// The rules, and what they were made of.
#[derive(Default)]
struct KnownSecrets {
    secrets: Vec<String>,
    patterns: Vec<String>,
    rules: Option<Arc<Rules>>,
}

impl KnownSecrets {
    fn new(secrets: Vec<String>, patterns: Vec<String>) -> Result<Self, InvalidPattern> {
        let rules = Rules::new(&secrets, &patterns)?;
        let rules = (!rules.automata.is_empty()).then(|| Arc::new(rules));
        Ok(Self { secrets, patterns, rules })
    }
}

/// Prints no rules, because logging a redactor must not log a secret.
impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Redactor").finish_non_exhaustive()
    }
}

impl Redactor {
    /// `secrets` are literal texts, `patterns` regular expressions of the user.
    pub fn new(secrets: &[String], patterns: &[String]) -> Result<Self, InvalidPattern> {
        Ok(Self(Arc::new(RwLock::new(KnownSecrets::new(secrets.to_vec(), patterns.to_vec())?))))
    }

    /// Adds literal secrets that became known later, such as a token that was renewed. All clones know them from now on; a stream
    /// that has begun does not.
    pub fn add_secrets(&self, secrets: impl IntoIterator<Item = String>) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let mut all = known.secrets.clone();
        for secret in secrets {
            if !all.contains(&secret) {
                all.push(secret);
            }
        }
        if all.len() > known.secrets.len()
            && let Ok(extended) = KnownSecrets::new(all, known.patterns.clone())
        {
            *known = extended;
        }
    }

    fn rules(&self) -> Option<Arc<Rules>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).rules.clone()
    }

    /// Replaces each secret by `[redacted]`. Overlapping matches share one mark.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let redacted = self.rules().and_then(|rules| rules.redact(text, &rules.patterns));
        redacted.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Redacts the string values of a JSON text. Field names, numbers and all bytes outside the changed values stay
    /// unchanged. A body that is not JSON is redacted as plain text.
    pub fn redact_json<'a>(&self, body: &'a str) -> Cow<'a, str> {
        let redacted = self.rules().and_then(|rules| json::redact_body(&rules, body));
        redacted.map_or(Cow::Borrowed(body), Cow::Owned)
    }

    /// Whether a secret was replaced in this text.
    pub fn has_redaction_mark(&self, text: &str) -> bool {
        self.rules().is_some() && text.contains(MARK)
    }

    pub fn redact_record(&self, record: NewRecord) -> NewRecord {
        let redacted = match self.redact_json(record.body.get()) {
            Cow::Borrowed(_) => return record,
            Cow::Owned(body) => RawValue::from_string(body),
        };
        // Redacted JSON is still JSON. If it were not, keeping nothing of it would be the safe choice.
        let body = redacted.unwrap_or_else(|_| RawValue::NULL.to_owned());
        NewRecord { body, ..record }
    }

    /// Redacts bytes that are UTF-8 text. Other bytes stay unchanged.
    pub fn redact_bytes(&self, bytes: Vec<u8>) -> Vec<u8> {
        match String::from_utf8(bytes) {
            Ok(text) => match self.redact(&text) {
                Cow::Owned(redacted) => redacted.into_bytes(),
                Cow::Borrowed(_) => text.into_bytes(),
            },
            Err(error) => error.into_bytes(),
        }
    }

    /// A redactor for one stream of deltas.
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor::new(self.rules())
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
