//! What an edit changes, line by line.

use std::time::Duration;

use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use similar::{Algorithm, DiffOp, TextDiff};

use super::highlight::Highlighter;
use super::wrap::wrapped_after;
use crate::output::grouped;

/// So many lines are shown before and after a change.
const CONTEXT: usize = 2;

/// More lines that differ are not compared with each other: it takes too long, and nobody reads it.
const MOST_COMPARED: usize = 20_000;

/// After so long a comparison is finished roughly.
const PATIENCE: Duration = Duration::from_millis(200);

/// More lines than this are not drawn.
const MOST_DRAWN: usize = 5_000;

/// So many bytes of a line are shown.
const LONGEST_LINE: usize = 2_000;

/// The lines that went and came, with a few around them. What a line is stands at its beginning, not in its colour alone.
pub(crate) fn diff(old: &str, new: &str, language: Option<&str>, width: u16) -> Vec<Line<'static>> {
    let (mut rows, left_out) = first_lines(old, new, language, width, MOST_DRAWN);
    rows.extend(more_lines(left_out));
    rows
}

/// How many lines were added and removed.
pub(crate) fn changed(old: &str, new: &str) -> (usize, usize) {
    let compared = Compared::new(old, new);
    compared.operations.iter().fold((0, 0), |(added, removed), operation| match operation {
        DiffOp::Equal { .. } => (added, removed),
        changed => (added + changed.new_range().len(), removed + changed.old_range().len()),
    })
}

/// At most so many lines of the difference, and how many there are besides.
pub(crate) fn first_lines(
    old: &str,
    new: &str,
    language: Option<&str>,
    width: u16,
    most: usize,
) -> (Vec<Line<'static>>, usize) {
    let compared = Compared::new(old, new);
    if compared.is_rough {
        let (added, removed) = changed(old, new);
        let (added, removed) = (grouped(added as u64), grouped(removed as u64));
        let words = Span::from(format!("large change: up to {added} lines added, {removed} removed")).dim();
        return (wrapped_after(&[words], width, &[], &[]), 0);
    }
    let mut drawing = Drawing { width, most, rows: Vec::new(), left_out: 0 };
    let hunks = similar::group_diff_ops(compared.operations, CONTEXT);
    if hunks.is_empty() && old != new {
        let words = Span::from("only the ends of lines differ").dim();
        return (wrapped_after(&[words], width, &[], &[]), 0);
    }
    for (at, hunk) in hunks.iter().enumerate() {
        if at > 0 && drawing.most > 0 {
            drawing.rows.push(Line::from("…".dim()));
        }
        // What stands between hunks is not gone through, so a text that began there may have the colours of code.
        let highlighter = Highlighter::new(language.unwrap_or_default());
        let (mut before, mut after) = (highlighter.clone(), highlighter);
        for operation in hunk {
            let (gone, came) = (&compared.old[operation.old_range()], &compared.new[operation.new_range()]);
            if matches!(operation, DiffOp::Equal { .. }) {
                drawing.lines(Kind::Same, came, &mut after);
                gone.iter().for_each(|line| drop(before.line(line)));
                continue;
            }
            drawing.lines(Kind::Removed, gone, &mut before);
            drawing.lines(Kind::Added, came, &mut after);
        }
    }
    (drawing.rows, drawing.left_out)
}

/// That there is more than what is shown.
pub(crate) fn more_lines(left_out: usize) -> Option<Line<'static>> {
    let lines = if left_out == 1 { "line" } else { "lines" };
    (left_out > 0).then(|| Line::from(format!("… {} more {lines}", grouped(left_out as u64)).dim()))
}

/// Two texts and what leads from one to the other.
struct Compared<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    operations: Vec<DiffOp>,
    /// They differ so much that they were not compared but for how they begin and end.
    is_rough: bool,
}

impl<'a> Compared<'a> {
    fn new(old: &'a str, new: &'a str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
        let head = old.iter().zip(&new).take_while(same).count();
        let (old_rest, new_rest) = (&old[head..], &new[head..]);
        let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
        let (old_len, new_len) = (old_rest.len() - tail, new_rest.len() - tail);
        let is_rough = old_len > 0 && new_len > 0 && old_len + new_len > MOST_COMPARED;
        let operations = match is_rough {
            true => vec![DiffOp::Replace { old_index: head, old_len, new_index: head, new_len }],
            false => {
                let mut settings = TextDiff::configure();
                settings.algorithm(Algorithm::Myers).timeout(PATIENCE);
                settings.diff_slices(&old, &new).ops().to_vec()
            }
        };
        Self { old, new, operations, is_rough }
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Same,
    Removed,
    Added,
}

struct Drawing {
    width: u16,
    /// So many lines may still be drawn.
    most: usize,
    rows: Vec<Line<'static>>,
    left_out: usize,
}

impl Drawing {
    fn lines(&mut self, kind: Kind, lines: &[&str], highlighter: &mut Highlighter) {
        let drawn = lines.len().min(self.most);
        self.most -= drawn;
        self.left_out += lines.len() - drawn;
        for line in &lines[..drawn] {
            self.line(kind, line, highlighter);
        }
    }

    fn line(&mut self, kind: Kind, line: &str, highlighter: &mut Highlighter) {
        let plain = Style::new();
        let (mark, style) = match kind {
            Kind::Same => ("  ", plain),
            Kind::Removed => ("- ", plain.fg(Color::Red)),
            Kind::Added => ("+ ", plain.fg(Color::Green)),
        };
        let mut spans = highlighter.line(&shortened(line));
        for span in &mut spans {
            span.style = match kind {
                // One look tells what goes from what stays.
                Kind::Removed => style,
                Kind::Added if span.style == plain => style,
                Kind::Added => span.style,
                Kind::Same => span.style.add_modifier(Modifier::DIM),
            };
        }
        let mark = [Span::styled(mark, style)];
        self.rows.extend(wrapped_after(&spans, self.width, &mark, &mark));
    }
}

/// A line of which at most so much is shown as anybody reads.
pub(super) fn shortened(line: &str) -> String {
    match line.floor_char_boundary(LONGEST_LINE) {
        end if end < line.len() => format!("{}…", &line[..end]),
        _ => line.to_owned(),
    }
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
