//! The change that a write makes to a file, as a unified diff that people read.

use std::fmt::Write as _;
use std::time::Duration;

use similar::{Algorithm, DiffOp, TextDiff};

/// Above this number of differing lines no line-by-line comparison is made: it takes too long to compute and to read.
const MAX_COMPARED_LINES: usize = 20_000;

/// After this time the comparison is finished with an approximation.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);

/// Bytes of one line. A longer one ends with what is missing: `… [1200 more bytes]`.
const MAX_LINE_BYTES: usize = 500;

/// Bytes of all lines together, since the diff is stored with the result of the call.
const MAX_DIFF_BYTES: usize = 24 << 10;

/// Unchanged lines around each change of a write, and lines of its diff.
const CONTEXT_LINES: usize = 3;
const MAX_DIFF_LINES: usize = 200;

/// The diff of a write. None if the new content is not text or nothing changes.
pub(super) fn diff_of_write(path: &str, before: Option<&str>, after: &[u8]) -> Option<String> {
    let after = std::str::from_utf8(after).ok()?;
    let diff = unified_diff(path, before, after, CONTEXT_LINES, MAX_DIFF_LINES);
    (!diff.is_empty()).then_some(diff)
}

/// The change from `before` to `after` as a unified diff: two lines with the file's name, then hunks with line numbers in
/// their heads and `context` unchanged lines around each change. Without `before` the file is new.
///
/// At most `max_lines` lines of hunks are kept. The heads count all lines, and a last line says what is missing:
/// `… 120 more lines, +80 −40`. The diff is empty if nothing changes.
pub fn unified_diff(
    path: &str,
    before: Option<&str>,
    after: &str,
    context: usize,
    max_lines: usize,
) -> String {
    let old: Vec<&str> = before.unwrap_or_default().split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let hunks = similar::group_diff_ops(compare_lines(&old, &new), context);
    if hunks.is_empty() {
        return String::new();
    }
    let mut diff = DiffText { text: String::new(), lines_left: max_lines, left_out: LeftOutLines::default() };
    match before {
        Some(_) => diff.push_head(&format!("--- a/{path}")),
        None => diff.push_head("--- /dev/null"),
    }
    diff.push_head(&format!("+++ b/{path}"));
    for hunk in &hunks {
        diff.push_hunk(hunk, &old, &new);
    }
    diff.finish()
}

/// The operations that lead from the old lines to the new ones. Lines at the beginning and the end that are the same cost nothing.
fn compare_lines(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(new).take_while(same).count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(same).count();
    let (old_len, new_len) = (old_rest.len() - tail, new_rest.len() - tail);
    if old_len == 0 || new_len == 0 || old_len + new_len <= MAX_COMPARED_LINES {
        let mut settings = TextDiff::configure();
        settings.algorithm(Algorithm::Myers).timeout(DIFF_TIMEOUT);
        return settings.diff_slices(old, new).ops().to_vec();
    }
    let equal = |old_index, new_index, len| DiffOp::Equal { old_index, new_index, len };
    let replace = DiffOp::Replace { old_index: head, old_len, new_index: head, new_len };
    let all = [equal(0, 0, head), replace, equal(head + old_len, head + new_len, tail)];
    all.into_iter().filter(|operation| !matches!(operation, DiffOp::Equal { len: 0, .. })).collect()
}

#[derive(Debug, Default)]
struct LeftOutLines {
    context: usize,
    removed: usize,
    added: usize,
}

struct DiffText {
    text: String,
    /// Lines of hunks that may still be kept.
    lines_left: usize,
    left_out: LeftOutLines,
}

impl DiffText {
    fn push_head(&mut self, line: &str) {
        // A name with a line feed would look like a line of the diff.
        self.text.push_str(&line.replace(['\n', '\r'], "�"));
        self.text.push('\n');
    }

    fn push_hunk(&mut self, hunk: &[DiffOp], old: &[&str], new: &[&str]) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return };
        if self.has_room() {
            let old_lines = first.old_range().start..last.old_range().end;
            let new_lines = first.new_range().start..last.new_range().end;
            let _ = writeln!(self.text, "@@ -{} +{} @@", line_range(old_lines), line_range(new_lines));
        }
        for operation in hunk {
            let (removed, added) = (&old[operation.old_range()], &new[operation.new_range()]);
            match operation {
                DiffOp::Equal { .. } => self.left_out.context += self.push_lines(' ', added),
                _ => {
                    self.left_out.removed += self.push_lines('-', removed);
                    self.left_out.added += self.push_lines('+', added);
                }
            }
        }
    }

    fn has_room(&self) -> bool {
        self.lines_left > 0 && self.text.len() < MAX_DIFF_BYTES
    }

    /// Keeps lines while there is room. Returns how many were left out.
    fn push_lines(&mut self, mark: char, lines: &[&str]) -> usize {
        for (at, line) in lines.iter().enumerate() {
            if !self.has_room() {
                return lines.len() - at;
            }
            self.lines_left -= 1;
            let text = line.strip_suffix('\n');
            self.text.push(mark);
            let whole = text.unwrap_or(line);
            let end = whole.floor_char_boundary(MAX_LINE_BYTES);
            self.text.push_str(&whole[..end]);
            if end < whole.len() {
                let _ = write!(self.text, "… [{} more bytes]", whole.len() - end);
            }
            self.text.push('\n');
            if text.is_none() {
                self.text.push_str("\\ No newline at end of file\n");
            }
        }
        0
    }

    fn finish(mut self) -> String {
        let LeftOutLines { context, removed, added } = self.left_out;
        match context + removed + added {
            0 => {}
            lines => {
                let unit = if lines == 1 { "line" } else { "lines" };
                let _ = writeln!(self.text, "… {lines} more {unit}, +{added} −{removed}");
            }
        }
        self.text
    }
}

/// What a diff leaves out, as a text for people: `120 more lines, +80 −40; the ends of 2 long lines`. None if the diff shows the whole change.
pub fn omissions_of_diff(diff: &str) -> Option<String> {
    let rows = diff.lines().filter_map(|line| line.strip_prefix("… ")).map(str::to_owned);
    let cut = diff.lines().filter(|line| line.len() > MAX_LINE_BYTES && line.contains("… [")).count();
    let cut = match cut {
        0 => None,
        1 => Some("the end of a long line".to_owned()),
        cut => Some(format!("the ends of {cut} long lines")),
    };
    let omissions: Vec<String> = rows.chain(cut).collect();
    (!omissions.is_empty()).then(|| omissions.join("; "))
}

/// The lines of a file that a hunk covers: `12,5`, or `12` for a single line. An empty range names the line before it.
fn line_range(lines: std::ops::Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => (lines.start + 1).to_string(),
        count => format!("{},{count}", lines.start + 1),
    }
}

#[cfg(test)]
#[path = "unified_diff_tests.rs"]
mod tests;
