//! From the parts of an answer to its blocks.

use crate::{Part, RateLimits, Stop, StopKind, Tokens};
use longhaul_protocol::{CallId, Item, Role};

/// An answer that is longer than this is none: no model is asked for so much, and every record of it must fit the journal.
const LONGEST_ANSWER: usize = 2 << 20;

/// An answer with more calls than this is none.
const MOST_CALLS: usize = 256;

/// The block that is coming, and what the answer cost so far.
#[derive(Debug, Default)]
pub struct Blocks {
    open: Option<OpenBlock>,
    bytes: usize,
    calls: usize,
    /// What the provider counted so far.
    pub tokens: Option<Tokens>,
    /// How much more it takes.
    pub limits: Option<RateLimits>,
}

#[derive(Debug)]
enum OpenBlock {
    Text(String),
    Reasoning(String),
    Call { wire_id: Option<String>, name: String, arguments: String },
}

/// What a part comes to.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing that anybody needs to know.
    Nothing,
    /// More text.
    Text(String),
    /// More of a thought.
    Reasoning(String),
    /// A block is complete.
    Block(Item),
    /// The answer is complete.
    End(Stop),
    /// A part that can't come here.
    Odd(&'static str),
    /// More than any answer may have.
    TooLarge(&'static str),
}

impl Blocks {
    /// Takes the next part.
    pub fn push(&mut self, part: Part) -> Progress {
        if let Part::TextDelta(delta) | Part::ReasoningDelta(delta) | Part::ArgumentsDelta(delta) = &part {
            self.bytes += delta.len();
        }
        self.calls += usize::from(matches!(part, Part::CallStart { .. }));
        if self.bytes > LONGEST_ANSWER {
            return Progress::TooLarge("the answer is longer than 2 MiB, which none may be");
        }
        if self.calls > MOST_CALLS {
            return Progress::TooLarge("the answer asks for more than 256 calls, which none may");
        }
        match (part, self.open.take()) {
            (Part::TextStart, None) => self.begin(OpenBlock::Text(String::new())),
            (Part::ReasoningStart, None) => self.begin(OpenBlock::Reasoning(String::new())),
            (Part::CallStart { wire_id, name }, None) => {
                self.begin(OpenBlock::Call { wire_id, name, arguments: String::new() })
            }
            (Part::TextDelta(delta), Some(OpenBlock::Text(text))) => {
                self.open = Some(OpenBlock::Text(text + &delta));
                Progress::Text(delta)
            }
            (Part::ReasoningDelta(delta), Some(OpenBlock::Reasoning(text))) => {
                self.open = Some(OpenBlock::Reasoning(text + &delta));
                Progress::Reasoning(delta)
            }
            (Part::ArgumentsDelta(delta), Some(OpenBlock::Call { wire_id, name, arguments })) => {
                self.begin(OpenBlock::Call { wire_id, name, arguments: arguments + &delta })
            }
            (Part::TextStop, Some(OpenBlock::Text(text))) => {
                Progress::Block(Item::Text { role: Role::Assistant, text })
            }
            (Part::ReasoningStop { signature }, Some(OpenBlock::Reasoning(text))) => {
                Progress::Block(Item::Reasoning { text, signature })
            }
            (Part::CallStop { signature }, Some(OpenBlock::Call { wire_id, name, arguments })) => {
                let call = CallId::generate();
                Progress::Block(Item::ToolCall { call, wire_id, name, arguments, signature })
            }
            (Part::Usage(tokens), open) => {
                self.open = open;
                self.tokens = Some(tokens);
                Progress::Nothing
            }
            (Part::Limits(limits), open) => {
                self.open = open;
                self.limits = Some(limits);
                Progress::Nothing
            }
            (Part::End(stop), None) => Progress::End(stop),
            // It was cut in the middle of this; what is not complete does not count.
            (Part::End(stop), Some(_)) if stop.kind == StopKind::Length => Progress::End(stop),
            (Part::End(_), Some(_)) => Progress::Odd("it ended in the middle of a block"),
            _ => Progress::Odd("a part came that does not belong there"),
        }
    }

    fn begin(&mut self, open: OpenBlock) -> Progress {
        self.open = Some(open);
        Progress::Nothing
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
