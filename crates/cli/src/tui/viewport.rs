//! The few rows below everything that was said. They are drawn again and again; what is above them belongs to the terminal, which
//! scrolls, keeps and copies it as any other text.
//!
//! The cursor is only ever moved from where it is, never to a place of the screen: no terminal has to be asked where its cursor
//! stands, and none can answer wrongly or not at all.

use std::fmt::Write as _;
use std::io::{self, Write};

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;
use unicode_width::UnicodeWidthStr;

use super::sgr::{Colours, write_style};

/// A terminal that says less than this, or more, does not tell the truth.
const DEFAULT_SIZE: (u16, u16) = (80, 24);
const MAX_SIZE: (u16, u16) = (1_000, 400);

/// What is to be seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Frame {
    /// Goes above the viewport and is never drawn again. Each fits one row.
    pub(crate) above: Vec<Line<'static>>,
    /// The viewport, from its first row. Each fits one row.
    pub(crate) rows: Vec<Line<'static>>,
    /// Where in it the cursor stands: column, row.
    pub(crate) cursor: (u16, u16),
}

/// The viewport of a terminal.
pub(crate) struct Viewport<W> {
    out: W,
    colours: Colours,
    size: (u16, u16),
    /// What stands there now.
    shown: Buffer,
    /// Where in it the cursor stands now.
    cursor: (u16, u16),
    /// Nothing of what stands there can be relied on.
    is_stale: bool,
}

/// The size of a terminal, as far as it can be believed.
pub(crate) fn believable((width, height): (u16, u16)) -> (u16, u16) {
    let or_usual = |said: u16, usual: u16, most: u16| if said == 0 { usual } else { said.min(most) };
    (or_usual(width, DEFAULT_SIZE.0, MAX_SIZE.0), or_usual(height, DEFAULT_SIZE.1, MAX_SIZE.1))
}

impl<W: Write> Viewport<W> {
    /// Begins in the row in which the cursor stands.
    pub(crate) fn new(out: W, size: (u16, u16), colours: Colours) -> Self {
        Self {
            out,
            colours,
            size: believable(size),
            shown: Buffer::empty(Rect::ZERO),
            cursor: (0, 0),
            is_stale: true,
        }
    }

    /// Columns and rows of the terminal.
    pub(crate) fn size(&self) -> (u16, u16) {
        self.size
    }

    /// The terminal has another size. Where it is narrower, it has broken what stood in the viewport into more rows.
    pub(crate) fn resize(&mut self, size: (u16, u16)) -> io::Result<()> {
        let size = believable(size);
        if size == self.size {
            return Ok(());
        }
        let (width, above) = (size.0, self.cursor.1);
        let broken: u16 = (0..above).map(|row| self.length(row).div_ceil(width).max(1)).sum();
        self.cursor.1 = broken + self.cursor.0 / width;
        self.size = size;
        let mut text = String::new();
        self.go_to_top(&mut text);
        self.is_stale = true;
        self.write(&text)
    }

    /// How many columns of a row are in use.
    fn length(&self, row: u16) -> u16 {
        let area = *self.shown.area();
        let is_used = |column: &u16| self.shown[(*column, row)].symbol() != " ";
        (0..area.width).rev().find(is_used).map_or(0, |column| column + 1)
    }

    /// Draws. What has not changed is not written again.
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
            // The terminal scrolls as far as there is no room.
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
        // Where the next symbol would stand without moving.
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

    /// Where the viewport begins; everything from there on is cleared.
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

    /// What stands in the viewport was written over: the next frame draws all of it.
    pub(crate) fn forget(&mut self) {
        self.is_stale = true;
    }

    /// The cursor stands at the beginning of a row that nobody has drawn in.
    pub(crate) fn begin_anew(&mut self) {
        self.cursor = (0, 0);
        self.is_stale = true;
    }

    /// Takes the viewport away. What comes next stands where it began.
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

    /// Writes something that moves no cursor and shows nothing.
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
