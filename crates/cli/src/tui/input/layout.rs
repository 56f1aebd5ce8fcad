//! The text wrapped into rows: which rows are visible, where the cursor is, and where one row up or down leads. Only the lines around the
//! cursor are laid out, however long the text is.

use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::chips::is_mark;
use super::graphemes::{cut, next};
use super::text::InputText;

const TAB_COLUMNS: usize = 4;

/// The byte range of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    start: usize,
    end: usize,
}

pub(super) struct Layout<'a> {
    text: &'a InputText,
    columns: usize,
}

pub(super) struct VisibleRows {
    pub(super) rows: Vec<Vec<Span<'static>>>,
    /// Whether the first row of the text is visible.
    pub(super) from_top: bool,
    /// Column and row.
    pub(super) cursor: (usize, usize),
}

impl<'a> Layout<'a> {
    pub(super) fn new(text: &'a InputText, columns: usize) -> Self {
        Self { text, columns: columns.max(1) }
    }

    /// The rows around the cursor, at most `height`.
    pub(super) fn visible_rows(&self, height: usize) -> VisibleRows {
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
        // At most half of the rows are below the cursor, or more if there are not enough above.
        let lower = below.len().min((height / 2).max(height.saturating_sub(1 + above.len())));
        let upper = above.len().min(height.saturating_sub(1 + lower));
        let visible = above[above.len() - upper..].iter().chain([&rows[at]]).chain(&below[..lower]);
        VisibleRows {
            rows: visible.map(|row| self.spans(*row)).collect(),
            from_top: upper == above.len() && start == 0,
            cursor: (self.column(rows[at], self.text.cursor()), upper),
        }
    }

    pub(super) fn cursor_column(&self) -> usize {
        let line = self.text.line();
        let rows = self.rows(line.start, line.end);
        self.column(rows[self.row_of_cursor(&rows)], self.text.cursor())
    }

    /// The offset in this column one row up; `None` in the first row.
    pub(super) fn above(&self, column: usize) -> Option<usize> {
        let line = self.text.line();
        let rows = self.rows(line.start, line.end);
        match self.row_of_cursor(&rows) {
            0 if line.start == 0 => None,
            0 => {
                let (start, end) = self.line_before(line.start);
                let rows = self.rows(start, end);
                self.offset_at(&rows, rows.len() - 1, column)
            }
            at => self.offset_at(&rows, at - 1, column),
        }
    }

    /// The offset in this column one row down; `None` in the last row.
    pub(super) fn below(&self, column: usize) -> Option<usize> {
        let line = self.text.line();
        let rows = self.rows(line.start, line.end);
        let lower = self.row_of_cursor(&rows) + 1;
        match lower < rows.len() {
            true => self.offset_at(&rows, lower, column),
            false if line.end == self.text.content().len() => None,
            false => {
                let (start, end) = self.line_after(line.end);
                self.offset_at(&self.rows(start, end), 0, column)
            }
        }
    }

    /// The line before the one that starts here.
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

    /// The grapheme clusters of a row: the offset of each, its text and its columns.
    fn clusters(&self, row: Row) -> impl Iterator<Item = (usize, &'a str, usize)> {
        let content = &self.text.content()[..row.end];
        let starts = std::iter::successors(Some(row.start), move |at| Some(next(content, *at)));
        starts.take_while(move |at| *at < row.end).map(move |at| {
            let cluster = &content[at..next(content, at)];
            (at, cluster, self.width(cluster))
        })
    }

    /// Wraps a line into rows, at least one. Rows break after white space where there is any. A space without room hangs over the end of its
    /// row and is not drawn.
    fn rows(&self, start: usize, end: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut row_start = start;
        let mut used = 0;
        // The last possible break, and the columns up to it.
        let mut gap = (start, 0);
        for (at, cluster, width) in self.clusters(Row { start, end }) {
            let after = at + cluster.len();
            let mut hangs = false;
            while used + width > self.columns && row_start < at && !hangs {
                hangs = cluster == " ";
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
            if cluster.ends_with(char::is_whitespace) {
                gap = (after, used);
            }
        }
        rows.push(Row { start: row_start, end });
        rows
    }

    fn row_of_cursor(&self, rows: &[Row]) -> usize {
        let cursor = self.text.cursor();
        rows.iter().rposition(|row| row.start <= cursor).unwrap_or_default()
    }

    fn column(&self, row: Row, offset: usize) -> usize {
        let before = self.clusters(row).take_while(|(at, cluster, _)| at + cluster.len() <= offset);
        before.map(|(_, _, width)| width).sum()
    }

    /// The offset in a row that is nearest before a column. The end of a row belongs to the next one.
    fn offset_at(&self, rows: &[Row], number: usize, column: usize) -> Option<usize> {
        let row = *rows.get(number)?;
        let is_last = number + 1 == rows.len();
        let mut used = 0;
        let is_behind = |(at, cluster, width): &(usize, &str, usize)| {
            used += width;
            used > column || (at + cluster.len() == row.end && !is_last)
        };
        Some(self.clusters(row).find(is_behind).map_or(row.end, |(at, ..)| at))
    }

    /// Columns of a grapheme cluster.
    fn width(&self, cluster: &str) -> usize {
        match cluster.chars().next() {
            Some('\t') => TAB_COLUMNS.min(self.columns),
            Some(mark) if is_mark(mark) => self.text.chips().label(mark).width().min(self.columns),
            _ => match cluster.width() {
                wide if wide > self.columns => 1,
                width => width,
            },
        }
    }

    fn spans(&self, row: Row) -> Vec<Span<'static>> {
        let mut spans = Vec::new();
        let mut plain = String::new();
        let mut used = 0;
        for (_, cluster, width) in self.clusters(row) {
            used += width;
            if used > self.columns {
                break;
            }
            match cluster.chars().next() {
                Some('\t') => plain.push_str(&" ".repeat(TAB_COLUMNS.min(self.columns))),
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

/// The prompt before the rows, and the columns that are left for the text. One column stays free for the cursor after a full row.
pub(super) struct InputFrame {
    prompt: String,
    pub(super) columns: usize,
    width: usize,
}

impl InputFrame {
    pub(super) fn new(prompt: &str, width: usize) -> Self {
        // In a very narrow terminal the text matters more than the prompt.
        let prompt = if prompt.width() + 4 <= width { prompt } else { "" };
        let columns = width.saturating_sub(prompt.width() + 1).max(1);
        Self { prompt: prompt.to_owned(), columns, width }
    }

    /// The rows with the prompt, and the cursor in them.
    pub(super) fn lines(&self, visible: VisibleRows) -> (Vec<Line<'static>>, (u16, u16)) {
        let indent = self.prompt.width();
        let rows = visible.rows.into_iter().enumerate().map(|(number, spans)| {
            let before = match number {
                0 if visible.from_top => {
                    Span::styled(self.prompt.clone(), Style::new().add_modifier(Modifier::BOLD))
                }
                _ => Span::raw(" ".repeat(indent)),
            };
            Line::from_iter(std::iter::once(before).chain(spans))
        });
        let column = (indent + visible.cursor.0).min(self.width.saturating_sub(1));
        let narrow = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
        (rows.collect(), (narrow(column), narrow(visible.cursor.1)))
    }
}
