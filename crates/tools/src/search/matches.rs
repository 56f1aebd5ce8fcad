//! Collects matching lines, within limits.

use std::io::{self, Read};

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

use crate::blocking_run::CancelFlag;
use crate::display::truncate_str;

const MAX_MATCHES: usize = 500;
const MAX_LINE_BYTES: usize = 500;
/// Bytes of all lines: with context there are more lines than matches.
const MAX_TOTAL_BYTES: usize = 1 << 20;

/// The matches so far.
#[derive(Debug, Default)]
pub(super) struct SearchMatches {
    pub(super) lines: Vec<String>,
    bytes: usize,
    count: usize,
    is_full: bool,
}

impl SearchMatches {
    pub(super) fn is_full(&self) -> bool {
        self.is_full
    }

    pub(super) fn note(&self) -> Option<String> {
        let count = self.count;
        self.is_full.then(|| {
            format!("[the first {count} matches; there are more: use a narrower pattern, path or glob]")
        })
    }

    /// Collects the matches of one file.
    pub(super) fn of_file<'a>(&'a mut self, shown: &'a str, cancel: &'a CancelFlag) -> FileMatches<'a> {
        let (lines, bytes, count) = (self.lines.len(), self.bytes, self.count);
        FileMatches {
            matches: self,
            shown,
            cancel,
            lines_before: lines,
            bytes_before: bytes,
            count_before: count,
        }
    }
}

/// The matches of one file. If the file turns out to be binary, none of them count.
pub(super) struct FileMatches<'a> {
    matches: &'a mut SearchMatches,
    shown: &'a str,
    cancel: &'a CancelFlag,
    lines_before: usize,
    bytes_before: usize,
    count_before: usize,
}

impl FileMatches<'_> {
    fn push(&mut self, line: Option<u64>, mark: char, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let (shown, line) = (self.shown, line.unwrap_or(0));
        let line = match truncate_str(text, MAX_LINE_BYTES) {
            short if short.len() < text.len() => {
                format!("{shown}{mark}{line}{mark}{short} … [cut: a line of {} bytes]", text.len())
            }
            whole => format!("{shown}{mark}{line}{mark}{whole}"),
        };
        self.matches.bytes += line.len() + 1;
        self.matches.lines.push(line);
    }
}

impl Sink for FileMatches<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.matches.count == MAX_MATCHES || self.matches.bytes >= MAX_TOTAL_BYTES {
            self.matches.is_full = true;
            return Ok(false);
        }
        self.matches.count += 1;
        self.push(found.line_number(), ':', found.bytes());
        Ok(!self.cancel.is_cancelled())
    }

    fn context(&mut self, _: &Searcher, found: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.push(found.line_number(), '-', found.bytes());
        Ok(true)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.matches.lines.push("--".to_owned());
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, finish: &SinkFinish) -> Result<(), io::Error> {
        if finish.binary_byte_offset().is_some() {
            self.matches.lines.truncate(self.lines_before);
            self.matches.bytes = self.bytes_before;
            self.matches.count = self.count_before;
            self.matches.is_full = false;
        }
        Ok(())
    }
}

/// A reader that fails once the search is cancelled, so that even one huge file does not hold it up.
pub(super) struct CancellableReader<'a, R>(pub(super) R, pub(super) &'a CancelFlag);

impl<R: Read> Read for CancellableReader<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.1.is_cancelled() {
            true => Err(io::Error::other("the search was cancelled")),
            false => self.0.read(buffer),
        }
    }
}
