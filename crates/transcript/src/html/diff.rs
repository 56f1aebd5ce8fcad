//! Diffs as HTML: a line each, with its number and a sign, so that nothing is in the colour alone.

use super::fragment::{MAX_OUTPUT_BYTES, escape, push, push_line, push_pre};
use crate::call::file_diff::{DiffLineKind, DiffRow, FileDiff};
use crate::text::format_count;

/// Bytes of the HTML of one diff.
const MAX_DIFF_HTML: usize = 256 << 10;
/// Bytes of HTML for each byte of a diff. One of empty lines would otherwise be mostly markup.
const MAX_EXPANSION: usize = 16;

/// A unified diff. What can't be read as one is shown as it is.
pub(super) fn push_diff(html: &mut String, diff: &str) {
    let parsed = FileDiff::parse(diff);
    let rows = parsed.rows();
    if !rows.iter().any(|row| matches!(row, DiffRow::Line { .. })) {
        return push_pre(html, "diff", diff);
    }
    html.push_str("<div class=\"changes\" role=\"group\" aria-label=\"Changes\">\n");
    let number_width = rows.iter().map(number_of).max().unwrap_or(0).to_string().len();
    let (mut is_in_lines, mut bytes_left, mut left_out) = (false, MAX_OUTPUT_BYTES, 0);
    let max_html = html.len() + MAX_DIFF_HTML.min(diff.len().saturating_mul(MAX_EXPANSION) + 1_024);
    for row in &rows {
        let text = row_text(row);
        if left_out > 0 || text.len() > bytes_left || html.len() > max_html {
            left_out += 1;
            continue;
        }
        bytes_left -= text.len();
        let is_line = !matches!(row, DiffRow::File(_) | DiffRow::LeftOut(_));
        if is_line != is_in_lines {
            html.push_str(if is_line { "<pre class=\"diff\" dir=\"auto\">" } else { "</pre>\n" });
            is_in_lines = is_line;
        }
        push_row(html, row, number_width);
    }
    if is_in_lines {
        html.push_str("</pre>\n");
    }
    if left_out > 0 {
        push_line(html, "note", &format!("… {} not shown", format_count(left_out, "more line")));
    }
    html.push_str("</div>\n");
}

fn push_row(html: &mut String, row: &DiffRow<'_>, width: usize) {
    match row {
        DiffRow::File(path) => push_line(html, "file", path),
        DiffRow::LeftOut(lines) => {
            push_line(html, "note", &format!("… {}", format_count(*lines as u64, "more line")));
        }
        DiffRow::Gap => push(html, format_args!("<span class=\"gap\">{:>width$}</span>\n", "⋮")),
        DiffRow::Line { kind, number, text } => {
            let (name, class, sign) = match kind {
                DiffLineKind::Added => ("ins", "add", '+'),
                DiffLineKind::Removed => ("del", "del", '−'),
                DiffLineKind::Context => ("span", "context", ' '),
            };
            let text = escape(text);
            push(
                html,
                format_args!(
                    "<{name} class=\"{class}\"><span class=\"number\">{number:>width$}</span> {sign} {text}</{name}>\n"
                ),
            );
        }
    }
}

fn number_of(row: &DiffRow<'_>) -> usize {
    match row {
        DiffRow::Line { number, .. } => *number,
        _ => 0,
    }
}

fn row_text<'a>(row: &DiffRow<'a>) -> &'a str {
    match row {
        DiffRow::File(text) | DiffRow::Line { text, .. } => text,
        DiffRow::Gap | DiffRow::LeftOut(_) => "",
    }
}
