//! Reads a task's output for the model: as plain text, without secrets, also where it is cut.
//!
//! A cut may go through a character, an escape sequence or a secret, and no part of it may show. So the reader reads
//! more than it shows, and shows only what reads the same with and without the bytes beyond the cut. Where the keeper
//! has dropped those bytes, the reader leaves out whole lines instead.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use longhaul_keeper::{Output, Result};
use longhaul_protocol::{At, TaskStatus};

use super::cut_edges::text_between_cuts;
use super::plain_text;
use super::{TruncatedPart, truncate_middle};
use crate::{OutputLimit, Redact};

/// Bytes of an output that are kept for reading on.
pub(crate) const MAX_KEPT_OUTPUT_BYTES: usize = 1 << 20;
/// Bytes that are reserved for the marker between head and tail.
const MARKER_BYTES: usize = 128;
/// A cut moves to the end of a line, if one is within this many bytes.
const MAX_LINE_BYTES: usize = 4096;
/// Bytes to read beyond a cut. A longer secret is not recognised there.
const CUT_MARGIN_BYTES: usize = 16 << 10;
/// Bytes to leave out beside a dropped range, if no line ends near.
const TORN_BYTES: usize = 512;
/// The tail of an ended task: lines, bytes, and bytes to read for it, because escape sequences take room, too.
const TAIL_LINES: usize = 20;
const TAIL_BYTES: usize = 2 << 10;
const TAIL_READ_BYTES: u64 = 16 << 10;
/// An unfinished last line is shown after this time without output.
pub(crate) const LINE_SETTLE_TIME: Duration = Duration::from_secs(1);

/// A text, and the lines in it that stand for dropped bytes.
#[derive(Debug, Default)]
pub(crate) struct OutputText {
    pub(crate) text: String,
    pub(crate) gaps: Vec<OutputGap>,
}

/// A marker line that stands for bytes that the keeper has not kept.
#[derive(Debug)]
pub(crate) struct OutputGap {
    pub(crate) line: Range<usize>,
    pub(crate) bytes: u64,
}

impl OutputText {
    /// Adds the bytes that the keeper dropped within the truncated part. Their lines were not counted.
    pub(crate) fn with_dropped_bytes(&self, missing: &TruncatedPart) -> TruncatedPart {
        let is_within =
            |gap: &&OutputGap| missing.range.start <= gap.line.start && gap.line.end <= missing.range.end;
        let bytes = self.gaps.iter().filter(is_within).fold(missing.bytes, |bytes, gap| {
            // The marker line was not printed by the command.
            bytes.saturating_sub(gap.line.len() as u64) + gap.bytes
        });
        let lines = missing.lines.filter(|_| self.gaps.is_empty());
        TruncatedPart { lines, bytes, ..missing.clone() }
    }

    /// The part of the text that is kept for reading on.
    pub(crate) fn kept(&self) -> String {
        let kept = truncate_middle(
            &self.text,
            OutputLimit { lines: usize::MAX, bytes: MAX_KEPT_OUTPUT_BYTES },
            |missing| format!("[… {} were not kept …]", self.with_dropped_bytes(missing)),
        );
        kept.unwrap_or_else(|| self.text.clone())
    }

    pub(crate) fn line_count(&self) -> u64 {
        self.text.lines().count() as u64
    }

    fn add(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn add_gap(&mut self, bytes: u64) {
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
        let begins = self.text.len();
        self.text.push_str(&format!("[… {bytes} bytes were not kept …]\n"));
        self.gaps.push(OutputGap { line: begins..self.text.len(), bytes });
    }
}

/// Reads one task's output.
pub(crate) struct OutputReader<'a> {
    output: &'a Output,
    redact: &'a Redact,
}

/// Bytes that follow each other in the output.
struct OutputChunk {
    at: u64,
    bytes: Vec<u8>,
}

impl OutputChunk {
    fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }
}

/// Bytes to show, with those around them. On a side without any, something may be torn.
struct OutputExcerpt {
    at: u64,
    before: Vec<u8>,
    shown: Vec<u8>,
    after: Vec<u8>,
    begins_torn: bool,
    ends_torn: bool,
}

impl OutputExcerpt {
    fn end(&self) -> u64 {
        self.at + self.shown.len() as u64
    }

    /// Leaves out what is torn, and the rest of a line in front of the cut, which still counts as context.
    fn text(mut self, redact: &Redact) -> String {
        let at_start = if self.begins_torn {
            torn_prefix_len(&self.shown)
        } else if !self.before.is_empty() && !self.before.ends_with(b"\n") {
            first_line_end(&self.shown).unwrap_or(0)
        } else {
            0
        };
        self.before.extend(self.shown.drain(..at_start));
        let end = if self.ends_torn {
            len_before_tear(&self.shown)
        } else if !self.after.is_empty() {
            last_line_end(&self.shown).unwrap_or(self.shown.len())
        } else {
            self.shown.len()
        };
        self.after.splice(..0, self.shown.drain(end..));
        text_between_cuts(&self.before, &self.shown, &self.after, redact).text
    }
}

impl<'a> OutputReader<'a> {
    pub(crate) fn new(output: &'a Output, redact: &'a Redact) -> Self {
        Self { output, redact }
    }

    /// The offset up to which the output can be shown. While the command runs, its last line counts only when it is
    /// complete or [`LINE_SETTLE_TIME`] has passed: half of a secret looks like any other word.
    pub(crate) fn readable_end(&self, status: TaskStatus) -> Result<u64> {
        let printed = self.output.printed()?;
        if status != TaskStatus::Running {
            return Ok(printed);
        }
        let settling = i64::try_from(LINE_SETTLE_TIME.as_millis()).unwrap_or(i64::MAX);
        let is_quiet = self.output.printed_at()?.is_none_or(|at| unix_millis_now() - at.0 >= settling);
        let from = printed.saturating_sub(MAX_LINE_BYTES as u64);
        let Some(last) = self.chunks(from, printed, MAX_LINE_BYTES)?.pop() else { return Ok(printed) };
        let lines = last.bytes.iter().rposition(|byte| *byte == b'\n').map(|end| end + 1);
        let end = match lines {
            Some(lines) if !is_quiet => lines,
            _ => len_of_whole_characters(&last.bytes),
        };
        Ok(last.at + end as u64)
    }

    /// Head and tail of the output up to an offset. Holds at most [`MAX_KEPT_OUTPUT_BYTES`] in memory.
    pub(crate) fn read_all(&self, end: u64) -> Result<OutputText> {
        self.read_head_and_tail(0..end, MAX_KEPT_OUTPUT_BYTES)
    }

    /// Head and tail of a range, together at most `most` bytes.
    pub(crate) fn read_head_and_tail(&self, part: Range<u64>, most: usize) -> Result<OutputText> {
        let half = most.saturating_sub(MARKER_BYTES) as u64 / 2;
        let Range { start, end } = part;
        let (head_end, tail_start) =
            if end.saturating_sub(start) <= 2 * half { (end, end) } else { (start + half, end - half) };
        let mut text = OutputText::default();
        let mut shown_to = start;
        for span in [start..head_end, tail_start..end] {
            for excerpt in self.excerpts(&span, end)? {
                if excerpt.at > shown_to {
                    text.add_gap(excerpt.at - shown_to);
                }
                shown_to = excerpt.end();
                text.add(&excerpt.text(self.redact));
            }
        }
        Ok(text)
    }

    /// Up to `most` kept bytes from an offset on, and the offset to read on from: the end of a line, if one is near.
    pub(crate) fn read_from(&self, offset: u64, most: usize, end: u64) -> Result<(OutputText, u64)> {
        let mut text = OutputText::default();
        let mut chunks = self.chunks(offset, end, most.max(1))?;
        let Some(last) = chunks.pop() else { return Ok((text, offset.max(end))) };
        let mut shown_to = offset;
        let before = self.bytes_before(offset)?;
        for chunk in chunks {
            if chunk.at > shown_to {
                text.add_gap(chunk.at - shown_to);
            }
            shown_to = chunk.end();
            let begins_torn = chunk.at > offset;
            let before = if begins_torn { Vec::new() } else { before.clone() };
            let (at, shown) = (chunk.at, chunk.bytes);
            let excerpt =
                OutputExcerpt { at, before, shown, after: Vec::new(), begins_torn, ends_torn: true };
            text.add(&excerpt.text(self.redact));
        }
        if last.at > shown_to {
            text.add_gap(last.at - shown_to);
        }
        let (next, begins_torn) = (last.end(), last.at > offset);
        let (mut before, mut shown) = (before, last.bytes);
        if begins_torn {
            before = shown.drain(..torn_prefix_len(&shown)).collect();
        }
        self.end_at_boundary(text, &before, shown, next, end)
    }

    /// Ends a read at the end of a line, or else where no character, escape sequence or secret goes on.
    fn end_at_boundary(
        &self,
        mut text: OutputText,
        before: &[u8],
        mut shown: Vec<u8>,
        next: u64,
        end: u64,
    ) -> Result<(OutputText, u64)> {
        let mut after = self.bytes_after(next, end)?;
        if after.is_empty() {
            if next < end {
                after = shown.split_off(len_before_tear(&shown));
            }
            text.add(&text_between_cuts(before, &shown, &after, self.redact).text);
            return Ok((text, next));
        }
        if let Some(lines) = last_line_end(&shown) {
            let left = (shown.len() - lines) as u64;
            after.splice(..0, shown.drain(lines..));
            text.add(&text_between_cuts(before, &shown, &after, self.redact).text);
            return Ok((text, next - left));
        }
        let line = after.iter().take(MAX_LINE_BYTES).position(|byte| *byte == b'\n').map(|end| end + 1);
        let steps = [0, 1, 2, 3].into_iter().chain([64, 256, 1024, MAX_LINE_BYTES]).chain(line);
        for step in steps.filter(|step| *step <= after.len()) {
            let longer = [&shown, &after[..step]].concat();
            let between = text_between_cuts(before, &longer, &after[step..], self.redact);
            if between.ends_well {
                text.add(&between.text);
                return Ok((text, next + step as u64));
            }
        }
        text.add(&text_between_cuts(before, &shown, &after, self.redact).text);
        Ok((text, next))
    }

    pub(crate) fn read_tail(&self, end: u64) -> Result<String> {
        let text =
            self.read_head_and_tail(end.saturating_sub(TAIL_READ_BYTES)..end, MAX_KEPT_OUTPUT_BYTES)?.text;
        let lines: usize = text.split_inclusive('\n').rev().take(TAIL_LINES).map(str::len).sum();
        let from = text.len() - lines.min(TAIL_BYTES);
        Ok(text[text.ceil_char_boundary(from)..].to_owned())
    }

    fn bytes_before(&self, offset: u64) -> Result<Vec<u8>> {
        let from = offset.saturating_sub(CUT_MARGIN_BYTES as u64);
        let last = self.chunks(from, offset, CUT_MARGIN_BYTES)?.pop();
        Ok(last.filter(|chunk| chunk.end() == offset).map_or_else(Vec::new, |chunk| chunk.bytes))
    }

    fn bytes_after(&self, offset: u64, end: u64) -> Result<Vec<u8>> {
        let first = self
            .chunks(offset, end.min(offset + CUT_MARGIN_BYTES as u64), CUT_MARGIN_BYTES)?
            .into_iter()
            .next();
        Ok(first.filter(|chunk| chunk.at == offset).map_or_else(Vec::new, |chunk| chunk.bytes))
    }

    /// The kept parts of a range, with the bytes around them.
    fn excerpts(&self, span: &Range<u64>, end: u64) -> Result<Vec<OutputExcerpt>> {
        let from = span.start.saturating_sub(CUT_MARGIN_BYTES as u64);
        let to = end.min(span.end + CUT_MARGIN_BYTES as u64);
        let mut excerpts = Vec::new();
        for OutputChunk { at, mut bytes } in self.chunks(from, to, usize::MAX)? {
            let piece_end = at + bytes.len() as u64;
            let place =
                |offset: u64| usize::try_from(offset.clamp(at, piece_end) - at).unwrap_or(bytes.len());
            let (start, stop) = (place(span.start), place(span.end));
            let after = bytes.split_off(stop);
            let shown = bytes.split_off(start);
            if !shown.is_empty() {
                excerpts.push(OutputExcerpt {
                    at: at + start as u64,
                    begins_torn: bytes.is_empty() && at > 0,
                    ends_torn: after.is_empty() && piece_end < end,
                    before: bytes,
                    shown,
                    after,
                });
            }
        }
        Ok(excerpts)
    }

    /// The kept bytes between two offsets, at most `most`, in as few chunks as possible.
    fn chunks(&self, from: u64, to: u64, most: usize) -> Result<Vec<OutputChunk>> {
        let mut chunks: Vec<OutputChunk> = Vec::new();
        let (mut next, mut left) = (from, most);
        while next < to && left > 0 {
            let limit = usize::try_from(to - next).unwrap_or(usize::MAX).min(left);
            let mut chunk = self.output.read(next, limit)?;
            let at = chunk.next - chunk.bytes.len() as u64;
            if chunk.next == next || at >= to {
                break;
            }
            next = chunk.next;
            chunk.bytes.truncate(usize::try_from(to - at).unwrap_or(usize::MAX));
            left -= chunk.bytes.len();
            match chunks.last_mut() {
                Some(last) if last.end() == at => last.bytes.append(&mut chunk.bytes),
                _ if chunk.bytes.is_empty() => {}
                _ => chunks.push(OutputChunk { at, bytes: chunk.bytes }),
            }
        }
        Ok(chunks)
    }
}

/// The last line of an output that is not blank, as plain text, with its newline if it is complete.
pub fn last_output_line(output: &Output) -> Result<String> {
    let printed = output.printed()?;
    let chunk = output.read(printed.saturating_sub(MAX_LINE_BYTES as u64), MAX_LINE_BYTES)?;
    let text = plain_text(&chunk.bytes);
    let line = text.split_inclusive('\n').rfind(|line| !line.trim().is_empty());
    Ok(line.unwrap_or_default().to_owned())
}

/// Milliseconds since 1970.
pub(crate) fn unix_millis_now() -> i64 {
    At::from(SystemTime::now()).0
}

/// Where the last complete line ends, if that is near the end.
fn last_line_end(bytes: &[u8]) -> Option<usize> {
    let near_end = bytes.len().saturating_sub(MAX_LINE_BYTES);
    bytes[near_end..].iter().rposition(|byte| *byte == b'\n').map(|end| near_end + end + 1)
}

/// Where the first line ends, if that is near the start and something follows.
fn first_line_end(bytes: &[u8]) -> Option<usize> {
    let near_start = &bytes[..bytes.len().min(MAX_LINE_BYTES)];
    let end = near_start.iter().position(|byte| *byte == b'\n')?;
    (end + 1 < bytes.len()).then_some(end + 1)
}

/// Bytes to show in front of a dropped range.
fn len_before_tear(bytes: &[u8]) -> usize {
    last_line_end(bytes)
        .unwrap_or_else(|| len_of_whole_characters(&bytes[..bytes.len().saturating_sub(TORN_BYTES)]))
}

/// Bytes to leave out behind a dropped range.
fn torn_prefix_len(bytes: &[u8]) -> usize {
    first_line_end(bytes).unwrap_or_else(|| {
        let from = bytes.len().min(TORN_BYTES);
        let rest = bytes[from..].iter().take_while(|byte| is_continuation_byte(**byte)).take(3);
        from + rest.count()
    })
}

/// Bytes without an incomplete last character.
fn len_of_whole_characters(bytes: &[u8]) -> usize {
    let last = bytes.iter().rposition(|byte| !is_continuation_byte(*byte)).unwrap_or(0);
    match str::from_utf8(&bytes[last..]) {
        Err(error) if error.error_len().is_none() => last,
        _ => bytes.len(),
    }
}

fn is_continuation_byte(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}
