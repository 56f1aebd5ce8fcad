//! The lines that an edit changes, as a diff with marks and colours.

use std::time::Duration;

use similar::{Algorithm, DiffOp, TextDiff};

use crate::highlight::Highlighter;
use crate::style::{Color, Span, Style, StyledLine};
use crate::text::format_number;
use crate::wrap::wrap_spans;

/// Unchanged lines that are shown before and after a change.
const CONTEXT_LINES: usize = 2;

/// Above this number of differing lines no line-by-line comparison is made: it takes too long to compute and to read.
const MAX_COMPARED_LINES: usize = 20_000;

/// After this time the comparison is finished with an approximation.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

const MAX_DIFF_LINES: usize = 5_000;

/// Bytes of one line that are shown.
const MAX_LINE_BYTES: usize = 2_000;

/// Removed and added lines with some context. The mark at the beginning of a line says what it is, not the colour alone.
pub(crate) fn diff(old: &str, new: &str, language: Option<&str>, width: u16) -> Vec<StyledLine> {
    let (mut rows, left_out) = diff_lines(old, new, language, width, MAX_DIFF_LINES);
    rows.extend(more_lines_notice(left_out));
    rows
}

/// Numbers of added and removed lines.
pub(crate) fn count_changed_lines(old: &str, new: &str) -> (usize, usize) {
    let comparison = LineComparison::new(old, new);
    comparison.operations.iter().fold((0, 0), |(added, removed), operation| match operation {
        DiffOp::Equal { .. } => (added, removed),
        changed => (added + changed.new_range().len(), removed + changed.old_range().len()),
    })
}

/// At most `max_lines` lines of the diff, and the number of lines that were left out.
pub(crate) fn diff_lines(
    old: &str,
    new: &str,
    language: Option<&str>,
    width: u16,
    max_lines: usize,
) -> (Vec<StyledLine>, usize) {
    let comparison = LineComparison::new(old, new);
    if comparison.is_rough {
        let (added, removed) = count_changed_lines(old, new);
        let (added, removed) = (format_number(added as u64), format_number(removed as u64));
        let notice = Span::dim(format!("large change: up to {added} lines added, {removed} removed"));
        return (wrap_spans(&[notice], width, &[], &[]), 0);
    }
    let hunks = similar::group_diff_ops(comparison.operations, CONTEXT_LINES);
    if hunks.is_empty() && old != new {
        return (wrap_spans(&[Span::dim("only the ends of lines differ")], width, &[], &[]), 0);
    }
    let mut renderer = DiffRenderer { width, lines_left: max_lines, rows: Vec::new(), left_out: 0 };
    for (at, hunk) in hunks.iter().enumerate() {
        if at > 0 && renderer.lines_left > 0 {
            renderer.rows.push(StyledLine::dim("…"));
        }
        // The lines between hunks are not parsed, so a string that begins there may be coloured as code.
        let highlighter = Highlighter::new(language.unwrap_or_default());
        let (mut before, mut after) = (highlighter.clone(), highlighter);
        for operation in hunk {
            let removed = &comparison.old[operation.old_range()];
            let added = &comparison.new[operation.new_range()];
            if matches!(operation, DiffOp::Equal { .. }) {
                renderer.push_lines(LineKind::Context, added, &mut after);
                removed.iter().for_each(|line| drop(before.highlight_line(line)));
                continue;
            }
            renderer.push_lines(LineKind::Removed, removed, &mut before);
            renderer.push_lines(LineKind::Added, added, &mut after);
        }
    }
    (renderer.rows, renderer.left_out)
}

/// `… 12 more lines`, if lines were left out.
pub(crate) fn more_lines_notice(left_out: usize) -> Option<StyledLine> {
    let lines = if left_out == 1 { "line" } else { "lines" };
    (left_out > 0).then(|| StyledLine::dim(format!("… {} more {lines}", format_number(left_out as u64))))
}

/// Two texts and the operations that lead from one to the other.
struct LineComparison<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    operations: Vec<DiffOp>,
    /// The texts differ too much: only their common beginning and end were compared.
    is_rough: bool,
}

impl<'a> LineComparison<'a> {
    fn new(old: &'a str, new: &'a str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
        let head = old.iter().zip(&new).take_while(same).count();
        let (old_rest, new_rest) = (&old[head..], &new[head..]);
        let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
        let (old_len, new_len) = (old_rest.len() - tail, new_rest.len() - tail);
        let is_rough = old_len > 0 && new_len > 0 && old_len + new_len > MAX_COMPARED_LINES;
        let operations = match is_rough {
            true => vec![DiffOp::Replace { old_index: head, old_len, new_index: head, new_len }],
            false => {
                let mut settings = TextDiff::configure();
                settings.algorithm(Algorithm::Myers).timeout(DIFF_TIMEOUT);
                settings.diff_slices(&old, &new).ops().to_vec()
            }
        };
        Self { old, new, operations, is_rough }
    }
}

#[derive(Clone, Copy)]
enum LineKind {
    Context,
    Removed,
    Added,
}

struct DiffRenderer {
    width: u16,
    /// Lines that may still be rendered.
    lines_left: usize,
    rows: Vec<StyledLine>,
    left_out: usize,
}

impl DiffRenderer {
    fn push_lines(&mut self, kind: LineKind, lines: &[&str], highlighter: &mut Highlighter) {
        let rendered = lines.len().min(self.lines_left);
        self.lines_left -= rendered;
        self.left_out += lines.len() - rendered;
        for line in &lines[..rendered] {
            self.push_line(kind, line, highlighter);
        }
    }

    fn push_line(&mut self, kind: LineKind, line: &str, highlighter: &mut Highlighter) {
        let plain = Style::new();
        let (mark, style) = match kind {
            LineKind::Context => ("  ", plain),
            LineKind::Removed => ("- ", plain.fg(Color::Red)),
            LineKind::Added => ("+ ", plain.fg(Color::Green)),
        };
        let mut spans = highlighter.highlight_line(&truncate_bytes(line));
        for span in &mut spans {
            span.style = match kind {
                // A removed line is all red, so that it can't be taken for one that stays.
                LineKind::Removed => style,
                LineKind::Added if span.style == plain => style,
                LineKind::Added => span.style,
                LineKind::Context => span.style.dim(),
            };
        }
        let mark = [Span::styled(mark, style)];
        self.rows.extend(wrap_spans(&spans, self.width, &mark, &mark));
    }
}

/// Cuts a line that is too long to read.
pub(crate) fn truncate_bytes(line: &str) -> String {
    match line.floor_char_boundary(MAX_LINE_BYTES) {
        end if end < line.len() => format!("{}…", &line[..end]),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
