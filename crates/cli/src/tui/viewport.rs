//! The inline viewport: the last rows of the terminal, redrawn in place. What is above them is ordinary terminal output, which the terminal
//! scrolls, keeps and copies.
//!
//! The cursor moves only relative to where it is, so the terminal is never asked for its position, which some answer wrongly or not at all.

use std::fmt::Write as _;
use std::io::{self, Write};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use super::sgr::{Colours, write_style};

/// The size of a terminal that reports none, and the largest that is believed.
const DEFAULT_SIZE: (u16, u16) = (80, 24);
const MAX_SIZE: (u16, u16) = (1_000, 400);

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Frame {
    /// Lines that scroll away above the viewport and are drawn once. Each fits one row.
    pub(crate) above: Vec<Line<'static>>,
    /// The rows of the viewport, from the first.
    pub(crate) rows: Vec<Line<'static>>,
    /// Column and row of the cursor in the viewport.
    pub(crate) cursor: (u16, u16),
}

pub(crate) struct Viewport<W> {
    out: W,
    colours: Colours,
    size: (u16, u16),
    /// The frame on the terminal.
    shown: Buffer,
    /// Column and row of the cursor in the viewport.
    cursor: (u16, u16),
    /// The terminal may show something else than `shown`.
    is_stale: bool,
}

/// The reported size, within plausible bounds.
pub(crate) fn plausible_size((width, height): (u16, u16)) -> (u16, u16) {
    let or_usual = |said: u16, usual: u16, most: u16| if said == 0 { usual } else { said.min(most) };
    (or_usual(width, DEFAULT_SIZE.0, MAX_SIZE.0), or_usual(height, DEFAULT_SIZE.1, MAX_SIZE.1))
}

impl<W: Write> Viewport<W> {
    /// A viewport that starts in the row of the cursor.
    pub(crate) fn new(out: W, size: (u16, u16), colours: Colours) -> Self {
        Self {
            out,
            colours,
            size: plausible_size(size),
            shown: Buffer::empty(Rect::ZERO),
            cursor: (0, 0),
            is_stale: true,
        }
    }

    /// Columns and rows of the terminal.
    pub(crate) fn size(&self) -> (u16, u16) {
        self.size
    }

    /// Adapts to a new size. A narrower terminal has wrapped the rows of the viewport, so the cursor stands lower.
    pub(crate) fn resize(&mut self, size: (u16, u16)) -> io::Result<()> {
        let size = plausible_size(size);
        if size == self.size {
            return Ok(());
        }
        let (width, above) = (size.0, self.cursor.1);
        let wrapped: u16 = (0..above).map(|row| self.length(row).div_ceil(width).max(1)).sum();
        self.cursor.1 = wrapped + self.cursor.0 / width;
        self.size = size;
        let mut text = String::new();
        self.go_to_top(&mut text);
        self.is_stale = true;
        self.write(&text)
    }

    /// Columns in use of a row.
    fn length(&self, row: u16) -> u16 {
        let area = *self.shown.area();
        let is_used = |column: &u16| self.shown[(*column, row)].symbol() != " ";
        (0..area.width).rev().find(is_used).map_or(0, |column| column + 1)
    }

    /// Draws a frame; cells that have not changed are not written.
    pub(crate) fn show(&mut self, frame: &Frame) -> io::Result<()> {
        let mut text = String::from("\x1b[?2026h\x1b[?25l");
        let (width, height) = self.size;
        let rows = u16::try_from(frame.rows.len()).unwrap_or(u16::MAX).clamp(1, height);
        let area = Rect::new(0, 0, width, rows);
        if self.is_stale || !frame.above.is_empty() || *self.shown.area() != area {
            self.go_to_top(&mut text);
            for line in &frame.above {
                self.line(&mut text, line);
                text.push_str("\r\n");
            }
            // Line feeds make room: the terminal scrolls where it has none.
            for _ in 1..rows {
                text.push('\n');
            }
            up(&mut text, rows - 1);
            self.shown = Buffer::empty(area);
            self.is_stale = false;
        }
        let mut next = Buffer::empty(area);
        for (row, line) in (0..rows).zip(&frame.rows) {
            next.set_line(0, row, line, width);
        }
        self.draw(&mut text, &next);
        self.shown = next;
        let (column, row) = (frame.cursor.0.min(width.saturating_sub(1)), frame.cursor.1.min(rows - 1));
        self.go_to(&mut text, column, row);
        text.push_str("\x1b[0m\x1b[?25h\x1b[?2026l");
        self.write(&text)
    }

    fn draw(&mut self, text: &mut String, next: &Buffer) {
        let mut style = None;
        // Where the cursor is after the last symbol.
        let mut at = None;
        let shown = std::mem::take(&mut self.shown);
        for (column, row, cell) in shown.diff(next) {
            if at != Some((column, row)) {
                self.go_to(text, column, row);
            }
            if style != Some(cell.style()) {
                write_style(text, cell.style(), self.colours);
                style = Some(cell.style());
            }
            text.push_str(cell.symbol());
            let width = u16::try_from(cell.symbol().width()).unwrap_or(1);
            at = Some((column + width, row));
            self.cursor = (column + width, row);
        }
    }

    fn line(&self, text: &mut String, line: &Line<'_>) {
        for span in line {
            let style = line.style.patch(span.style);
            let is_styled = style != Style::default();
            if is_styled {
                write_style(text, style, self.colours);
            }
            text.push_str(&span.content);
            if is_styled {
                text.push_str("\x1b[0m");
            }
        }
    }

    /// Moves to the first row and clears everything below.
    fn go_to_top(&mut self, text: &mut String) {
        up(text, self.cursor.1);
        text.push_str("\r\x1b[0m\x1b[J");
        self.cursor = (0, 0);
    }

    fn go_to(&mut self, text: &mut String, column: u16, row: u16) {
        let (_, from) = self.cursor;
        up(text, from.saturating_sub(row));
        if row > from {
            let _ = write!(text, "\x1b[{}B", row - from);
        }
        text.push('\r');
        if column > 0 {
            let _ = write!(text, "\x1b[{column}C");
        }
        self.cursor = (column, row);
    }

    /// Makes the next frame draw every cell.
    pub(crate) fn invalidate(&mut self) {
        self.is_stale = true;
    }

    /// Starts again in the row of the cursor, which is empty.
    pub(crate) fn restart(&mut self) {
        self.cursor = (0, 0);
        self.is_stale = true;
    }

    /// Removes the viewport. The cursor stands where it began.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        let mut text = String::new();
        self.go_to_top(&mut text);
        text.push_str("\x1b[?25h");
        self.is_stale = true;
        self.write(&text)
    }

    #[cfg(test)]
    pub(crate) fn written(&mut self) -> &mut W {
        &mut self.out
    }

    /// Writes text that neither moves the cursor nor shows anything.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

fn up(text: &mut String, rows: u16) {
    if rows > 0 {
        let _ = write!(text, "\x1b[{rows}A");
    }
}

#[cfg(test)]
#[path = "viewport_tests.rs"]
mod tests;
