//! The last lines of what a command printed, below the line of its call.

use super::command_result::{CommandResult, LineCount, missing_lines};
use super::outcome::line_count;
use crate::block::CallResult;
use crate::style::StyledLine;
use crate::text::{format_number, truncate};
use crate::wrap::truncate_line;

/// Rows below a command that has ended, with the one that says how many lines there are above.
const MAX_TAIL_ROWS: usize = 5;

const INDENT: &str = "  ";

/// Characters of a line that are looked at; a terminal is not wider.
const MAX_LINE_CHARS: usize = 1_000;

/// Stands for the part that is cut out of a long output. The line in its place is for the model.
const CUT: &str = "… cut here, Ctrl-O shows all of it";

/// The end of a command's output, and how much is above it.
pub(super) fn finished_tail_lines(result: &CallResult, width: u16) -> Vec<StyledLine> {
    let Some(report) = CommandResult::parse(&result.content) else { return vec![] };
    let output = report.output.trim_end();
    // Blank lines at the end are neither shown nor counted.
    let blank = report.output[output.len()..].lines().count().saturating_sub(1) as u64;
    let shown_line = |line| if missing_lines(line).is_some() { CUT } else { line };
    let lines: Vec<&str> = output.lines().rev().take(MAX_TAIL_ROWS).map(shown_line).collect();
    let count = line_count(result, &report);
    let shown = match count {
        LineCount::Exact(all) if all.saturating_sub(blank) <= lines.len() as u64 => lines.len(),
        _ => lines.len().min(MAX_TAIL_ROWS - 1),
    };
    let notice = match count {
        LineCount::Exact(all) => match all.saturating_sub(blank + shown as u64) {
            0 => None,
            1 => Some("… 1 more line, Ctrl-O".to_owned()),
            more => Some(format!("… {} more lines, Ctrl-O", format_number(more))),
        },
        LineCount::MoreThan(lines) => Some(format!("… more than {} lines, Ctrl-O", format_number(lines))),
    };
    let notice = notice.map(|text| truncate_line(&StyledLine::dim(format!("{INDENT}{text}")), width));
    notice.into_iter().chain(tail_rows(lines[..shown].iter().rev().copied(), width)).collect()
}

/// Lines of an output, one row each.
pub(crate) fn tail_rows<'a>(
    lines: impl Iterator<Item = &'a str>,
    width: u16,
) -> impl Iterator<Item = StyledLine> {
    lines.map(move |line| {
        let line = truncate(&line.replace('\t', "    "), MAX_LINE_CHARS);
        truncate_line(&StyledLine::dim(format!("{INDENT}{line}")), width)
    })
}
