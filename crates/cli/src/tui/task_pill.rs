//! The row of a running task above the prompt.

use longhaul_protocol::TaskId;
use longhaul_transcript::{Color, Span, StyledLine};

use crate::output::truncate;
use crate::short_id::short;

/// A running task, with the last line of its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskPill {
    pub(crate) id: TaskId,
    pub(crate) what: String,
    pub(crate) last: String,
}

impl TaskPill {
    pub(super) fn line(&self) -> StyledLine {
        let id = Span::colored(format!("◦ {} ", short(self.id)), Color::Blue);
        let mut spans = vec![id, Span::raw(truncate(&self.what, 40))];
        if !self.last.is_empty() {
            spans.push(Span::dim(format!("  {}", truncate(&self.last, 200))));
        }
        StyledLine::from(spans)
    }
}
