//! The difference between two texts, line by line.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Unchanged lines that are shown around changed ones.
const CONTEXT_LINES: usize = 2;
/// After this time the rest counts as one replaced block, so that no input takes long.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// Removed lines with `-`, added lines with `+`, and a few unchanged lines around them. ` …` marks omitted lines.
/// Empty if nothing changed.
pub(crate) fn line_diff(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let diff = TextDiff::configure().timeout(DIFF_TIMEOUT).diff_slices(&before, &after);
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
