//! Removes secrets, and for terminals control characters, from output that comes in chunks.

use longhaul_redact::{Redactor, StreamRedactor};

const REDACTED: &[u8] = b"[redacted]";
/// Replaces bytes that are not UTF-8.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Who reads the output.
#[derive(Debug, Clone, Copy)]
pub enum Audience {
    /// A person at a terminal: this function replaces control characters.
    Person(fn(&str) -> String),
    /// A program or a file: every byte is passed on, except secrets.
    Program,
}

/// Removes secrets from output that comes in chunks. A secret may be cut between two of them.
#[derive(Clone)]
pub struct OutputFilter {
    audience: Audience,
    stream: StreamRedactor,
    /// The beginning of a character whose rest has not come yet.
    partial_character: Vec<u8>,
    /// Text from before the first shown byte that `stream` still holds.
    before: String,
}

impl OutputFilter {
    /// A filter for the output of one command.
    pub fn new(redactor: &Redactor, audience: Audience) -> Self {
        Self { audience, stream: redactor.stream(), partial_character: Vec::new(), before: String::new() }
    }

    /// Feeds output from before the first byte to show: a secret may start there.
    pub fn lead_in(&mut self, bytes: &[u8]) {
        self.push(bytes);
        self.before = self.stream.clone().finish();
    }

    /// Feeds a chunk and returns what can be shown now.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::new();
        let mut waiting = std::mem::take(&mut self.partial_character);
        waiting.extend_from_slice(bytes);
        let mut rest = &waiting[..];
        while !rest.is_empty() {
            let (text, invalid) = match std::str::from_utf8(rest) {
                Ok(text) => (text, None),
                Err(error) => {
                    let text = std::str::from_utf8(&rest[..error.valid_up_to()]).unwrap_or_default();
                    (text, Some(error.error_len()))
                }
            };
            let came = self.stream.push(text);
            self.show(came, &mut shown);
            rest = &rest[text.len()..];
            match invalid {
                None => {}
                Some(None) => {
                    self.partial_character = rest.to_vec();
                    break;
                }
                Some(Some(length)) => {
                    // Secrets are UTF-8, so none reaches across these bytes.
                    let held = self.stream.finish();
                    self.show(held, &mut shown);
                    shown.extend_from_slice(self.replacement(&rest[..length]));
                    rest = &rest[length..];
                }
            }
        }
        shown
    }

    /// Returns the rest at the end of the output.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        let held = self.stream.finish();
        self.show(held, &mut shown);
        let partial_character = std::mem::take(&mut self.partial_character);
        if !partial_character.is_empty() {
            shown.extend_from_slice(self.replacement(&partial_character));
        }
        shown
    }

    /// Returns the rest where the output goes on with `following`, which is not shown. A secret that reaches into it is redacted.
    pub fn finish_before(&mut self, following: &[u8]) -> Vec<u8> {
        let mut further = self.clone();
        let mut whole = further.push(following);
        whole.append(&mut further.finish());
        if matches!(self.audience, Audience::Person(_)) {
            self.partial_character.clear();
        }
        let mut shown = self.finish();
        let same = shown.iter().zip(&whole).take_while(|(one, other)| one == other).count();
        if same < shown.len() {
            shown.truncate(same);
            shown.extend_from_slice(REDACTED);
        }
        shown
    }

    /// Returns the rest before a gap in the output. What may be the beginning of a secret counts as one.
    pub fn finish_before_gap(&mut self) -> Vec<u8> {
        let held = self.finish();
        if held.is_empty() { held } else { REDACTED.to_vec() }
    }

    /// Appends text to `shown`, without the part from before the first shown byte.
    fn show(&mut self, mut text: String, shown: &mut Vec<u8>) {
        if !self.before.is_empty() {
            let same = text.chars().zip(self.before.chars()).take_while(|(one, other)| one == other);
            let same: usize = same.map(|(character, _)| character.len_utf8()).sum();
            text.drain(..same);
            self.before.drain(..same);
            if !text.is_empty() {
                self.before.clear();
            }
        }
        match self.audience {
            Audience::Person(sanitize) => shown.extend_from_slice(sanitize(&text).as_bytes()),
            Audience::Program => shown.extend_from_slice(text.as_bytes()),
        }
    }

    fn replacement<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        match self.audience {
            Audience::Person(_) => REPLACEMENT,
            Audience::Program => bytes,
        }
    }
}

#[cfg(test)]
#[path = "output_filter_tests.rs"]
mod tests;
