//! The unified diff of a call as styled lines: with line numbers, marks and colours.

use super::summary::language_of_path;
use crate::diff::{more_lines_notice, truncate_bytes};
use crate::highlight::Highlighter;
use crate::style::{Color, Span, Style, StyledLine};
use crate::text::{format_number, truncate};
use crate::wrap::{truncate_line, wrap_spans};

/// Rows of a diff begin below the name of the call.
const INDENT: &str = "  ";

const MAX_NAME_CHARS: usize = 200;

/// A diff, read for rendering. What can't be read is left out.
#[derive(Debug, Default)]
pub(crate) struct FileDiff<'a> {
    files: Vec<ChangedFile<'a>>,
    pub(crate) added: usize,
    pub(crate) removed: usize,
    /// Lines that the diff itself leaves out.
    left_out: usize,
}

#[derive(Debug)]
struct ChangedFile<'a> {
    path: &'a str,
    /// The file was not there before.
    is_new: bool,
    hunks: Vec<Vec<DiffLine<'a>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffLineKind {
    Context,
    Removed,
    Added,
}

/// A row of a diff for a renderer that knows no width.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DiffRow<'a> {
    File(&'a str),
    Line {
        kind: DiffLineKind,
        /// In the old file for a removed line, else in the new one.
        number: usize,
        text: &'a str,
    },
    /// Lines between two hunks that did not change.
    Gap,
    /// Lines that the diff itself leaves out.
    LeftOut(usize),
}

#[derive(Debug, Clone, Copy)]
struct DiffLine<'a> {
    kind: DiffLineKind,
    /// In the old file for a removed line, else in the new one.
    number: usize,
    text: &'a str,
}

/// A part of a file before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffHunk {
    /// As the diff names it: relative to the work folder, or absolute.
    pub path: String,
    /// The first line in the new file.
    pub line: usize,
    /// None if the file is new.
    pub old: Option<String>,
    pub new: String,
}

/// The hunks of a unified diff, for a client that compares texts itself. Lines that the diff leaves out are missing.
pub fn diff_hunks(diff: &str) -> Vec<DiffHunk> {
    FileDiff::parse(diff).hunks()
}

/// Where in a hunk the parser is. While lines of the hunk are still to come, a removed line can't be taken for the head of a file.
#[derive(Debug, Default)]
struct HunkProgress {
    old_line: usize,
    new_line: usize,
    old_left: usize,
    new_left: usize,
}

impl HunkProgress {
    /// Reads a line of the hunk. None if it is none.
    fn read<'a>(&mut self, line: &'a str) -> Option<DiffLine<'a>> {
        if self.old_left == 0 && self.new_left == 0 {
            return None;
        }
        let kind = match line.as_bytes().first() {
            Some(b' ') | None => DiffLineKind::Context,
            Some(b'-') => DiffLineKind::Removed,
            Some(b'+') => DiffLineKind::Added,
            _ => return None,
        };
        let number = if kind == DiffLineKind::Removed { self.old_line } else { self.new_line };
        if kind != DiffLineKind::Added {
            (self.old_line, self.old_left) = (self.old_line + 1, self.old_left.saturating_sub(1));
        }
        if kind != DiffLineKind::Removed {
            (self.new_line, self.new_left) = (self.new_line + 1, self.new_left.saturating_sub(1));
        }
        Some(DiffLine { kind, number, text: line.get(1..).unwrap_or_default() })
    }
}

impl<'a> FileDiff<'a> {
    pub(crate) fn parse(diff: &'a str) -> Self {
        let mut parsed = Self::default();
        let mut progress = HunkProgress::default();
        let mut old_path = "";
        for line in diff.lines() {
            if let Some(read) = progress.read(line) {
                parsed.added += usize::from(read.kind == DiffLineKind::Added);
                parsed.removed += usize::from(read.kind == DiffLineKind::Removed);
                let hunk = parsed.files.last_mut().and_then(|file| file.hunks.last_mut());
                hunk.into_iter().for_each(|hunk| hunk.push(read));
            } else if let Some(path) = line.strip_prefix("--- ") {
                old_path = path;
            } else if let Some(path) = line.strip_prefix("+++ ") {
                let is_new = old_path == "/dev/null";
                let path = if path == "/dev/null" { old_path } else { path };
                let path = path.strip_prefix("b/").or_else(|| path.strip_prefix("a/")).unwrap_or(path);
                parsed.files.push(ChangedFile { path, is_new, hunks: Vec::new() });
            } else if let Some(hunk) = hunk_start(line) {
                progress = hunk;
                parsed.files.last_mut().into_iter().for_each(|file| file.hunks.push(Vec::new()));
            } else if let Some((lines, added, removed)) = left_out_lines(line) {
                parsed.left_out += lines;
                parsed.added += added;
                parsed.removed += removed;
                progress = HunkProgress::default();
            }
        }
        parsed
    }

    /// The only file is a new one.
    pub(crate) fn is_new_file(&self) -> bool {
        matches!(&self.files[..], [file] if file.is_new)
    }

    /// Everything, row by row.
    pub(crate) fn rows(&self) -> Vec<DiffRow<'a>> {
        let mut rows = Vec::new();
        for file in &self.files {
            rows.push(DiffRow::File(file.path));
            for (at, hunk) in file.hunks.iter().enumerate() {
                rows.extend((at > 0).then_some(DiffRow::Gap));
                rows.extend(hunk.iter().map(|DiffLine { kind, number, text }| DiffRow::Line {
                    kind: *kind,
                    number: *number,
                    text,
                }));
            }
        }
        rows.extend((self.left_out > 0).then_some(DiffRow::LeftOut(self.left_out)));
        rows
    }

    /// The hunks, each as the text before and after the change.
    fn hunks(&self) -> Vec<DiffHunk> {
        let of_file = |file: &ChangedFile<'a>| {
            let (path, is_new) = (file.path.to_owned(), file.is_new);
            let hunk = move |lines: &Vec<DiffLine<'a>>| {
                let text = |left_out| {
                    let kept = lines.iter().filter(|line| line.kind != left_out);
                    kept.map(|line| format!("{}\n", line.text)).collect::<String>()
                };
                let is_after = |line: &&DiffLine<'a>| line.kind != DiffLineKind::Removed;
                let line = lines.iter().find(is_after).or(lines.first()).map_or(1, |line| line.number);
                let old = (!is_new).then(|| text(DiffLineKind::Added));
                DiffHunk { path: path.clone(), line, old, new: text(DiffLineKind::Removed) }
            };
            file.hunks.iter().map(hunk).collect::<Vec<_>>()
        };
        self.files.iter().flat_map(of_file).collect()
    }

    /// At most `max_lines` lines of the diff, and a row that says how many were left out.
    pub(crate) fn lines(&self, width: u16, max_lines: usize) -> Vec<StyledLine> {
        let all = || self.files.iter().flat_map(|file| file.hunks.iter().flatten());
        let number_width = all().map(|line| line.number).max().unwrap_or(0).to_string().len();
        let mut rows = DiffRows { width, number_width, rows: Vec::new() };
        let mut lines_left = max_lines;
        for file in &self.files {
            if self.files.len() > 1 && lines_left > 0 {
                let name = Span::styled(truncate(file.path, MAX_NAME_CHARS), Style::new().bold());
                rows.push_row(&StyledLine::from(vec![INDENT.into(), name]));
            }
            for (at, hunk) in file.hunks.iter().enumerate() {
                if at > 0 && lines_left > 0 {
                    rows.push_row(&StyledLine::dim(format!("{INDENT}{:>number_width$}", "⋮")));
                }
                let shown = hunk.len().min(lines_left);
                lines_left -= shown;
                rows.push_hunk(&hunk[..shown], language_of_path(file.path));
            }
        }
        let left_out = self.left_out + all().count().saturating_sub(max_lines);
        if let Some(notice) = more_lines_notice(left_out) {
            rows.push_row(&StyledLine::dim(format!("{INDENT}{notice}")));
        }
        rows.rows
    }
}

struct DiffRows {
    width: u16,
    number_width: usize,
    rows: Vec<StyledLine>,
}

impl DiffRows {
    fn push_row(&mut self, row: &StyledLine) {
        self.rows.push(truncate_line(row, self.width));
    }

    fn push_hunk(&mut self, hunk: &[DiffLine<'_>], language: Option<&str>) {
        // The lines between hunks are not parsed, so a string that begins there may be coloured as code.
        let highlighter = Highlighter::new(language.unwrap_or_default());
        let (mut before, mut after) = (highlighter.clone(), highlighter);
        for line in hunk {
            let text = truncate_bytes(line.text);
            let spans = match line.kind {
                DiffLineKind::Removed => before.highlight_line(&text),
                DiffLineKind::Added => after.highlight_line(&text),
                DiffLineKind::Context => {
                    before.highlight_line(&text);
                    after.highlight_line(&text)
                }
            };
            self.push_line(*line, spans);
        }
    }

    /// A line behind its number and its mark. The rows of a long line have the same indentation as its first one.
    fn push_line(&mut self, line: DiffLine<'_>, mut spans: Vec<Span>) {
        let plain = Style::new();
        let (mark, style) = match line.kind {
            DiffLineKind::Context => (' ', plain.dim()),
            DiffLineKind::Removed => ('-', plain.fg(Color::Red)),
            DiffLineKind::Added => ('+', plain.fg(Color::Green)),
        };
        for span in &mut spans {
            span.style = match line.kind {
                // A removed line is all red, so that it can't be taken for one that stays.
                DiffLineKind::Removed => style,
                DiffLineKind::Added if span.style == plain => style,
                DiffLineKind::Added => span.style,
                DiffLineKind::Context => span.style.dim(),
            };
        }
        let indentation = take_indentation(&mut spans);
        let number = format!("{INDENT}{:>width$} ", line.number, width = self.number_width);
        let blank = " ".repeat(number.len() + 2);
        let first = [Span::dim(number), Span::styled(format!("{mark} "), style), indentation.clone()];
        self.rows.extend(wrap_spans(&spans, self.width, &first, &[Span::raw(blank), indentation]));
    }
}

/// Removes white space from the beginning of a line and returns it.
fn take_indentation(spans: &mut [Span]) -> Span {
    let mut indentation = String::new();
    for span in spans {
        let rest = span.content.trim_start_matches([' ', '\t']).len();
        indentation.push_str(&span.content[..span.content.len() - rest]);
        span.content.drain(..span.content.len() - rest);
        if rest > 0 {
            break;
        }
    }
    Span::raw(indentation)
}

/// The head of a hunk: `@@ -12,5 +12,6 @@`.
fn hunk_start(line: &str) -> Option<HunkProgress> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let new = rest.split_once(" @@")?.0;
    let range = |text: &str| match text.split_once(',') {
        Some((start, length)) => Some((start.parse().ok()?, length.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    let ((old_line, old_left), (new_line, new_left)) = (range(old)?, range(new)?);
    Some(HunkProgress { old_line, new_line, old_left, new_left })
}

/// What a diff leaves out: lines, and those of them that are added and removed. `… 120 more lines, +80 −40`.
fn left_out_lines(line: &str) -> Option<(usize, usize, usize)> {
    let (lines, counts) = line.strip_prefix("… ")?.split_once(" more line")?;
    let counts = counts.trim_start_matches(['s', ',', ' ']);
    let (added, removed) = counts.strip_prefix('+')?.split_once(" −")?;
    Some((lines.parse().ok()?, added.parse().ok()?, removed.parse().ok()?))
}

/// `+3 −1`.
pub(crate) fn change_count_spans(added: usize, removed: usize) -> Vec<Span> {
    let mut spans = Vec::new();
    if added > 0 {
        spans.push(Span::colored(format!("+{}", format_number(added as u64)), Color::Green));
    }
    if removed > 0 {
        if added > 0 {
            spans.push(Span::raw(" "));
        }
        spans.push(Span::colored(format!("−{}", format_number(removed as u64)), Color::Red));
    }
    spans
}

#[cfg(test)]
#[path = "file_diff_tests.rs"]
mod tests;
