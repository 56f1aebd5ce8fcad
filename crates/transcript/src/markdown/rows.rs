//! Renders finished blocks as rows.

use crate::style::{Span, StyledLine};

use super::blocks::{BlockPart, PartContent, Prefixes};
use super::inline::{InlinePart, Spans, parse_inline, parse_paragraph};
use super::table::TableHead;
use crate::highlight::Highlighter;
use crate::wrap::{width_after, wrap_spans};

const CODE_INDENT: &str = "  ";

/// Renders one part after the other, and carries what spans them.
#[derive(Debug, Clone, Default)]
pub(super) struct BlockRenderer {
    /// Something was rendered, so a blank row separates the next block from it.
    is_begun: bool,
    code: Option<Highlighter>,
}

impl BlockRenderer {
    pub(super) fn render_parts(&mut self, block_parts: &[BlockPart], width: u16) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        for part in block_parts {
            if let Some(gap) = part.prefixes.gap.as_ref().filter(|_| self.is_begun) {
                rows.push(blank_row(gap, width));
            }
            let before = rows.len();
            self.render_part(part, width, &mut rows);
            self.is_begun |= rows.len() > before;
        }
        rows
    }

    fn render_part(&mut self, part: &BlockPart, width: u16, rows: &mut Vec<StyledLine>) {
        let prefixes = &part.prefixes;
        match &part.content {
            PartContent::Text(source) => {
                push_lines(parse_inline(source), prefixes, width, TableHead::Shown, rows);
            }
            PartContent::Continuation(source) => {
                push_lines(parse_paragraph(source), prefixes, width, TableHead::Shown, rows);
            }
            PartContent::TableContinuation(source) => {
                push_lines(parse_inline(source), prefixes, width, TableHead::Hidden, rows);
            }
            PartContent::LongLine(text) => {
                let text = Span::raw(text.as_str());
                rows.extend(wrap_spans(&[text], width, &prefixes.first, &prefixes.others));
            }
            PartContent::Rule => {
                let rule = "─".repeat(width_after(&prefixes.first, width));
                rows.extend(wrap_spans(&[Span::dim(rule)], width, &prefixes.first, &prefixes.others));
            }
            PartContent::CodeStart { language } => {
                self.code = Some(Highlighter::new(language));
                let has_mark = prefixes.first != prefixes.others;
                if !language.is_empty() || has_mark {
                    let (first, others) = (indented(&prefixes.first), indented(&prefixes.others));
                    let language = Span::dim(language.clone());
                    rows.extend(wrap_spans(&[language], width, &first, &others));
                }
            }
            PartContent::Code(text) => {
                let spans = self.code.get_or_insert_with(|| Highlighter::new("")).highlight_line(text);
                let before = indented(&prefixes.others);
                rows.extend(wrap_spans(&spans, width, &before, &before));
            }
        }
    }
}

fn push_lines(
    parts: Vec<InlinePart>,
    prefixes: &Prefixes,
    width: u16,
    head: TableHead,
    rows: &mut Vec<StyledLine>,
) {
    let room = width_after(&prefixes.first, width).min(width_after(&prefixes.others, width));
    let mut lines: Vec<Spans> = Vec::new();
    for part in parts {
        match part {
            InlinePart::Line(line) => lines.push(line),
            InlinePart::Table(table) => lines.extend(table.lines(room, head)),
        }
    }
    if lines.is_empty() && prefixes.first != prefixes.others {
        lines.push(Spans::new());
    }
    let mut before = &prefixes.first;
    for line in lines {
        rows.extend(wrap_spans(&line, width, before, &prefixes.others));
        before = &prefixes.others;
    }
}

fn indented(before: &[Span]) -> Spans {
    before.iter().cloned().chain([Span::raw(CODE_INDENT)]).collect()
}

/// A blank row, with the bar of the quote around it.
fn blank_row(gap: &[Span], width: u16) -> StyledLine {
    let used = gap.iter().rposition(|span| !span.content.trim().is_empty()).map_or(0, |at| at + 1);
    wrap_spans(&[], width, &gap[..used], &[]).swap_remove(0)
}
