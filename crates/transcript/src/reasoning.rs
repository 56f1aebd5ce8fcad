//! What the model thought before it answered, as styled lines.

use std::time::Duration;

use crate::style::{Span, Style, StyledLine};
use crate::text::{format_count, format_duration};
use crate::wrap::wrap_spans;

/// Reasoning as one line: `thought for 4 s, 120 words`. A duration of zero is left out, since it is not known.
pub fn reasoning_summary(text: &str, took: Duration) -> StyledLine {
    let took = match u64::try_from(took.as_millis()).unwrap_or(u64::MAX) {
        0 => String::new(),
        milliseconds => format!(" for {}", format_duration(milliseconds)),
    };
    let words = format_count(text.split_whitespace().count() as u64, "word");
    StyledLine::dim(format!("thought{took}, {words}"))
}

/// The whole reasoning, with a bar before each row that separates it from the answer.
pub fn reasoning_lines(text: &str, width: u16) -> Vec<StyledLine> {
    let bar = [Span::dim("▌ ")];
    let style = Style::new().dim().italic();
    text.trim().lines().flat_map(|line| wrap_spans(&[Span::styled(line, style)], width, &bar, &bar)).collect()
}
