//! Assembles the parts of an answer into blocks.

use crate::{AnswerPart, RateLimits, SearchSource, StopKind, StopReason, TokenCounts};
use longhaul_protocol::{CallId, Item, Role};

/// A longer answer is an error: no request asks for one, and each record of an answer must fit into the journal.
const MAX_ANSWER_BYTES: usize = 2 << 20;

/// Pages of a search to keep.
const MAX_SOURCES: usize = 20;

/// More calls in one answer are an error.
const MAX_CALLS: usize = 256;

/// Holds the open block and the usage so far.
#[derive(Debug, Default)]
pub struct BlockAssembler {
    open: Option<OpenBlock>,
    bytes: usize,
    calls: usize,
    /// The call in which the answer ended.
    cut_call: Option<String>,
    pub tokens: Option<TokenCounts>,
    pub limits: Option<RateLimits>,
    /// Pages that the provider's search found, each once.
    pub sources: Vec<SearchSource>,
}

#[derive(Debug)]
enum OpenBlock {
    Text(String),
    Reasoning(String),
    Call { wire_id: Option<String>, name: String, arguments: String },
}

#[derive(Debug, PartialEq, Eq)]
pub enum BlockProgress {
    Nothing,
    Text(String),
    Reasoning(String),
    Block(Item),
    End(StopReason),
    /// A part that may not come at this point. Holds the reason.
    Odd(&'static str),
    TooLarge(&'static str),
}

impl BlockAssembler {
    pub fn push(&mut self, part: AnswerPart) -> BlockProgress {
        if let AnswerPart::TextDelta(delta)
        | AnswerPart::ReasoningDelta(delta)
        | AnswerPart::ArgumentsDelta(delta) = &part
        {
            self.bytes += delta.len();
        }
        self.calls += usize::from(matches!(part, AnswerPart::CallStart { .. }));
        if self.bytes > MAX_ANSWER_BYTES {
            return BlockProgress::TooLarge("the answer is larger than 2 MiB");
        }
        if self.calls > MAX_CALLS {
            return BlockProgress::TooLarge("the answer has more than 256 tool calls");
        }
        match (part, self.open.take()) {
            (AnswerPart::TextStart, None) => self.open_block(OpenBlock::Text(String::new())),
            (AnswerPart::ReasoningStart, None) => self.open_block(OpenBlock::Reasoning(String::new())),
            (AnswerPart::CallStart { wire_id, name }, None) => {
                self.open_block(OpenBlock::Call { wire_id, name, arguments: String::new() })
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
                self.open_block(OpenBlock::Call { wire_id, name, arguments: arguments + &delta })
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
            (AnswerPart::Source(source), open) => {
                self.open = open;
                let is_known = self.sources.iter().any(|known| known.url == source.url);
                if !is_known && self.sources.len() < MAX_SOURCES {
                    self.sources.push(source);
                }
                BlockProgress::Nothing
            }
            (AnswerPart::Limits(limits), open) => {
                self.open = open;
                self.limits = Some(limits);
                BlockProgress::Nothing
            }
            (AnswerPart::End(stop), None) => BlockProgress::End(stop),
            // The answer was cut within this block. An incomplete block does not count.
            (AnswerPart::End(stop), Some(open)) => {
                if let OpenBlock::Call { name, .. } = open {
                    self.cut_call = Some(name);
                }
                match stop.kind {
                    StopKind::Length => BlockProgress::End(stop),
                    _ => BlockProgress::Odd("it ended in the middle of a block"),
                }
            }
            _ => BlockProgress::Odd("an unexpected part arrived"),
        }
    }

    /// The name of the call that had begun when the answer ended. It does not count.
    pub fn unfinished_call(&self) -> Option<&str> {
        match &self.open {
            Some(OpenBlock::Call { name, .. }) => Some(name),
            _ => self.cut_call.as_deref(),
        }
    }

    fn open_block(&mut self, open: OpenBlock) -> BlockProgress {
        self.open = Some(open);
        BlockProgress::Nothing
    }
}

#[cfg(test)]
#[path = "block_assembler_tests.rs"]
mod tests;
