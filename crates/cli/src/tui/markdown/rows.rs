//! Blocks as rows of the terminal.

use ratatui::style::Stylize;
use ratatui::text::{Line, Span};

use super::blocks::{Content, Piece, Place};
use super::inline::{Part, Spans, paragraph, parts};
use crate::tui::highlight::Highlighter;
use crate::tui::wrap::{room_after, wrapped_after};

/// Code is indented by so much.
const CODE: &str = "  ";

/// What goes on from piece to piece.
#[derive(Debug, Clone, Default)]
pub(super) struct Drawing {
    /// Something was drawn, so that a blank row parts what follows from it.
    is_begun: bool,
    code: Option<Highlighter>,
}

impl Drawing {
    /// The rows of the next pieces.
    pub(super) fn draw(&mut self, pieces: &[Piece], width: u16) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        for piece in pieces {
            if let Some(gap) = piece.place.gap.as_ref().filter(|_| self.is_begun) {
                rows.push(blank(gap, width));
            }
            let before = rows.len();
            self.content(piece, width, &mut rows);
            self.is_begun |= rows.len() > before;
        }
        rows
    }

    fn content(&mut self, piece: &Piece, width: u16, rows: &mut Vec<Line<'static>>) {
        let place = &piece.place;
        match &piece.content {
            Content::Text(source) => lay_out(&parts(source), place, width, Head::Shown, rows),
            Content::More(source) => lay_out(&paragraph(source), place, width, Head::Shown, rows),
            Content::Table(source) => lay_out(&parts(source), place, width, Head::Shown, rows),
            Content::MoreOfTable(source) => lay_out(&parts(source), place, width, Head::ShownBefore, rows),
            Content::Plain(text) => {
                rows.extend(wrapped_after(&[Span::raw(text.as_str())], width, &place.first, &place.others));
            }
            Content::Rule => {
                let rule = "─".repeat(room_after(&place.first, width));
                rows.extend(wrapped_after(&[Span::from(rule).dim()], width, &place.first, &place.others));
            }
            Content::CodeBegins { language } => {
                self.code = Some(Highlighter::new(language));
                let has_mark = place.first != place.others;
                if !language.is_empty() || has_mark {
                    let (first, others) = (indented(&place.first), indented(&place.others));
                    let language = Span::from(language.clone()).dim();
                    rows.extend(wrapped_after(&[language], width, &first, &others));
                }
            }
            Content::Code(text) => {
                let spans = self.code.get_or_insert_with(|| Highlighter::new("")).line(text);
                let before = indented(&place.others);
                rows.extend(wrapped_after(&spans, width, &before, &before));
            }
        }
    }
}

/// Whether the head of a table is to be shown.
#[derive(Debug, Clone, Copy)]
enum Head {
    Shown,
    ShownBefore,
}

fn lay_out(parts: &[Part], place: &Place, width: u16, head: Head, rows: &mut Vec<Line<'static>>) {
    let room = room_after(&place.first, width).min(room_after(&place.others, width));
    let mut lines: Vec<&[Span<'static>]> = Vec::new();
    let tables: Vec<Vec<Spans>> = parts
        .iter()
        .map(|part| match (part, head) {
            (Part::Line(_), _) => Vec::new(),
            (Part::Table(table), Head::Shown) => table.lines(room),
            (Part::Table(table), Head::ShownBefore) => table.further_lines(room),
        })
        .collect();
    for (part, table) in parts.iter().zip(&tables) {
        match part {
            Part::Line(line) => lines.push(line),
            Part::Table(_) => lines.extend(table.iter().map(Vec::as_slice)),
        }
    }
    if lines.is_empty() && place.first != place.others {
        lines.push(&[]);
    }
    let mut before = &place.first;
    for line in lines {
        rows.extend(wrapped_after(line, width, before, &place.others));
        before = &place.others;
    }
}

fn indented(before: &[Span<'static>]) -> Spans {
    before.iter().cloned().chain([Span::from(CODE)]).collect()
}

/// A blank row, with the bar of a quote that it is in.
fn blank(gap: &[Span<'static>], width: u16) -> Line<'static> {
    let used = gap.iter().rposition(|span| !span.content.trim().is_empty()).map_or(0, |at| at + 1);
    wrapped_after(&[], width, &gap[..used], &[]).swap_remove(0)
}
