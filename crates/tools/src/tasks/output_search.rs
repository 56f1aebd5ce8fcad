//! Searches a task's output for lines that match a regular expression.
//!
//! The search goes through the output in blocks that end with a line where one is near, so that memory does not depend
//! on the length of the output or of its lines. A line longer than a block is matched in parts that overlap.

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use longhaul_keeper::{Output, Result};

use crate::blocking_run::CancelFlag;
use crate::output::{OutputReader, OutputText};
use crate::{OutputLimit, display};

/// Bytes to search at once.
const BLOCK_BYTES: usize = 256 << 10;
/// The longest match that is found across two parts of a very long line.
const LINE_OVERLAP_BYTES: usize = 4096;
/// Bytes of a line to show, and of those in front of the match.
const MAX_LINE_BYTES: usize = 500;
const CONTEXT_BEFORE_MATCH: usize = 100;
/// Bytes and lines for the head of the result.
const HEAD_BYTES: usize = 1024;
const HEAD_LINES: usize = 6;

pub(super) struct OutputSearch<'a> {
    pub(super) printed: &'a OutputReader<'a>,
    pub(super) output: &'a Output,
    pub(super) matcher: &'a RegexMatcher,
    pub(super) output_limit: OutputLimit,
    pub(super) cancel: &'a CancelFlag,
}

/// The matching lines.
pub(super) struct OutputMatches {
    pub(super) text: OutputText,
    pub(super) lines: u64,
    pub(super) next: u64,
    pub(super) has_more: HasMore,
}

/// Whether more lines match than fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HasMore {
    Yes,
    No,
}

/// The lines so far, and the current line.
#[derive(Default)]
struct CollectedLines {
    text: String,
    lines: u64,
    bytes: usize,
    line: String,
    /// A part of the current line has matched already.
    is_shown: bool,
}

/// How one attempt ended.
enum SearchAttempt {
    Complete(OutputMatches),
    /// More lines match than fit, and the offset after them can't be counted: some may never be shown.
    Uncounted(OutputMatches),
}

impl OutputSearch<'_> {
    /// Searches from an offset on. If more lines match than fit and the offset after them can't be counted, it
    /// searches in smaller blocks: showing a line twice is better than never.
    pub(super) fn run(&self, offset: u64, end: u64) -> Result<OutputMatches> {
        let mut block = BLOCK_BYTES;
        loop {
            match self.attempt(offset, end, block)? {
                SearchAttempt::Complete(found) => return Ok(found),
                SearchAttempt::Uncounted(_) if block > 1 => block = (block / 4).max(1),
                SearchAttempt::Uncounted(found) => return Ok(found),
            }
        }
    }

    fn attempt(&self, offset: u64, end: u64, block: usize) -> Result<SearchAttempt> {
        let mut collected = CollectedLines::default();
        let mut at = offset;
        // No line has begun before this offset.
        let mut lines_begin = offset;
        while at < end && !self.cancel.is_cancelled() {
            let (text, next) = self.printed.read_from(at, block, end)?;
            if next <= at {
                break;
            }
            if let Some(lines) = self.search(&text, &mut collected) {
                return Ok(match self.after_lines(at..next, &text, lines)? {
                    Some(place) => SearchAttempt::Complete(collected.found(place, HasMore::Yes)),
                    None if lines_begin > offset => {
                        SearchAttempt::Complete(collected.found(lines_begin, HasMore::Yes))
                    }
                    None => SearchAttempt::Uncounted(collected.found(next, HasMore::Yes)),
                });
            }
            at = next;
            if collected.line.is_empty() {
                lines_begin = at;
            }
        }
        let line = std::mem::take(&mut collected.line);
        if !collected.is_shown {
            self.take(&line, &mut collected);
        }
        Ok(SearchAttempt::Complete(collected.found(at.max(offset.min(end)), HasMore::No)))
    }

    /// Searches a block. If there is no more room, returns how many of its lines fitted.
    fn search(&self, text: &OutputText, collected: &mut CollectedLines) -> Option<usize> {
        let (mut place, mut ends) = (0, 0);
        for part in text.text.split_inclusive('\n') {
            let is_marker = text.gaps.iter().any(|gap| gap.line.start == place);
            place += part.len();
            if is_marker {
                continue;
            }
            collected.line.push_str(part.trim_end_matches('\n'));
            if part.ends_with('\n') {
                let line = std::mem::take(&mut collected.line);
                if !std::mem::take(&mut collected.is_shown) && !self.take(&line, collected) {
                    return Some(ends);
                }
                ends += 1;
            }
        }
        if collected.line.len() > BLOCK_BYTES {
            let line = std::mem::take(&mut collected.line);
            if !collected.is_shown && self.matches(&line).is_some() {
                // If there is no room for it, the next line shows that.
                collected.is_shown = self.take(&line, collected);
            }
            collected.line = line[line.ceil_char_boundary(line.len() - LINE_OVERLAP_BYTES)..].to_owned();
        }
        None
    }

    /// Adds a line if it matches. `false` if there is no room.
    fn take(&self, line: &str, collected: &mut CollectedLines) -> bool {
        let Some(at) = self.matches(line) else { return true };
        let excerpt = excerpt(line, at);
        let bytes = excerpt.len() + 1;
        let room = self.output_limit.bytes.saturating_sub(HEAD_BYTES).max(self.output_limit.bytes / 4);
        let lines = usize::try_from(collected.lines).unwrap_or(usize::MAX);
        if collected.lines > 0
            && (collected.bytes + bytes > room || lines + HEAD_LINES >= self.output_limit.lines)
        {
            return false;
        }
        collected.text.push_str(&excerpt);
        collected.text.push('\n');
        collected.bytes += bytes;
        collected.lines += 1;
        true
    }

    /// The byte at which a line matches.
    fn matches(&self, line: &str) -> Option<usize> {
        self.matcher.find(line.as_bytes()).ok().flatten().map(|found| found.start())
    }

    /// The offset after this many lines of a block; `None` if lines can't be counted, because redaction turned a
    /// secret of several lines into one.
    fn after_lines(
        &self,
        block: std::ops::Range<u64>,
        text: &OutputText,
        lines: usize,
    ) -> Result<Option<u64>> {
        let chunk = self.output.read(block.start, BLOCK_BYTES.saturating_mul(2))?;
        let bytes = usize::try_from(block.end - block.start).unwrap_or(usize::MAX);
        let (None, Some(bytes)) = (chunk.dropped, chunk.bytes.get(..bytes)) else { return Ok(None) };
        let ends =
            || bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u64 + 1);
        if lines == 0 || ends().count() != text.text.matches('\n').count() {
            return Ok(None);
        }
        Ok(ends().nth(lines - 1).map(|at| block.start + at))
    }
}

impl CollectedLines {
    fn found(self, next: u64, has_more: HasMore) -> OutputMatches {
        OutputMatches {
            text: OutputText { text: self.text, gaps: Vec::new() },
            lines: self.lines,
            next,
            has_more,
        }
    }
}

/// The line; of a long one, the part around the match.
fn excerpt(line: &str, at: usize) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return line.to_owned();
    }
    let from = line.floor_char_boundary(at.saturating_sub(CONTEXT_BEFORE_MATCH));
    let rest = &line[from..];
    let shown = display::truncate_str(rest, MAX_LINE_BYTES);
    let (before, after) = (if from > 0 { "…" } else { "" }, if shown.len() < rest.len() { "…" } else { "" });
    format!("{before}{shown}{after}")
}
