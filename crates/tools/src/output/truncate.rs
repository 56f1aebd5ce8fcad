//! C8: truncation of an output that is too long for the model. Its head and its tail stay; a marker line between them
//! says what is missing and how to read it.

use std::ops::Range;

use longhaul_protocol::CallId;

use crate::{OutputLimit, display};

/// Truncates an output to its head and tail. Both and the marker between them stay within `output_limit`. `None` if the output
/// fits as it is.
pub fn truncate_output(text: &str, output_limit: OutputLimit, call: CallId) -> Option<String> {
    truncate_middle(text, output_limit, |missing| missing.marker(call))
}

/// The part of a text that truncation left out.
#[derive(Debug, Clone)]
pub(crate) struct TruncatedPart {
    /// Its position in the text, in bytes.
    pub(crate) range: Range<usize>,
    /// `None` if the lines were not counted.
    pub(crate) lines: Option<usize>,
    pub(crate) bytes: u64,
}

impl TruncatedPart {
    fn of(text: &str, range: Range<usize>) -> Self {
        let missing = &text[range.clone()];
        Self { range, lines: Some(missing.lines().count()), bytes: missing.len() as u64 }
    }

    /// The marker for the output of this call.
    pub(crate) fn marker(&self, call: CallId) -> String {
        format!("[… {self} missing here; read_file with the path \"output:{call}\" reads the whole …]")
    }
}

impl std::fmt::Display for TruncatedPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.lines {
            Some(1) => write!(f, "1 line ({} bytes) is", self.bytes),
            Some(lines) => write!(f, "{lines} lines ({} bytes) are", self.bytes),
            None => write!(f, "{} bytes are", self.bytes),
        }
    }
}

/// Cuts the middle out of a text that exceeds the limit. `marker` formats the line that replaces the missing part. It
/// must not get longer when less is missing.
pub(crate) fn truncate_middle(
    text: &str,
    output_limit: OutputLimit,
    marker: impl Fn(&TruncatedPart) -> String,
) -> Option<String> {
    if text.len() <= output_limit.bytes && text.lines().count() <= output_limit.lines {
        return None;
    }
    let longest = marker(&TruncatedPart::of(text, 0..text.len()));
    // The newline of the marker, and the one that may be missing before it.
    let Some(room) = output_limit.bytes.checked_sub(longest.len() + 2) else {
        return Some(display::truncate_str(&longest, output_limit.bytes).to_owned());
    };
    let lines = output_limit.lines.saturating_sub(1);
    let head = head(text, lines.div_ceil(2), room.div_ceil(2));
    let tail = tail(text, lines / 2, room / 2);
    let missing = TruncatedPart::of(text, head.len()..text.len() - tail.len());
    let end_of_head = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    Some(format!("{head}{end_of_head}{}\n{tail}", marker(&missing)))
}

/// The first lines, at most `bytes` of them, cut at the end of a line if one is near.
fn head(text: &str, lines: usize, bytes: usize) -> &str {
    let by_lines = text.split_inclusive('\n').take(lines).map(str::len).sum::<usize>();
    if by_lines <= bytes {
        return &text[..by_lines];
    }
    let by_bytes = display::truncate_str(text, bytes);
    match by_bytes.rfind('\n') {
        Some(end) if end >= bytes / 2 => &by_bytes[..=end],
        _ => by_bytes,
    }
}

/// The last lines, at most `bytes` of them, cut at the start of a line if one is near.
fn tail(text: &str, lines: usize, bytes: usize) -> &str {
    let by_lines = text.split_inclusive('\n').rev().take(lines).map(str::len).sum::<usize>();
    if by_lines <= bytes {
        return &text[text.len() - by_lines..];
    }
    let by_bytes = &text[text.ceil_char_boundary(text.len() - bytes)..];
    match by_bytes.find('\n') {
        Some(end) if end + 1 < by_bytes.len() && end < bytes / 2 => &by_bytes[end + 1..],
        _ => by_bytes,
    }
}

#[cfg(test)]
#[path = "truncate_tests.rs"]
mod tests;
