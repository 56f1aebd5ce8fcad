//! Pasted text in an input: lines that are quoted with `>` and fenced blocks. The user shows it, and says none of it.

use crate::passages::ELLIPSIS;

const BACKTICKS: &str = "```";

/// An input, with what the user pasted apart from the rest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserText {
    /// The user's own words, with `[…]` in place of what was pasted.
    pub own: String,
    /// What was pasted; empty if nothing was.
    pub pasted: String,
}

impl UserText {
    /// Takes an input apart. A fence that is never closed reaches to the end: it is better to lose words of the user than to take
    /// somebody else's for the user's.
    pub fn of(said: &str) -> Self {
        let mut splitter = Splitter::default();
        said.lines().for_each(|line| splitter.push(line));
        Self { own: splitter.own.join("\n"), pasted: splitter.pasted.join("\n") }
    }
}

/// A fence that is open.
#[derive(Debug)]
enum OpenFence {
    /// Only a line that is a fence closes it. A pasted document may have fences of its own, which count as `depth`.
    Block { mark: char, length: usize, depth: usize },
    /// It began in the middle of a line, and the next backticks close it wherever they are.
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

    /// A line of the user's own, in which something may be fenced.
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

/// A line that opens or closes a fenced block.
struct FenceLine<'a> {
    mark: char,
    length: usize,
    /// What stands behind the mark.
    info: &'a str,
}

impl<'a> FenceLine<'a> {
    fn of(text: &'a str) -> Option<Self> {
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        (length >= BACKTICKS.len()).then_some(Self { mark, length, info: info.trim() })
    }

    /// Whether one word stands behind the mark, as the name of a language does.
    fn has_language(&self) -> bool {
        !self.info.contains(|letter: char| letter.is_whitespace() || letter == '`')
    }
}

#[cfg(test)]
#[path = "pasted_tests.rs"]
mod tests;
