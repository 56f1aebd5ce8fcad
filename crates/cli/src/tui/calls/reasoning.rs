//! What the model thought before it answered.

use std::time::Duration;

use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use crate::event_text::duration;
use crate::output::count;
use crate::tui::wrap::wrapped_after;

/// Reasoning folded to one line: `thought for 4 s, 120 words`. How long is left out where it is not known.
pub(crate) fn folded_reasoning(text: &str, took: Duration) -> Line<'static> {
    let took = match u64::try_from(took.as_millis()).unwrap_or(u64::MAX) {
        0 => String::new(),
        milliseconds => format!(" for {}", duration(milliseconds)),
    };
    let words = count(text.split_whitespace().count() as u64, "word");
    Line::from(format!("thought{took}, {words}").dim())
}

/// Reasoning as it is, apart from the answer by a bar before it.
pub(crate) fn open_reasoning(text: &str, width: u16) -> Vec<Line<'static>> {
    let bar = [Span::from("▌ ").dim()];
    let line = |line: &str| wrapped_after(&[Span::raw(line.to_owned()).dim().italic()], width, &bar, &bar);
    text.trim().lines().flat_map(line).collect()
}
