//! What a person takes for one character, how many columns it takes, and lists that fit the terminal.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::chips::is_mark;

/// Before the chosen row of a list, and before the others.
const CHOSEN: &str = "> ";
const OTHER: &str = "  ";
/// Between the columns of a list.
const GAP: usize = 2;

/// Where the character that begins here ends. A mark is always one of its own, whatever stands beside it.
pub(super) fn next(text: &str, from: usize) -> usize {
    let Some(cluster) = text[from..].graphemes(true).next() else { return text.len() };
    let mut characters = cluster.char_indices();
    match characters.next() {
        Some((_, first)) if is_mark(first) => from + first.len_utf8(),
        _ => characters.find(|(_, other)| is_mark(*other)).map_or(from + cluster.len(), |(at, _)| from + at),
    }
}

/// Where the character that ends here begins.
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

/// The text in so many columns at most, on one line: the end of what is longer is an ellipsis.
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

/// Up to so many columns a list has names only.
const NARROW: usize = 24;

/// The part of a list around the chosen row, with what belongs to each row in a second column. The chosen one has a sign
/// before it, so that it is seen without colours too.
pub(in crate::tui) fn list<'a>(
    rows: impl ExactSizeIterator<Item = (&'a str, &'a str)>,
    chosen: usize,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let first = chosen.saturating_sub(height / 2).min(rows.len().saturating_sub(height));
    let seen: Vec<(&str, &str)> = rows.skip(first).take(height).collect();
    let room = width.saturating_sub(CHOSEN.len());
    let widest = seen.iter().map(|(name, _)| cut(name, room).width()).max().unwrap_or_default();
    // Where there is room for both, one long name leaves the others what is said of them.
    let has_details = seen.iter().any(|(_, detail)| !detail.is_empty());
    let column = if has_details && room > NARROW { widest.min(room / 2) } else { room };
    let row = |(at, (name, detail)): (usize, &(&str, &str))| {
        let is_chosen = first + at == chosen;
        let (sign, style) = match is_chosen {
            true => (CHOSEN, Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED)),
            false => (OTHER, Style::new()),
        };
        let name = cut(name, column);
        let gap = " ".repeat(column - name.width().min(column) + GAP);
        let detail = cut(detail, room.saturating_sub(column + GAP));
        let mut spans = vec![Span::raw(cut(sign, width)), Span::styled(name, style)];
        if !detail.is_empty() && column + GAP < room {
            spans.push(Span::raw(gap));
            spans.push(Span::styled(detail, Style::new().add_modifier(Modifier::DIM)));
        }
        Line::from(spans)
    };
    seen.iter().enumerate().map(row).collect()
}
