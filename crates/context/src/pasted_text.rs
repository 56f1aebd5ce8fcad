//! Separates pasted text from the user's own words. Lines quoted with `>` and fenced blocks are pasted: the user
//! shows them but does not say them.

use crate::quotable::ELLIPSIS;

const BACKTICKS: &str = "```";

/// An input, split into the user's own words and pasted text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserText {
    /// The user's own words, with `[…]` in place of pasted text.
    pub own: String,
    /// Empty if nothing was pasted.
    pub pasted: String,
}

impl UserText {
    /// Splits an input. A fence that is never closed extends to the end, because losing words of the user is better
    /// than attributing pasted text to the user.
    pub fn of(said: &str) -> Self {
        let mut splitter = Splitter::default();
        said.lines().for_each(|line| splitter.push(line));
        Self { own: splitter.own.join("\n"), pasted: splitter.pasted.join("\n") }
    }
}

#[derive(Debug)]
enum OpenFence {
    /// Closed by a line that is a fence. A pasted document may have fences of its own, which `depth` counts.
    Block { mark: char, length: usize, depth: usize },
    /// It began in the middle of a line. The next backticks close it, even in the middle of a line.
    Inline,
}

#[derive(Debug, Default)]
struct Splitter {
    own: Vec<String>,
    pasted: Vec<String>,
    fence: Option<OpenFence>,
}

impl Splitter {
    fn push(&mut self, line: &str) {
        let text = line.trim_start_matches(|letter: char| letter.is_whitespace() || "-*+".contains(letter));
        match &mut self.fence {
            Some(OpenFence::Block { mark, length, depth }) => {
                if let Some(fence) = FenceLine::of(text).filter(|fence| fence.mark == *mark) {
                    let closes = fence.info.is_empty() && fence.length >= *length;
                    let is_nested = !fence.info.is_empty() && fence.has_language();
                    *depth = *depth + usize::from(is_nested) - usize::from(closes);
                    if *depth == 0 {
                        self.fence = None;
                    }
                }
                self.paste(line);
            }
            Some(OpenFence::Inline) => match line.split_once(BACKTICKS) {
                Some((inside, rest)) => {
                    self.paste(inside);
                    self.fence = None;
                    self.push_inline(rest);
                }
                None => self.paste(line),
            },
            None if text.starts_with('>') => self.paste(line),
            None => match FenceLine::of(text).filter(|fence| !fence.info.contains('`')) {
                Some(fence) => {
                    self.open_block(&fence);
                    self.paste(line);
                }
                None => self.push_inline(line),
            },
        }
    }

    /// Adds a line of the user, which may contain fenced text.
    fn push_inline(&mut self, line: &str) {
        let mut own = String::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once(BACKTICKS) {
            own = own + before + ELLIPSIS;
            rest = match after.split_once(BACKTICKS) {
                Some((inside, tail)) => {
                    self.pasted.push(inside.to_owned());
                    tail
                }
                None => {
                    let fence = FenceLine { mark: '`', length: BACKTICKS.len(), info: after.trim() };
                    if fence.info.is_empty() || fence.has_language() {
                        self.open_block(&fence);
                    } else {
                        self.fence = Some(OpenFence::Inline);
                    }
                    self.pasted.push(after.to_owned());
                    ""
                }
            };
        }
        self.own.push(own + rest);
    }

    fn open_block(&mut self, fence: &FenceLine<'_>) {
        self.fence = Some(OpenFence::Block { mark: fence.mark, length: fence.length, depth: 1 });
    }

    fn paste(&mut self, line: &str) {
        self.pasted.push(line.to_owned());
        if self.own.last().is_none_or(|last| !last.ends_with(ELLIPSIS)) {
            self.own.push(ELLIPSIS.to_owned());
        }
    }
}

struct FenceLine<'a> {
    mark: char,
    length: usize,
    /// The rest of the line after the mark.
    info: &'a str,
}

impl<'a> FenceLine<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        (length >= BACKTICKS.len()).then_some(Self { mark, length, info: info.trim() })
    }

    /// Whether the rest of the line is a single word, like the name of a language.
    fn has_language(&self) -> bool {
        !self.info.contains(|letter: char| letter.is_whitespace() || letter == '`')
    }
}

#[cfg(test)]
#[path = "pasted_text_tests.rs"]
mod tests;
