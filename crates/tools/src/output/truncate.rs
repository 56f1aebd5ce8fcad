//! C8: what of a long output the model gets to read: its head and its tail, and between them a line that says what is missing
//! and how to read it.

use std::ops::Range;

use longhaul_protocol::CallId;

use crate::{Cap, display};

/// Head and tail of an output that is too long, which together with the line between them stay within the cap. `None`: it
/// fits as it is.
pub fn cap(text: &str, cap: Cap, call: CallId) -> Option<String> {
    truncate_middle(text, cap, |missing| missing.marker(call))
}

/// What a marker stands for.
#[derive(Debug, Clone)]
pub(crate) struct TruncatedPart {
    /// Where it was in the text.
    pub(crate) range: Range<usize>,
    /// Absent if nobody has counted them.
    pub(crate) lines: Option<usize>,
    pub(crate) bytes: u64,
}

impl TruncatedPart {
    fn of(text: &str, range: Range<usize>) -> Self {
        let missing = &text[range.clone()];
        Self { range, lines: Some(missing.lines().count()), bytes: missing.len() as u64 }
    }

    /// The line that stands in its place, for the output of this call.
    pub(crate) fn marker(&self, call: CallId) -> String {
        format!("[… {self} are missing here; read_file with the path \"output:{call}\" reads the whole …]")
    }
}

impl std::fmt::Display for TruncatedPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.lines {
            Some(lines) => write!(f, "{lines} lines ({} bytes)", self.bytes),
            None => write!(f, "{} bytes", self.bytes),
        }
    }
}

/// The same, with any marker. It must be one line, and not grow when less is missing.
pub(crate) fn truncate_middle(
    text: &str,
    cap: Cap,
    marker: impl Fn(&TruncatedPart) -> String,
) -> Option<String> {
    if text.len() <= cap.bytes && text.lines().count() <= cap.lines {
        return None;
    }
    let longest = marker(&TruncatedPart::of(text, 0..text.len()));
    // The marker's own line, and the end of the line before it.
    let Some(room) = cap.bytes.checked_sub(longest.len() + 2) else {
        return Some(display::truncate_str(&longest, cap.bytes).to_owned());
    };
    let lines = cap.lines.saturating_sub(1);
    let head = head(text, lines.div_ceil(2), room.div_ceil(2));
    let tail = tail(text, lines / 2, room / 2);
    let missing = TruncatedPart::of(text, head.len()..text.len() - tail.len());
    let end_of_head = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    Some(format!("{head}{end_of_head}{}\n{tail}", marker(&missing)))
}

/// The first lines of a text, and only so many bytes of them: cut at the end of a line where one is near.
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

/// The last lines, likewise.
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
