//! The text in rows of a width: which part of it is seen, where the cursor stands in it, and where a row higher or
//! lower is. Only the lines around the cursor are looked at, however long the text is.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::chips::is_mark;
use super::graphemes::{cut, next};
use super::text::InputText;

/// How wide a tab is shown.
const TAB: usize = 4;

/// One row: bytes of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    start: usize,
    end: usize,
}

/// A text in rows of so many columns.
pub(super) struct Layout<'a> {
    text: &'a InputText,
    columns: usize,
}

/// The rows that are seen.
pub(super) struct VisibleRows {
    pub(super) rows: Vec<Vec<Span<'static>>>,
    /// Whether the first of them is the first of the text.
    pub(super) from_top: bool,
    /// Column and row of the cursor.
    pub(super) cursor: (usize, usize),
}

impl<'a> Layout<'a> {
    pub(super) fn new(text: &'a InputText, columns: usize) -> Self {
        Self { text, columns: columns.max(1) }
    }

    /// The rows around the cursor, at most so many.
    pub(super) fn seen(&self, height: usize) -> VisibleRows {
        let line = self.text.line();
        let rows = self.rows(line.start, line.end);
        let at = self.row_of_cursor(&rows);
        let mut above = rows[..at].to_vec();
        let mut start = line.start;
        while above.len() < height && start > 0 {
            let (before, end) = self.line_before(start);
            above.splice(..0, self.rows(before, end));
            start = before;
        }
        let mut below = rows[at + 1..].to_vec();
        let mut end = line.end;
        while below.len() < height && end < self.text.content().len() {
            let (from, to) = self.line_after(end);
            below.extend(self.rows(from, to));
            end = to;
        }
        // Half of what is seen may stand below the cursor; more, if there is not enough above.
        let lower = below.len().min((height / 2).max(height.saturating_sub(1 + above.len())));
        let upper = above.len().min(height.saturating_sub(1 + lower));
        let seen = above[above.len() - upper..].iter().chain([&rows[at]]).chain(&below[..lower]);
        VisibleRows {
            rows: seen.map(|row| self.spans(*row)).collect(),
            from_top: upper == above.len() && start == 0,
            cursor: (self.column(rows[at], self.text.cursor()), upper),
        }
    }

    /// The column that the cursor is in.
    pub(super) fn cursor_column(&self) -> usize {
        let line = self.text.line();
        let rows = self.rows(line.start, line.end);
        self.column(rows[self.row_of_cursor(&rows)], self.text.cursor())
    }

    /// The place in this column one row higher; none, if the cursor is in the first one.
    pub(super) fn above(&self, column: usize) -> Option<usize> {
        let line = self.text.line();
        let rows = self.rows(line.start, line.end);
        match self.row_of_cursor(&rows) {
            0 if line.start == 0 => None,
            0 => {
                let (start, end) = self.line_before(line.start);
                let rows = self.rows(start, end);
                self.place(&rows, rows.len() - 1, column)
            }
            at => self.place(&rows, at - 1, column),
        }
    }

    /// The place in this column one row lower; none, if the cursor is in the last one.
    pub(super) fn below(&self, column: usize) -> Option<usize> {
        let line = self.text.line();
        let rows = self.rows(line.start, line.end);
        let lower = self.row_of_cursor(&rows) + 1;
        match lower < rows.len() {
            true => self.place(&rows, lower, column),
            false if line.end == self.text.content().len() => None,
            false => {
                let (start, end) = self.line_after(line.end);
                self.place(&self.rows(start, end), 0, column)
            }
        }
    }

    /// The line whose end is just before this place.
    fn line_before(&self, start: usize) -> (usize, usize) {
        let end = start - 1;
        (self.text.content()[..end].rfind('\n').map_or(0, |at| at + 1), end)
    }

    /// The line after the one that ends here.
    fn line_after(&self, end: usize) -> (usize, usize) {
        let start = end + 1;
        let content = self.text.content();
        (start, content[start..].find('\n').map_or(content.len(), |at| start + at))
    }

    /// A line in rows, at least one. They break after white space where there is any; a space for which there is no room
    /// hangs over the end of its row and is not drawn.
    fn rows(&self, start: usize, end: usize) -> Vec<Row> {
        let line = &self.text.content()[..end];
        let mut rows = Vec::new();
        let mut row_start = start;
        let mut used = 0;
        // Where the row could end, and how many columns it would have then.
        let mut gap = (start, 0);
        let mut at = start;
        while at < end {
            let after = next(line, at);
            let width = self.width(&line[at..after]);
            let mut hangs = false;
            while used + width > self.columns && row_start < at && !hangs {
                hangs = &line[at..after] == " ";
                let (end, columns) = match hangs {
                    true => (after, used),
                    false if gap.0 > row_start => gap,
                    false => (at, used),
                };
                rows.push(Row { start: row_start, end });
                row_start = end;
                used -= columns;
            }
            used += if hangs { 0 } else { width };
            at = after;
            if line[..at].ends_with(char::is_whitespace) {
                gap = (at, used);
            }
        }
        rows.push(Row { start: row_start, end });
        rows
    }

    fn row_of_cursor(&self, rows: &[Row]) -> usize {
        let cursor = self.text.cursor();
        rows.iter().rposition(|row| row.start <= cursor).unwrap_or_default()
    }

    fn column(&self, row: Row, place: usize) -> usize {
        let mut column = 0;
        let mut at = row.start;
        while at < row.end {
            let after = next(&self.text.content()[..row.end], at);
            if after > place {
                break;
            }
            column += self.width(&self.text.content()[at..after]);
            at = after;
        }
        column
    }

    /// The place in one of the rows of a line that is nearest before a column. The end of a row belongs to the next one.
    fn place(&self, rows: &[Row], number: usize, column: usize) -> Option<usize> {
        let row = rows.get(number)?;
        let is_last = number + 1 == rows.len();
        let mut at = row.start;
        let mut used = 0;
        while at < row.end {
            let after = next(&self.text.content()[..row.end], at);
            used += self.width(&self.text.content()[at..after]);
            if used > column || (after == row.end && !is_last) {
                break;
            }
            at = after;
        }
        Some(at)
    }

    /// The columns of one character.
    fn width(&self, cluster: &str) -> usize {
        match cluster.chars().next() {
            Some('\t') => TAB.min(self.columns),
            Some(mark) if is_mark(mark) => self.text.chips().label(mark).width().min(self.columns),
            _ => match cluster.width() {
                wide if wide > self.columns => 1,
                width => width,
            },
        }
    }

    fn spans(&self, row: Row) -> Vec<Span<'static>> {
        let content = &self.text.content()[..row.end];
        let mut spans = Vec::new();
        let mut plain = String::new();
        let mut at = row.start;
        let mut used = 0;
        while at < row.end {
            let after = next(content, at);
            let cluster = &content[at..after];
            at = after;
            used += self.width(cluster);
            if used > self.columns {
                break;
            }
            match cluster.chars().next() {
                Some('\t') => plain.push_str(&" ".repeat(TAB.min(self.columns))),
                Some(mark) if is_mark(mark) => {
                    if !plain.is_empty() {
                        spans.push(Span::raw(std::mem::take(&mut plain)));
                    }
                    let style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);
                    spans.push(Span::styled(cut(self.text.chips().label(mark), self.columns), style));
                }
                _ if cluster.width() > self.columns => plain.push('?'),
                _ => plain.push_str(cluster),
            }
        }
        if !plain.is_empty() {
            spans.push(Span::raw(plain));
        }
        spans
    }
}

/// How the input is laid out at a width: what stands before its rows, and how many columns are left for the text. One is
/// kept free, so that the cursor has its place after a full row.
pub(super) struct InputFrame {
    prompt: String,
    pub(super) columns: usize,
    width: usize,
}

impl InputFrame {
    pub(super) fn new(prompt: &str, width: usize) -> Self {
        // Where there is no room for both, the text is more useful than what stands before it.
        let prompt = if prompt.width() + 4 <= width { prompt } else { "" };
        let columns = width.saturating_sub(prompt.width() + 1).max(1);
        Self { prompt: prompt.to_owned(), columns, width }
    }

    /// The rows as lines, and the cursor in them.
    pub(super) fn lines(&self, seen: VisibleRows) -> (Vec<Line<'static>>, (u16, u16)) {
        let indent = self.prompt.width();
        let rows = seen.rows.into_iter().enumerate().map(|(number, spans)| {
            let before = match number {
                0 if seen.from_top => {
                    Span::styled(self.prompt.clone(), Style::new().add_modifier(Modifier::BOLD))
                }
                _ => Span::raw(" ".repeat(indent)),
            };
            Line::from_iter(std::iter::once(before).chain(spans))
        });
        let column = (indent + seen.cursor.0).min(self.width.saturating_sub(1));
        let narrow = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        (rows.collect(), (narrow(column), narrow(seen.cursor.1)))
    }
}
