//! Wraps styled lines into rows of a terminal: broken at words, never wider than the terminal, without control characters.

use std::borrow::Cow;

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::style::{Span, Style, StyledLine};
use crate::text::sanitize;

/// A tab is shown with a fixed width: its stop depends on the text before it, which wrapping moves.
const TAB_SPACES: &str = "    ";

/// Stands for a character that is wider than a whole row, such as a wide one in a terminal of one column.
const TOO_WIDE: &str = "\u{fffd}";

/// Breaks a line at words into rows of at most `width` columns. Rows after the first begin with `indent`, in the style of the
/// line's first span. A word that is longer than a row is broken. The result has at least one row.
pub fn wrap_line(line: &StyledLine, width: u16, indent: &str) -> Vec<StyledLine> {
    let style = line.spans.first().map(|span| span.style).unwrap_or_default();
    wrap_spans(&line.spans, width, &[], &[Span::styled(indent, style)])
}

/// Wraps spans behind a prefix: `first` stands before the first row and `others` before the rest. A prefix gets at most half
/// of the width.
pub fn wrap_spans(spans: &[Span], width: u16, first: &[Span], others: &[Span]) -> Vec<StyledLine> {
    let width = usize::from(width.max(1));
    let max_prefix = max_prefix_width(width);
    let (first, others) = (take_columns(first, max_prefix), take_columns(others, max_prefix));
    let max_word_width = width - first.columns.max(others.columns);
    let mut rows = RowBuilder {
        width,
        max_word_width,
        row: first,
        others,
        has_text: false,
        gap: SpanRun::default(),
        word: SpanRun::default(),
        rows: Vec::new(),
    };
    for span in spans {
        for cluster in sanitize_line(&span.content).graphemes(true) {
            rows.push(cluster, span.style);
        }
    }
    rows.finish()
}

/// Columns that are left for text behind this prefix.
pub(crate) fn width_after(prefix: &[Span], width: u16) -> usize {
    let width = usize::from(width.max(1));
    width - take_columns(prefix, max_prefix_width(width)).columns
}

/// A prefix may take half of a row, but must leave room for one wide character.
fn max_prefix_width(width: usize) -> usize {
    (width / 2).min(width.saturating_sub(2))
}

/// Cuts a line to one row, with `…` at its end where something is cut off.
pub fn truncate_line(line: &StyledLine, width: u16) -> StyledLine {
    let width = usize::from(width.max(1));
    let whole = take_columns(&line.spans, width);
    if whole.is_complete {
        return StyledLine::from(whole.spans);
    }
    let mut row = take_columns(&line.spans, width - 1);
    let style = row.spans.last().map(|span| span.style).unwrap_or_default();
    row.push("…", style);
    StyledLine::from(row.spans)
}

/// Columns that a text takes in a terminal.
pub fn text_width(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// Columns that several spans take.
pub fn spans_width(spans: &[Span]) -> usize {
    spans.iter().map(|span| text_width(&span.content)).sum()
}

/// Puts a text on one line and removes what could control a terminal.
pub(crate) fn sanitize_line(text: &str) -> Cow<'_, str> {
    let is_safe = |letter: char| {
        !letter.is_control() && !matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    match text.chars().all(is_safe) {
        true => Cow::Borrowed(text),
        false => {
            let text = sanitize(text).replace('\t', TAB_SPACES);
            Cow::Owned(text.replace(['\n', '\u{2028}', '\u{2029}'], " "))
        }
    }
}

/// Spans with their width.
#[derive(Debug, Default, Clone)]
struct SpanRun {
    spans: Vec<Span>,
    columns: usize,
    /// Nothing was cut off.
    is_complete: bool,
}

impl SpanRun {
    /// Adds a grapheme cluster.
    fn push(&mut self, cluster: &str, style: Style) {
        self.columns += cluster.width();
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.content.push_str(cluster),
            _ => self.spans.push(Span::styled(cluster, style)),
        }
    }

    fn append(&mut self, other: &mut Self) {
        self.columns += std::mem::take(&mut other.columns);
        for span in other.spans.drain(..) {
            match self.spans.last_mut() {
                Some(last) if last.style == span.style => last.content.push_str(&span.content),
                _ => self.spans.push(span),
            }
        }
    }

    fn clear(&mut self) {
        self.spans.clear();
        self.columns = 0;
    }
}

/// The beginning of some spans, at most `max` columns wide.
fn take_columns(spans: &[Span], max: usize) -> SpanRun {
    let mut run = SpanRun { is_complete: true, ..SpanRun::default() };
    for span in spans {
        for cluster in sanitize_line(&span.content).graphemes(true) {
            if run.columns + cluster.width() > max {
                run.is_complete = false;
                return run;
            }
            run.push(cluster, span.style);
        }
    }
    run
}

/// Fills rows word by word.
struct RowBuilder {
    width: usize,
    max_word_width: usize,
    row: SpanRun,
    others: SpanRun,
    /// The row has text behind its prefix.
    has_text: bool,
    /// White space after the last word. It is dropped if the next word begins a new row.
    gap: SpanRun,
    word: SpanRun,
    rows: Vec<StyledLine>,
}

impl RowBuilder {
    fn push(&mut self, cluster: &str, style: Style) {
        let columns = cluster.width();
        if is_break(cluster) {
            self.place_word();
            self.gap.push(cluster, style);
        } else if columns > self.max_word_width {
            self.push(TOO_WIDE, style);
        } else if columns > 1 {
            // Scripts of wide characters have no spaces, and an emoji is a word.
            self.place_word();
            self.word.push(cluster, style);
            self.place_word();
        } else {
            if self.word.columns + columns > self.max_word_width {
                self.place_word();
            }
            self.word.push(cluster, style);
        }
    }

    fn place_word(&mut self) {
        if self.word.spans.is_empty() {
            return;
        }
        if self.row.columns + self.gap.columns + self.word.columns > self.width {
            self.gap.clear();
            if self.has_text {
                self.end_row();
            }
        }
        self.row.append(&mut self.gap);
        self.row.append(&mut self.word);
        self.has_text = true;
    }

    fn end_row(&mut self) {
        let row = std::mem::replace(&mut self.row, self.others.clone());
        self.rows.push(StyledLine::from(row.spans));
        self.has_text = false;
    }

    fn finish(mut self) -> Vec<StyledLine> {
        self.place_word();
        if !self.has_text {
            let used = self.row.spans.iter().rposition(|span| !is_break(&span.content));
            self.row.spans.truncate(used.map_or(0, |at| at + 1));
        }
        self.end_row();
        self.rows
    }
}

/// Whether a row may end at this cluster: at white space, except for the kinds that forbid a break.
fn is_break(cluster: &str) -> bool {
    let is_breaking =
        |letter: char| letter.is_whitespace() && !matches!(letter, '\u{a0}' | '\u{202f}' | '\u{2007}');
    cluster.chars().all(is_breaking)
}

#[cfg(test)]
#[path = "wrap_tests.rs"]
mod tests;
