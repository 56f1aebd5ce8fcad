//! Answers as they come: Markdown, a few letters at a time, as rows of the terminal that are final as early as they can be.
//!
//! What is final does not depend on how the text was cut on its way here: only whole lines are looked at ([`Blocks`]), each of
//! them once, and a block is drawn ([`Drawing`]) when a line has come that ends it. What is not final yet is drawn anew
//! each time; it is never more than [`LONGEST`] bytes or so, since a longer block is cut.

mod blocks;
mod inline;
mod lines;
mod rows;
mod table;

use ratatui::text::Line;

use self::blocks::{Blocks, End};
use self::rows::Drawing;
use crate::output::safe;

/// A longer line, paragraph or table is drawn in parts, so that what is not final stays small.
const LONGEST: usize = 8 << 10;

/// A text that is still coming.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// What came of the line that has not ended yet.
    incoming: String,
    /// So much of it is known to have no end of a line.
    searched: usize,
    blocks: Blocks,
    drawing: Drawing,
}

impl Markdown {
    /// An empty text.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// More of the text came.
    pub(crate) fn push(&mut self, text: &str) {
        self.incoming.push_str(&safe(text));
        let mut taken = 0;
        loop {
            let rest = &self.incoming[taken..];
            let near = rest.floor_char_boundary(LONGEST);
            let (length, skipped, end) = match rest[self.searched..near].find('\n') {
                Some(at) => (self.searched + at, 1, End::OfLine),
                None if rest.len() > near => (last_space(&rest[..near]), 0, End::Cut),
                None => {
                    self.searched = near;
                    break;
                }
            };
            self.blocks.take(&rest[..length], end);
            taken += length + skipped;
            self.searched = 0;
        }
        self.incoming.drain(..taken);
    }

    /// Lines that can't change any more, at this width; each is given once.
    pub(crate) fn settled(&mut self, width: u16) -> Vec<Line<'static>> {
        let pieces = self.blocks.ready();
        self.drawing.draw(&pieces, width)
    }

    /// The lines of what may still change, after those that can't.
    pub(crate) fn open(&self, width: u16) -> Vec<Line<'static>> {
        let mut blocks = self.blocks.without_ready();
        if !self.incoming.is_empty() && !may_become_a_mark(&self.incoming) {
            blocks.take(&self.incoming, End::OfLine);
        }
        blocks.finish();
        self.drawing.clone().draw(&blocks.ready(), width)
    }

    /// The text is whole: all lines that are left. From here on it is as new.
    pub(crate) fn finish(&mut self, width: u16) -> Vec<Line<'static>> {
        let mut whole = std::mem::take(self);
        if !whole.incoming.is_empty() {
            whole.blocks.take(&whole.incoming, End::OfLine);
        }
        whole.blocks.finish();
        whole.settled(width)
    }
}

/// Where a line is cut that is too long: after a word, if it has one.
fn last_space(text: &str) -> usize {
    text.rfind(' ').map_or(text.len(), |at| at + 1)
}

/// The first letters of a line may be those of a mark: a paragraph must not look like a heading for a moment because a list
/// begins below it.
fn may_become_a_mark(line: &str) -> bool {
    let line = line.trim();
    line.len() <= 3 && line.chars().all(|letter| "-=#*_`~>|+:".contains(letter))
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
