//! Streaming Markdown: takes an answer a few characters at a time and returns rows as soon as they can't change any more.
//!
//! The result does not depend on how the text was split on its way: [`BlockParser`] looks at whole lines only, each of them once, and
//! [`BlockRenderer`] renders a block when a line ends it. The open block is rendered again each time. It holds
//! at most about [`MAX_OPEN_BYTES`] bytes, since a longer block is split.

mod blocks;
mod inline;
mod lines;
mod rows;
mod table;

use self::blocks::{BlockParser, LineEnd};
pub(crate) use self::blocks::{BlockPart, ContainerKind, ContainerMark, PartContent};
pub(crate) use self::inline::WORD_JOINER;
use self::rows::BlockRenderer;
use crate::style::StyledLine;
use crate::text::sanitize;

/// A longer line, paragraph or table is rendered in parts, so that the open part stays small.
const MAX_OPEN_BYTES: usize = 8 << 10;

/// A text that is still arriving.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// The beginning of the line that has not ended yet.
    incoming: String,
    /// Bytes of `incoming` that are known to have no line break.
    searched: usize,
    blocks: BlockParser,
    renderer: BlockRenderer,
}

impl Markdown {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.incoming.push_str(&sanitize(text));
        let mut taken = 0;
        loop {
            let rest = &self.incoming[taken..];
            let near = rest.floor_char_boundary(MAX_OPEN_BYTES);
            let (length, skipped, end) = match rest[self.searched..near].find('\n') {
                Some(at) => (self.searched + at, 1, LineEnd::Newline),
                None if rest.len() > near => (last_space(&rest[..near]), 0, LineEnd::Cut),
                None => {
                    self.searched = near;
                    break;
                }
            };
            self.blocks.push_line(&rest[..length], end);
            taken += length + skipped;
            self.searched = 0;
        }
        self.incoming.drain(..taken);
    }

    /// Lines that can't change any more, wrapped at this width. Each is returned once.
    pub(crate) fn take_settled(&mut self, width: u16) -> Vec<StyledLine> {
        let parts = self.blocks.take_finished();
        self.renderer.render_parts(&parts, width)
    }

    /// The lines that may still change. They follow the settled ones.
    pub(crate) fn open_lines(&self, width: u16) -> Vec<StyledLine> {
        let mut blocks = self.blocks.clone_unfinished();
        if !self.incoming.is_empty() && !may_become_a_mark(&self.incoming) {
            blocks.push_line(&self.incoming, LineEnd::Newline);
        }
        blocks.finish();
        self.renderer.clone().render_parts(&blocks.take_finished(), width)
    }

    /// Ends the text, returns the remaining lines and starts over.
    pub(crate) fn finish(&mut self, width: u16) -> Vec<StyledLine> {
        let mut whole = std::mem::take(self);
        whole.end_text();
        whole.take_settled(width)
    }

    fn end_text(&mut self) {
        if !self.incoming.is_empty() {
            self.blocks.push_line(&self.incoming, LineEnd::Newline);
        }
        self.blocks.finish();
    }
}

/// The blocks of a whole text, for a renderer that makes no rows.
pub(crate) fn parse_blocks(text: &str) -> Vec<BlockPart> {
    let mut markdown = Markdown::new();
    markdown.push(text);
    markdown.end_text();
    markdown.blocks.take_finished()
}

/// Where to cut a line that is too long: after a word, if it has one.
fn last_space(text: &str) -> usize {
    text.rfind(' ').map_or(text.len(), |at| at + 1)
}

/// Whether the first letters of a line may become a mark. Without this check, a paragraph would flicker as a heading when a list
/// begins below it.
fn may_become_a_mark(line: &str) -> bool {
    let line = line.trim();
    line.len() <= 3 && line.chars().all(|letter| "-=#*_`~>|+:".contains(letter))
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
