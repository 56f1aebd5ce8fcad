//! The difference between two texts, line by line.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Unchanged lines that are shown around changed ones.
const CONTEXT_LINES: usize = 2;
/// Texts of this many lines together are compared exactly, so that the same two pages always give the same difference.
const MAX_EXACT_LINES: usize = 4_000;
/// Of longer texts, the rest counts as replaced as a whole after this time.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// Removed lines with `-`, added lines with `+`, and a few unchanged lines around them. ` …` marks omitted lines.
/// Empty if nothing changed.
pub(crate) fn line_diff(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let mut comparison = TextDiff::configure();
    if before.len() + after.len() > MAX_EXACT_LINES {
        comparison.timeout(DIFF_TIMEOUT);
    }
    let diff = comparison.diff_slices(&before, &after);
    let (mut text, mut shown_through) = (String::new(), 0);
    for group in diff.grouped_ops(CONTEXT_LINES) {
        for (position, operation) in group.iter().enumerate() {
            if position == 0 && operation.old_range().start > shown_through {
                text.push_str(" …\n");
            }
            for change in diff.iter_changes(operation) {
                text.push(match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                });
                text.push_str(change.value());
                text.push('\n');
            }
            shown_through = operation.old_range().end;
        }
    }
    if !text.is_empty() && shown_through < before.len() {
        text.push_str(" …\n");
    }
    text
}

#[cfg(test)]
#[path = "line_diff_tests.rs"]
mod tests;
