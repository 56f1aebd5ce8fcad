//! What a task has printed, on its way to whoever reads it.

use std::io::Write;

use longhaul_agent::{Redactor, StreamRedactor};

use crate::output::safe;

/// What stands in place of a secret.
const REDACTED: &[u8] = b"[redacted]";
/// What stands in place of bytes that are no text.
const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Who reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// Somebody at a terminal, which must not be driven by what is printed.
    Person,
    /// A program or a file: every byte that is no secret.
    Program,
}

/// Takes secrets out of output that comes in pieces, wherever they are cut.
#[derive(Clone)]
pub(crate) struct OutputFilter {
    reader: Audience,
    stream: StreamRedactor,
    /// Bytes that may be the beginning of a character.
    undecided: Vec<u8>,
    /// What is held of what came before the place from which on it is shown.
    before: String,
}

impl OutputFilter {
    pub(crate) fn new(redactor: &Redactor, reader: Audience) -> Self {
        Self { reader, stream: redactor.stream(), undecided: Vec::new(), before: String::new() }
    }

    /// Takes in what comes before the place from which on output is shown: a secret may begin there.
    pub(crate) fn lead_in(&mut self, bytes: &[u8]) {
        self.push(bytes);
        self.before = self.stream.clone().finish();
    }

    /// One more piece came: what can be shown now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut shown = Vec::new();
        let mut waiting = std::mem::take(&mut self.undecided);
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
                    self.undecided = rest.to_vec();
                    break;
                }
                Some(Some(length)) => {
                    // No secret has such bytes in it.
                    let held = self.stream.finish();
                    self.show(held, &mut shown);
                    shown.extend_from_slice(self.no_text(&rest[..length]));
                    rest = &rest[length..];
                }
            }
        }
        shown
    }

    /// Nothing more comes: what is left to be shown.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut shown = Vec::new();
        let held = self.stream.finish();
        self.show(held, &mut shown);
        let undecided = std::mem::take(&mut self.undecided);
        if !undecided.is_empty() {
            shown.extend_from_slice(self.no_text(&undecided));
        }
        shown
    }

    /// The same, where more was printed than is shown. A secret that goes on there is not shown by half.
    pub(crate) fn finish_before(&mut self, following: &[u8]) -> Vec<u8> {
        let mut further = self.clone();
        let mut whole = further.push(following);
        whole.append(&mut further.finish());
        if self.reader == Audience::Person {
            self.undecided.clear();
        }
        let mut shown = self.finish();
        let same = shown.iter().zip(&whole).take_while(|(one, other)| one == other).count();
        if same < shown.len() {
            shown.truncate(same);
            shown.extend_from_slice(REDACTED);
        }
        shown
    }

    /// What comes next was not printed right after this. What may have been the beginning of a secret is taken for one.
    pub(crate) fn cut(&mut self) -> Vec<u8> {
        let held = self.finish();
        if held.is_empty() { held } else { REDACTED.to_vec() }
    }

    /// Shows text, without what is from before.
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
        match self.reader {
            Audience::Person => shown.extend_from_slice(safe(&text).as_bytes()),
            Audience::Program => shown.extend_from_slice(text.as_bytes()),
        }
    }

    fn no_text<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        match self.reader {
            Audience::Person => REPLACEMENT,
            Audience::Program => bytes,
        }
    }
}

/// Writes it to standard output, at once.
pub(crate) fn write_out(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
#[path = "output_filter_tests.rs"]
mod tests;
