//! Collects a range of lines out of a stream of any length.

/// Collects a range of lines of the bytes that it is fed, and counts all lines. What it holds is bounded by
/// `max_bytes`.
#[derive(Debug)]
pub(super) struct LineCollector {
    range: LineRange,
    text: Vec<u8>,
    /// The current line, from 1; where it begins in `text`; and its bytes so far.
    line: u64,
    line_begins: usize,
    line_bytes: u64,
    /// The last line that was collected, whole or cut.
    last_taken: Option<u64>,
    is_full: bool,
}

/// The lines to collect.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineRange {
    /// The first line, from 1.
    pub(super) first: u64,
    pub(super) lines: u64,
    /// At most this many bytes, in whole lines.
    pub(super) max_bytes: usize,
    /// A longer line is cut.
    pub(super) max_line_bytes: usize,
}

/// The collected lines.
#[derive(Debug)]
pub(super) struct CollectedLines {
    pub(super) text: Vec<u8>,
    /// The last collected line; `None` if the file ends before the first.
    pub(super) last: Option<u64>,
    /// All lines of the file.
    pub(super) total: u64,
}

impl LineCollector {
    pub(super) fn new(range: LineRange) -> Self {
        Self {
            range,
            text: Vec::new(),
            line: 1,
            line_begins: 0,
            line_bytes: 0,
            last_taken: None,
            is_full: false,
        }
    }

    /// Adds the next bytes of the file.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.take(&bytes[..end]);
            self.end_line(b"\n");
            self.line += 1;
            bytes = &bytes[end + 1..];
        }
        self.take(bytes);
    }

    /// Ends the file.
    pub(super) fn finish(mut self) -> CollectedLines {
        let ends_in_a_line = self.line_bytes > 0;
        if ends_in_a_line {
            self.end_line(b"");
        }
        CollectedLines {
            text: self.text,
            last: self.last_taken,
            total: self.line - u64::from(!ends_in_a_line),
        }
    }

    fn is_in_range(&self) -> bool {
        let first = self.range.first;
        !self.is_full && self.line >= first && self.line - first < self.range.lines
    }

    fn take(&mut self, part: &[u8]) {
        if self.is_in_range() {
            let room = self.range.max_line_bytes.saturating_sub(self.text.len() - self.line_begins);
            self.text.extend_from_slice(&part[..part.len().min(room)]);
        }
        self.line_bytes += part.len() as u64;
    }

    fn end_line(&mut self, ending: &[u8]) {
        if self.is_in_range() {
            let kept = self.text.len() - self.line_begins;
            if (kept as u64) < self.line_bytes {
                self.cut_between_characters();
                self.text
                    .extend_from_slice(format!(" … [cut: a line of {} bytes]", self.line_bytes).as_bytes());
            }
            self.text.extend_from_slice(ending);
            if self.text.len() > self.range.max_bytes && self.last_taken.is_some() {
                self.text.truncate(self.line_begins);
                self.is_full = true;
            } else {
                self.last_taken = Some(self.line);
            }
        }
        self.line_begins = self.text.len();
        self.line_bytes = 0;
    }

    fn cut_between_characters(&mut self) {
        if let Err(error) = str::from_utf8(&self.text[self.line_begins..])
            && error.error_len().is_none()
        {
            self.text.truncate(self.line_begins + error.valid_up_to());
        }
    }
}

#[cfg(test)]
#[path = "line_range_tests.rs"]
mod tests;
