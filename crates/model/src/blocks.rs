//! From the parts of an answer to its blocks.

use crate::{AnswerPart, RateLimits, StopKind, StopReason, TokenCounts};
use longhaul_protocol::{CallId, Item, Role};

/// An answer that is longer than this is none: no model is asked for so much, and every record of it must fit the journal.
const LONGEST_ANSWER: usize = 2 << 20;

/// An answer with more calls than this is none.
const MOST_CALLS: usize = 256;

/// The block that is coming, and what the answer cost so far.
#[derive(Debug, Default)]
pub struct BlockAssembler {
    open: Option<OpenBlock>,
    bytes: usize,
    calls: usize,
    /// What the provider counted so far.
    pub tokens: Option<TokenCounts>,
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
pub enum BlockProgress {
    /// Nothing that anybody needs to know.
    Nothing,
    /// More text.
    Text(String),
    /// More of a thought.
    Reasoning(String),
    /// A block is complete.
    Block(Item),
    /// The answer is complete.
    End(StopReason),
    /// A part that can't come here.
    Odd(&'static str),
    /// More than any answer may have.
    TooLarge(&'static str),
}

impl BlockAssembler {
    /// Takes the next part.
    pub fn push(&mut self, part: AnswerPart) -> BlockProgress {
        if let AnswerPart::TextDelta(delta)
        | AnswerPart::ReasoningDelta(delta)
        | AnswerPart::ArgumentsDelta(delta) = &part
        {
            self.bytes += delta.len();
        }
        self.calls += usize::from(matches!(part, AnswerPart::CallStart { .. }));
        if self.bytes > LONGEST_ANSWER {
            return BlockProgress::TooLarge("the answer is longer than 2 MiB, which none may be");
        }
        if self.calls > MOST_CALLS {
            return BlockProgress::TooLarge("the answer asks for more than 256 calls, which none may");
        }
        match (part, self.open.take()) {
            (AnswerPart::TextStart, None) => self.begin(OpenBlock::Text(String::new())),
            (AnswerPart::ReasoningStart, None) => self.begin(OpenBlock::Reasoning(String::new())),
            (AnswerPart::CallStart { wire_id, name }, None) => {
                self.begin(OpenBlock::Call { wire_id, name, arguments: String::new() })
            }
            (AnswerPart::TextDelta(delta), Some(OpenBlock::Text(text))) => {
                self.open = Some(OpenBlock::Text(text + &delta));
                BlockProgress::Text(delta)
            }
            (AnswerPart::ReasoningDelta(delta), Some(OpenBlock::Reasoning(text))) => {
                self.open = Some(OpenBlock::Reasoning(text + &delta));
                BlockProgress::Reasoning(delta)
            }
            (AnswerPart::ArgumentsDelta(delta), Some(OpenBlock::Call { wire_id, name, arguments })) => {
                self.begin(OpenBlock::Call { wire_id, name, arguments: arguments + &delta })
            }
            (AnswerPart::TextStop, Some(OpenBlock::Text(text))) => {
                BlockProgress::Block(Item::Text { role: Role::Assistant, text })
            }
            (AnswerPart::ReasoningStop { signature }, Some(OpenBlock::Reasoning(text))) => {
                BlockProgress::Block(Item::Reasoning { text, signature })
            }
            (AnswerPart::CallStop { signature }, Some(OpenBlock::Call { wire_id, name, arguments })) => {
                let call = CallId::generate();
                BlockProgress::Block(Item::ToolCall { call, wire_id, name, arguments, signature })
            }
            (AnswerPart::Usage(tokens), open) => {
                self.open = open;
                self.tokens = Some(tokens);
                BlockProgress::Nothing
            }
            (AnswerPart::Limits(limits), open) => {
                self.open = open;
                self.limits = Some(limits);
                BlockProgress::Nothing
            }
            (AnswerPart::End(stop), None) => BlockProgress::End(stop),
            // It was cut in the middle of this; what is not complete does not count.
            (AnswerPart::End(stop), Some(_)) if stop.kind == StopKind::Length => BlockProgress::End(stop),
            (AnswerPart::End(_), Some(_)) => BlockProgress::Odd("it ended in the middle of a block"),
            _ => BlockProgress::Odd("a part came that does not belong there"),
        }
    }

    fn begin(&mut self, open: OpenBlock) -> BlockProgress {
        self.open = Some(open);
        BlockProgress::Nothing
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
