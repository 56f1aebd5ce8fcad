//! Tables: aligned columns that share the width, or one line per cell where the width is too small for columns.

use pulldown_cmark::Alignment;

use super::inline::Spans;
use crate::style::Span;
use crate::wrap::{spans_width, wrap_spans};

/// A wide column is not made narrower than this.
const MIN_COLUMN_WIDTH: usize = 8;

const COLUMN_SEPARATOR: &str = " │ ";

/// A table whose cells are styled text.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) head: Vec<Spans>,
    pub(super) rows: Vec<Vec<Spans>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TableHead {
    Shown,
    Hidden,
}

impl Table {
    /// The lines of the table, at most `width` columns wide where possible.
    pub(super) fn lines(&self, width: usize, head: TableHead) -> Vec<Spans> {
        let Some(widths) = self.widths(width) else { return self.as_list() };
        let mut lines = Vec::new();
        if head == TableHead::Shown {
            lines.extend(self.row(&self.head, &widths));
            let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            lines.push(vec![Span::dim(rule.join("─┼─"))]);
        }
        lines.extend(self.rows.iter().flat_map(|row| self.row(row, &widths)));
        lines
    }

    /// The width of each column: what it needs, or an equal share of the rest for the widest ones. None if that is too narrow.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.head.len();
        let room = width.checked_sub(COLUMN_SEPARATOR.chars().count() * count.saturating_sub(1))?;
        let needed = |column: usize| {
            let cells = self.rows.iter().chain([&self.head]).filter_map(|row| row.get(column));
            cells.map(|cell| spans_width(cell)).max().unwrap_or(0).max(1)
        };
        let needed: Vec<usize> = (0..count).map(needed).collect();
        let fits = |most: &usize| needed.iter().map(|needed| needed.min(most)).sum::<usize>() <= room;
        if needed.iter().sum::<usize>() <= room {
            return Some(needed);
        }
        let most = (MIN_COLUMN_WIDTH..=room).rev().find(fits)?;
        Some(needed.into_iter().map(|needed| needed.min(most)).collect())
    }

    fn row(&self, cells: &[Spans], widths: &[usize]) -> Vec<Spans> {
        let broken: Vec<Vec<Spans>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                let cell = cells.get(column).map_or(&[][..], Vec::as_slice);
                let width = u16::try_from(*width).unwrap_or(u16::MAX);
                wrap_spans(cell, width, &[], &[]).into_iter().map(|line| line.spans).collect()
            })
            .collect();
        let height = broken.iter().map(Vec::len).max().unwrap_or(0);
        let line = |at: usize| {
            let mut line = Spans::new();
            for (column, (cell, width)) in broken.iter().zip(widths).enumerate() {
                if column > 0 {
                    line.push(Span::dim(COLUMN_SEPARATOR));
                }
                let text = cell.get(at).cloned().unwrap_or_default();
                let free = width.saturating_sub(spans_width(&text));
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    _ => 0,
                };
                line.push(Span::raw(" ".repeat(before)));
                line.extend(text);
                line.push(Span::raw(" ".repeat(free - before)));
            }
            line
        };
        (0..height).map(line).collect()
    }

    /// One line per cell, with the name of its column.
    fn as_list(&self) -> Vec<Spans> {
        let mut lines = Vec::new();
        for row in &self.rows {
            if !lines.is_empty() {
                lines.push(Spans::new());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut line = self.head.get(column).cloned().unwrap_or_default();
                if !line.is_empty() {
                    line.push(Span::raw(": "));
                }
                line.extend(cell.iter().cloned());
                lines.push(line);
            }
        }
        match lines.is_empty() {
            true => self.head.clone(),
            false => lines,
        }
    }
}
