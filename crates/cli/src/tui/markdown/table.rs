//! Tables: aligned in columns that share the width, or one line per cell where there is no room for columns.

use pulldown_cmark::Alignment;
use ratatui::style::Stylize;
use ratatui::text::Span;

use super::inline::Spans;
use crate::tui::wrap::{columns_of, wrapped_after};

/// A column that needs more is not made narrower than this.
const NARROWEST: usize = 8;

const BETWEEN: &str = " │ ";

/// A table whose cells are styled text.
#[derive(Debug, Default)]
pub(super) struct Table {
    pub(super) alignments: Vec<Alignment>,
    pub(super) head: Vec<Spans>,
    pub(super) rows: Vec<Vec<Spans>>,
}

impl Table {
    /// With its head, in lines of at most so many columns where that can be.
    pub(super) fn lines(&self, width: usize) -> Vec<Spans> {
        let Some(widths) = self.widths(width) else { return self.as_list() };
        let mut lines = self.row(&self.head, &widths);
        let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
        lines.push(vec![Span::from(rule.join("─┼─")).dim()]);
        lines.extend(self.rows.iter().flat_map(|row| self.row(row, &widths)));
        lines
    }

    /// Without its head, which was shown before.
    pub(super) fn further_lines(&self, width: usize) -> Vec<Spans> {
        match self.widths(width) {
            Some(widths) => self.rows.iter().flat_map(|row| self.row(row, &widths)).collect(),
            None => self.as_list(),
        }
    }

    /// How wide each column is: as wide as it needs to be, or what is left for the widest ones. Nothing, if that is too little.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let count = self.head.len();
        let room = width.checked_sub(BETWEEN.chars().count() * count.saturating_sub(1))?;
        let needed = |column: usize| {
            let cells = self.rows.iter().chain([&self.head]).filter_map(|row| row.get(column));
            cells.map(|cell| columns_of(cell)).max().unwrap_or(0).max(1)
        };
        let needed: Vec<usize> = (0..count).map(needed).collect();
        let fits = |most: &usize| needed.iter().map(|needed| needed.min(most)).sum::<usize>() <= room;
        if needed.iter().sum::<usize>() <= room {
            return Some(needed);
        }
        let most = (NARROWEST..=room).rev().find(fits)?;
        Some(needed.into_iter().map(|needed| needed.min(most)).collect())
    }

    fn row(&self, cells: &[Spans], widths: &[usize]) -> Vec<Spans> {
        let broken: Vec<Vec<Spans>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| {
                let cell = cells.get(column).map_or(&[][..], Vec::as_slice);
                let width = u16::try_from(*width).unwrap_or(u16::MAX);
                wrapped_after(cell, width, &[], &[]).into_iter().map(|line| line.spans).collect()
            })
            .collect();
        let height = broken.iter().map(Vec::len).max().unwrap_or(0);
        let line = |at: usize| {
            let mut line = Spans::new();
            for (column, (cell, width)) in broken.iter().zip(widths).enumerate() {
                if column > 0 {
                    line.push(Span::from(BETWEEN).dim());
                }
                let text = cell.get(at).cloned().unwrap_or_default();
                let free = width.saturating_sub(columns_of(&text));
                let before = match self.alignments.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    _ => 0,
                };
                line.push(Span::from(" ".repeat(before)));
                line.extend(text);
                line.push(Span::from(" ".repeat(free - before)));
            }
            line
        };
        (0..height).map(line).collect()
    }

    /// One line per cell, with what its column is called.
    fn as_list(&self) -> Vec<Spans> {
        let mut lines = Vec::new();
        for row in &self.rows {
            if !lines.is_empty() {
                lines.push(Spans::new());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut line = self.head.get(column).cloned().unwrap_or_default();
                if !line.is_empty() {
                    line.push(Span::from(": "));
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
