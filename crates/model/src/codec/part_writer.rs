//! Writes the parts of an answer, with the start and stop of each block.

use std::collections::VecDeque;

use crate::AnswerPart;

/// The open block. Only one is open at a time: a new block closes the previous one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OpenBlock {
    #[default]
    Nothing,
    Text,
    Reasoning,
    Call,
}

#[derive(Debug, Default)]
pub(super) struct PartWriter {
    open: OpenBlock,
    /// The signature of the open reasoning or call.
    signature: Option<String>,
}

impl PartWriter {
    pub(super) fn open(&self) -> OpenBlock {
        self.open
    }

    /// Appends text. Opens a text block if none is open.
    pub(super) fn text(&mut self, delta: String, parts: &mut VecDeque<AnswerPart>) {
        if !delta.is_empty() {
            self.open_block(OpenBlock::Text, parts);
            parts.push_back(AnswerPart::TextDelta(delta));
        }
    }

    pub(super) fn reasoning(&mut self, delta: String, parts: &mut VecDeque<AnswerPart>) {
        if !delta.is_empty() {
            self.open_block(OpenBlock::Reasoning, parts);
            parts.push_back(AnswerPart::ReasoningDelta(delta));
        }
    }

    /// Opens a reasoning block. Its text may stay empty, because some providers hide it.
    pub(super) fn begin_reasoning(&mut self, parts: &mut VecDeque<AnswerPart>) {
        self.open_block(OpenBlock::Reasoning, parts);
    }

    pub(super) fn begin_call(
        &mut self,
        wire_id: Option<String>,
        name: String,
        parts: &mut VecDeque<AnswerPart>,
    ) {
        self.close(parts);
        self.open = OpenBlock::Call;
        parts.push_back(AnswerPart::CallStart { wire_id, name });
    }

    pub(super) fn arguments(&mut self, delta: String, parts: &mut VecDeque<AnswerPart>) {
        if !delta.is_empty() {
            parts.push_back(AnswerPart::ArgumentsDelta(delta));
        }
    }

    pub(super) fn sign(&mut self, signature: &str) {
        self.signature.get_or_insert_default().push_str(signature);
    }

    /// Drops the open block, because it will never be complete.
    pub(super) fn abandon(&mut self) {
        (self.open, self.signature) = (OpenBlock::Nothing, None);
    }

    pub(super) fn close(&mut self, parts: &mut VecDeque<AnswerPart>) {
        let signature = self.signature.take();
        match std::mem::take(&mut self.open) {
            OpenBlock::Nothing => {}
            OpenBlock::Text => parts.push_back(AnswerPart::TextStop),
            OpenBlock::Reasoning => parts.push_back(AnswerPart::ReasoningStop { signature }),
            OpenBlock::Call => parts.push_back(AnswerPart::CallStop { signature }),
        }
    }

    fn open_block(&mut self, kind: OpenBlock, parts: &mut VecDeque<AnswerPart>) {
        if self.open == kind {
            return;
        }
        self.close(parts);
        self.open = kind;
        match kind {
            OpenBlock::Text => parts.push_back(AnswerPart::TextStart),
            OpenBlock::Reasoning => parts.push_back(AnswerPart::ReasoningStart),
            OpenBlock::Nothing | OpenBlock::Call => {}
        }
    }
}
