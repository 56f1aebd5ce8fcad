//! What is open in an answer.

use std::collections::VecDeque;

use crate::AnswerPart;

/// The block that is open. There is only one at a time: what begins closes what was open before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum OpenBlock {
    #[default]
    Nothing,
    Text,
    Reasoning,
    Call,
}

/// Makes blocks of what a provider sends.
#[derive(Debug, Default)]
pub(super) struct PartWriter {
    open: OpenBlock,
    /// The proof that belongs to the thought or the call that is open.
    signature: Option<String>,
}

impl PartWriter {
    pub(super) fn open(&self) -> OpenBlock {
        self.open
    }

    /// More text, in the block that is open if that is text.
    pub(super) fn text(&mut self, delta: String, parts: &mut VecDeque<AnswerPart>) {
        if !delta.is_empty() {
            self.begin(OpenBlock::Text, parts);
            parts.push_back(AnswerPart::TextDelta(delta));
        }
    }

    /// More of a thought, in the block that is open if that is one.
    pub(super) fn reasoning(&mut self, delta: String, parts: &mut VecDeque<AnswerPart>) {
        if !delta.is_empty() {
            self.begin(OpenBlock::Reasoning, parts);
            parts.push_back(AnswerPart::ReasoningDelta(delta));
        }
    }

    /// A thought begins, perhaps one of which nothing is shown.
    pub(super) fn begin_reasoning(&mut self, parts: &mut VecDeque<AnswerPart>) {
        self.begin(OpenBlock::Reasoning, parts);
    }

    /// A call begins.
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

    /// More of the arguments of the call that is open.
    pub(super) fn arguments(&mut self, delta: String, parts: &mut VecDeque<AnswerPart>) {
        if !delta.is_empty() {
            parts.push_back(AnswerPart::ArgumentsDelta(delta));
        }
    }

    /// More of the proof that belongs to what is open.
    pub(super) fn sign(&mut self, signature: &str) {
        self.signature.get_or_insert_default().push_str(signature);
    }

    /// What is open will never be complete.
    pub(super) fn abandon(&mut self) {
        (self.open, self.signature) = (OpenBlock::Nothing, None);
    }

    /// What is open is complete.
    pub(super) fn close(&mut self, parts: &mut VecDeque<AnswerPart>) {
        let signature = self.signature.take();
        match std::mem::take(&mut self.open) {
            OpenBlock::Nothing => {}
            OpenBlock::Text => parts.push_back(AnswerPart::TextStop),
            OpenBlock::Reasoning => parts.push_back(AnswerPart::ReasoningStop { signature }),
            OpenBlock::Call => parts.push_back(AnswerPart::CallStop { signature }),
        }
    }

    fn begin(&mut self, kind: OpenBlock, parts: &mut VecDeque<AnswerPart>) {
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
