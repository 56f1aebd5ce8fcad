use std::num::NonZero;

/// Rows to keep above the screen.
const SCROLLBACK_ROWS: usize = 5_000;

/// The screen of an emulated terminal, as a user sees it.
pub struct TerminalScreen(vt100::Parser);

impl TerminalScreen {
    pub fn new((width, height): (u16, u16)) -> Self {
        Self(vt100::Parser::new(some(height), some(width), SCROLLBACK_ROWS))
    }

    /// Feeds the output of a program.
    pub fn show(&mut self, bytes: &[u8]) {
        self.0.process(bytes);
    }

    /// Changes the size. Rows are cut, not wrapped anew.
    pub fn resize(&mut self, (width, height): (u16, u16)) {
        self.0.screen_mut().set_size(some(height), some(width));
    }

    /// Columns and rows.
    pub fn size(&self) -> (u16, u16) {
        let (height, width) = self.0.screen().size();
        (width.get(), height.get())
    }

    /// The rows of the screen, without the spaces at their ends and the empty ones below.
    pub fn rows(&self) -> Vec<String> {
        let screen = self.0.screen();
        let (_, width) = screen.size();
        let mut rows: Vec<String> =
            screen.rows(0, width.get()).map(|row| row.trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    /// All rows: those that scrolled away, and those of the screen.
    pub fn all(&mut self) -> Vec<String> {
        let screen = self.0.screen_mut();
        let (height, width) = screen.size();
        screen.set_scrollback(usize::MAX);
        let mut above = screen.scrollback();
        let mut rows = Vec::new();
        while above > 0 {
            screen.set_scrollback(above);
            let taken = above.min(usize::from(height.get()));
            rows.extend(screen.rows(0, width.get()).take(taken).map(|row| row.trim_end().to_owned()));
            above -= taken;
        }
        screen.set_scrollback(0);
        rows.append(&mut self.rows());
        rows
    }

    /// The cursor: column, row.
    pub fn cursor(&self) -> (u16, u16) {
        let (row, column) = self.0.screen().cursor_position();
        (column, row)
    }

    /// A cell of the screen, with its colours.
    pub fn cell(&self, column: u16, row: u16) -> Option<&vt100::Cell> {
        self.0.screen().cell(row, column)
    }
}

fn some(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("a terminal has columns and rows")
}
