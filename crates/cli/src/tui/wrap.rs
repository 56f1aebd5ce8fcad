//! Styled lines as rows of a terminal: broken at words, none wider than the terminal, and with nothing in them that drives it.

use std::borrow::Cow;

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::output::safe;

/// How wide a tab is shown: where its stop would be depends on what is before it, and a terminal that wraps has its own idea.
const TAB: &str = "    ";

/// Stands for a character that has no room even alone, as a wide one in a terminal of one column.
const NO_ROOM: &str = "\u{fffd}";

/// Breaks a line at words into rows of at most so many columns; the rows after the first begin with `indent`, if there is room
/// for it. A word that is too long for a row is broken. There is always at least one row.
pub(crate) fn wrapped(line: &Line<'_>, width: u16, indent: &str) -> Vec<Line<'static>> {
    let mut rows = wrapped_after(&line.spans, width, &[], &[Span::raw(indent.to_owned())]);
    for row in &mut rows {
        row.style = line.style;
        row.alignment = line.alignment;
    }
    rows
}

/// The same for spans, with what stands before the first row and before the others.
pub(crate) fn wrapped_after(
    spans: &[Span<'_>],
    width: u16,
    first: &[Span<'_>],
    others: &[Span<'_>],
) -> Vec<Line<'static>> {
    let width = usize::from(width.max(1));
    let most = most_before(width);
    let (first, others) = (cut(first, most), cut(others, most));
    let longest_word = width - first.columns.max(others.columns);
    let mut rows = Rows {
        width,
        longest_word,
        row: first,
        others,
        is_begun: false,
        gap: Piece::default(),
        word: Piece::default(),
        done: Vec::new(),
    };
    for span in spans {
        for cluster in clean(&span.content).graphemes(true) {
            rows.push(cluster, span.style);
        }
    }
    rows.finish()
}

/// How many columns are left for text in a row with this before it.
pub(crate) fn room_after(before: &[Span<'_>], width: u16) -> usize {
    let width = usize::from(width.max(1));
    width - cut(before, most_before(width)).columns
}

/// So much of a row may stand before the text. Half of it is enough; and a wide character must have room.
fn most_before(width: usize) -> usize {
    (width / 2).min(width.saturating_sub(2))
}

/// As much of a line as fits in one row; `…` at its end if that is not all.
pub(crate) fn one_row(line: &Line<'_>, width: u16) -> Line<'static> {
    let width = usize::from(width.max(1));
    let whole = cut(&line.spans, width);
    let is_whole = whole.has_all;
    let mut row = match is_whole {
        true => whole,
        false => cut(&line.spans, width - 1),
    };
    if !is_whole {
        let style = row.spans.last().map_or_else(Style::default, |span| span.style);
        row.push("…", style);
    }
    Line { style: line.style, alignment: line.alignment, spans: row.spans }
}

/// How many columns a text takes in a terminal.
pub(crate) fn columns(text: &str) -> usize {
    text.graphemes(true).map(UnicodeWidthStr::width).sum()
}

/// The columns of several spans.
pub(crate) fn columns_of(spans: &[Span<'_>]) -> usize {
    spans.iter().map(|span| columns(&span.content)).sum()
}

/// A text of one line from anywhere, without what could drive a terminal.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let is_clean = |letter: char| {
        !letter.is_control() && !matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    match text.chars().all(is_clean) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(safe(text).replace('\t', TAB).replace(['\n', '\u{2028}', '\u{2029}'], " ")),
    }
}

/// Spans with their width.
#[derive(Debug, Default, Clone)]
struct Piece {
    spans: Vec<Span<'static>>,
    columns: usize,
    /// Nothing was left out.
    has_all: bool,
}

impl Piece {
    /// One more character, as people see it.
    fn push(&mut self, cluster: &str, style: Style) {
        self.columns += cluster.width();
        match self.spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(cluster),
            _ => self.spans.push(Span::styled(cluster.to_owned(), style)),
        }
    }

    fn append(&mut self, other: &mut Self) {
        self.columns += other.columns;
        other.columns = 0;
        for span in other.spans.drain(..) {
            match self.spans.last_mut() {
                Some(last) if last.style == span.style => last.content.to_mut().push_str(&span.content),
                _ => self.spans.push(span),
            }
        }
    }

    fn clear(&mut self) {
        self.spans.clear();
        self.columns = 0;
    }
}

/// The beginning of some spans that takes at most so many columns.
fn cut(spans: &[Span<'_>], most: usize) -> Piece {
    let mut piece = Piece { has_all: true, ..Piece::default() };
    for span in spans {
        for cluster in clean(&span.content).graphemes(true) {
            if piece.columns + cluster.width() > most {
                piece.has_all = false;
                return piece;
            }
            piece.push(cluster, span.style);
        }
    }
    piece
}

/// Rows that are being filled.
struct Rows {
    width: usize,
    longest_word: usize,
    row: Piece,
    others: Piece,
    /// There is text in the row, besides what stands before it.
    is_begun: bool,
    /// The white space after the last word of the row, which is dropped if the next word comes into the next row.
    gap: Piece,
    word: Piece,
    done: Vec<Line<'static>>,
}

impl Rows {
    fn push(&mut self, cluster: &str, style: Style) {
        let columns = cluster.width();
        if is_break(cluster) {
            self.place_word();
            self.gap.push(cluster, style);
        } else if columns > self.longest_word {
            self.push(NO_ROOM, style);
        } else if columns > 1 {
            // Scripts of wide characters have no spaces, and pictures are words.
            self.place_word();
            self.word.push(cluster, style);
            self.place_word();
        } else {
            if self.word.columns + columns > self.longest_word {
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
            if self.is_begun {
                self.end_row();
            }
        }
        self.row.append(&mut self.gap);
        self.row.append(&mut self.word);
        self.is_begun = true;
    }

    fn end_row(&mut self) {
        let row = std::mem::replace(&mut self.row, self.others.clone());
        self.done.push(Line::from(row.spans));
        self.is_begun = false;
    }

    fn finish(mut self) -> Vec<Line<'static>> {
        self.place_word();
        if !self.is_begun {
            let used = self.row.spans.iter().rposition(|span| !is_break(&span.content));
            self.row.spans.truncate(used.map_or(0, |at| at + 1));
        }
        self.end_row();
        self.done
    }
}

/// Whether a row may end here: at white space, but for the kinds that say that it may not.
fn is_break(cluster: &str) -> bool {
    let is_one =
        |letter: char| letter.is_whitespace() && !matches!(letter, '\u{a0}' | '\u{202f}' | '\u{2007}');
    cluster.chars().all(is_one)
}

#[cfg(test)]
#[path = "wrap_tests.rs"]
mod tests;
