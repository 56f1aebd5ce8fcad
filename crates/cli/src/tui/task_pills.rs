//! The rows of the running tasks.

use longhaul_protocol::TaskId;
use longhaul_transcript::{Color, Span, StyledLine};

use crate::output::truncate;
use crate::short_id::short;

/// Tasks that have a row; the rest is counted in one more row.
const MAX_PILL_ROWS: usize = 3;

/// A running task, with the last line of its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskPill {
    pub(crate) id: TaskId,
    pub(crate) what: String,
    pub(crate) last: String,
}

pub(super) fn pill_lines(pills: &[TaskPill]) -> Vec<StyledLine> {
    let mut lines: Vec<StyledLine> = pills.iter().take(MAX_PILL_ROWS).map(pill_line).collect();
    if pills.len() > MAX_PILL_ROWS {
        let more = pills.len() - MAX_PILL_ROWS;
        lines.push(StyledLine::dim(format!("◦ {more} more; /tasks lists them")));
    }
    lines
}

fn pill_line(pill: &TaskPill) -> StyledLine {
    let id = Span::colored(format!("◦ {} ", short(pill.id)), Color::Blue);
    let mut spans = vec![id, Span::raw(truncate(&pill.what, 40))];
    if !pill.last.is_empty() {
        spans.push(Span::dim(format!("  {}", truncate(&pill.last, 200))));
    }
    StyledLine::from(spans)
}
