//! An opened call or thought: rows that are ready, and below them an output that is wrapped where it is looked at.

use longhaul_transcript::{Color, Span, Style, StyledLine, wrap_spans};

use super::output_pages::OutputPages;
use super::search_pattern::SearchPattern;

const INDENT: &str = "  ";
const MATCH_STYLE: Style = Style::new().fg(Color::Yellow).bold().underlined();

/// The document. Its lines are the rows of the head, and then the lines of the output, each of which takes one row or more.
pub(super) struct DetailDocument {
    /// Rows that fit the width.
    pub(super) head: Vec<StyledLine>,
    pub(super) output: OutputPages,
    pub(super) width: u16,
}

/// A row of the document: a line, and a row in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowPosition {
    pub(super) line: usize,
    pub(super) row: usize,
}

impl DetailDocument {
    pub(super) fn line_count(&self) -> usize {
        self.head.len() + self.output.line_count()
    }

    /// The rows of a line, with the matches of a search marked.
    pub(super) fn rows(&mut self, line: usize, pattern: Option<&SearchPattern>) -> Vec<StyledLine> {
        if let Some(row) = self.head.get(line) {
            return vec![match pattern {
                Some(pattern) => mark_matches(row.clone(), pattern),
                None => row.clone(),
            }];
        }
        let text = StyledLine::raw(self.output.line(line - self.head.len()));
        let text = match pattern {
            Some(pattern) => mark_matches(text, pattern),
            None => text,
        };
        wrap_spans(&text.spans, self.width, &[INDENT.into()], &[INDENT.into()])
    }

    fn row_count(&mut self, line: usize) -> usize {
        if line < self.head.len() { 1 } else { self.rows(line, None).len() }
    }

    /// The rows of one page.
    pub(super) fn page(
        &mut self,
        top: RowPosition,
        max_rows: usize,
        pattern: Option<&SearchPattern>,
    ) -> Vec<StyledLine> {
        let mut page = Vec::new();
        for line in top.line..self.line_count() {
            if page.len() >= max_rows + top.row {
                break;
            }
            page.extend(self.rows(line, pattern));
        }
        page.into_iter().skip(top.row).take(max_rows).collect()
    }

    /// The position so many rows below, at most where the last page begins.
    pub(super) fn down(&mut self, from: RowPosition, rows: usize, page: usize) -> RowPosition {
        let (mut position, mut left) = (from, rows);
        while left > 0 && position.line < self.line_count() {
            let below = self.row_count(position.line).saturating_sub(position.row + 1);
            if left <= below {
                position.row += left;
                break;
            }
            left -= below + 1;
            position = RowPosition { line: position.line + 1, row: 0 };
        }
        position.min(self.last_top(page))
    }

    pub(super) fn up(&mut self, from: RowPosition, rows: usize) -> RowPosition {
        let (mut position, mut left) = (from, rows);
        while left > 0 {
            if left <= position.row {
                position.row -= left;
                break;
            }
            left -= position.row + 1;
            let Some(line) = position.line.checked_sub(1) else { return RowPosition::default() };
            position = RowPosition { line, row: self.row_count(line).saturating_sub(1) };
        }
        position
    }

    /// Where the last page begins.
    pub(super) fn last_top(&mut self, page: usize) -> RowPosition {
        let Some(last) = self.line_count().checked_sub(1) else { return RowPosition::default() };
        let end = RowPosition { line: last, row: self.row_count(last).saturating_sub(1) };
        self.up(end, page.saturating_sub(1))
    }

    /// The next line with a match, from this one on. It goes on at the other end where there is none.
    pub(super) fn find(
        &mut self,
        pattern: &SearchPattern,
        from: usize,
        direction: SearchDirection,
    ) -> Option<usize> {
        let count = self.line_count();
        (0..count).find_map(|step| {
            let line = match direction {
                SearchDirection::Forward => (from + step) % count,
                SearchDirection::Backward => (from + count - step) % count,
            };
            let is_match = match self.head.get(line) {
                Some(row) => pattern.is_in(&row.to_string()),
                None => pattern.is_in(self.output.line(line - self.head.len())),
            };
            is_match.then_some(line)
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchDirection {
    Forward,
    Backward,
}

/// Sets the style of the matches. A match across two spans is not marked.
fn mark_matches(line: StyledLine, pattern: &SearchPattern) -> StyledLine {
    let mut spans = Vec::with_capacity(line.spans.len());
    for span in line.spans {
        let mut from = 0;
        for found in pattern.ranges_in(&span.content) {
            spans.push(Span::styled(&span.content[from..found.start], span.style));
            spans.push(Span::styled(&span.content[found.clone()], span.style.patch(MATCH_STYLE)));
            from = found.end;
        }
        spans.push(Span::styled(&span.content[from..], span.style));
    }
    spans.retain(|span| !span.content.is_empty());
    StyledLine::from(spans)
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
