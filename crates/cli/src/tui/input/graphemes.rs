//! Grapheme clusters, and text and lists cut to columns.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::chips::is_mark;

/// Before the selected row of a list, and before the others.
const SELECTED_MARK: &str = "> ";
const OTHER_MARK: &str = "  ";
/// Columns between the columns of a list.
const COLUMN_GAP: usize = 2;

/// The end of the grapheme cluster that starts here. A chip mark is always a cluster of its own.
pub(super) fn next(text: &str, from: usize) -> usize {
    let Some(cluster) = text[from..].graphemes(true).next() else { return text.len() };
    let mut characters = cluster.char_indices();
    match characters.next() {
        Some((_, first)) if is_mark(first) => from + first.len_utf8(),
        _ => characters.find(|(_, other)| is_mark(*other)).map_or(from + cluster.len(), |(at, _)| from + at),
    }
}

/// The start of the grapheme cluster that ends here.
pub(super) fn previous(text: &str, to: usize) -> usize {
    let Some((start, cluster)) = text[..to].grapheme_indices(true).next_back() else { return 0 };
    let mut characters = cluster.char_indices().rev();
    match characters.next() {
        Some((at, last)) if is_mark(last) => start + at,
        _ => characters
            .find(|(_, other)| is_mark(*other))
            .map_or(start, |(at, mark)| start + at + mark.len_utf8()),
    }
}

/// The text on one line, cut to `columns` with an ellipsis.
pub(in crate::tui) fn cut(text: &str, columns: usize) -> String {
    let mut fitting = String::new();
    let mut used = 0;
    for cluster in text.graphemes(true) {
        let shown = if cluster.contains(char::is_control) { " " } else { cluster };
        used += shown.width();
        if used > columns {
            return shortened(&fitting, columns);
        }
        fitting.push_str(shown);
    }
    fitting
}

fn shortened(text: &str, columns: usize) -> String {
    let Some(columns) = columns.checked_sub(1) else { return String::new() };
    let mut used = 0;
    let kept = text.graphemes(true).take_while(|cluster| {
        used += cluster.width();
        used <= columns
    });
    kept.chain(["…"]).collect()
}

/// Up to this width a list shows names without details.
const NARROW_COLUMNS: usize = 24;

/// The part of a list around the selected row: names, with details in a second column. The selected row has a mark, so that it is visible
/// without colours.
pub(in crate::tui) fn list<'a>(
    rows: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    selected: usize,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let first = selected.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let seen: Vec<(&str, &str)> = rows.skip(first).take(height).collect();
    let room = width.saturating_sub(SELECTED_MARK.len());
    let widest = seen.iter().map(|(name, _)| cut(name, room).width()).max().unwrap_or_default();
    // A long name takes at most half of the width, so that details stay visible.
    let has_details = seen.iter().any(|(_, detail)| !detail.is_empty());
    let column = if has_details && room > NARROW_COLUMNS { widest.min(room / 2) } else { room };
    let row = |(at, (name, detail)): (usize, &(&str, &str))| {
        let is_selected = first + at == selected;
        let (sign, style) = match is_selected {
            true => (SELECTED_MARK, Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED)),
            false => (OTHER_MARK, Style::new()),
        };
        let name = cut(name, column);
        let gap = " ".repeat(column - name.width().min(column) + COLUMN_GAP);
        let detail = cut(detail, room.saturating_sub(column + COLUMN_GAP));
        let mut spans = vec![Span::raw(cut(sign, width)), Span::styled(name, style)];
        if !detail.is_empty() && column + COLUMN_GAP < room {
            spans.push(Span::raw(gap));
            spans.push(Span::styled(detail, Style::new().add_modifier(Modifier::DIM)));
        }
        Line::from(spans)
    };
    seen.iter().enumerate().map(row).collect()
}
