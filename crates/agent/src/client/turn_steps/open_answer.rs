//! The text of the model call that is open.

use longhaul_protocol::{AttemptEnded, AttemptId, Item, Role};

use super::fold::TurnStep;

/// The most characters of a piece of text.
const MAX_PIECE_CHARS: usize = 48;
/// What comes between two blocks of text.
const BLOCK_SEPARATOR: &str = "\n\n";

/// The answer to a model call that is open.
pub(super) struct OpenAnswer {
    attempt: AttemptId,
    /// The text so far: that of the complete blocks, then that of the block that is being written. Only grows, so that a delta
    /// of a long answer does not copy all of it.
    text: String,
    /// Where the text of each complete block ends. A block without text ends where the one before it does.
    block_ends: Vec<usize>,
    /// The part of the unfinished block's text that is on record.
    recorded: String,
    /// The text is being written now. Otherwise no piece is given out before it is known how the answer ended.
    is_live: bool,
    /// The bytes of `text` that were given out.
    given: usize,
}

impl OpenAnswer {
    pub(super) fn new(attempt: AttemptId) -> Self {
        let (text, recorded) = (String::new(), String::new());
        Self { attempt, text, block_ends: vec![], recorded, is_live: false, given: 0 }
    }

    pub(super) fn is_of(&self, attempt: AttemptId) -> bool {
        self.attempt == attempt
    }

    fn complete_len(&self) -> usize {
        self.block_ends.last().copied().unwrap_or_default()
    }

    /// The text of the block that is being written.
    fn unfinished(&self) -> &str {
        let rest = &self.text[self.complete_len()..];
        if self.complete_len() == 0 { rest } else { rest.strip_prefix(BLOCK_SEPARATOR).unwrap_or_default() }
    }

    fn push_unfinished(&mut self, text: &str) {
        if !text.is_empty() && self.complete_len() > 0 && self.text.len() == self.complete_len() {
            self.text.push_str(BLOCK_SEPARATOR);
        }
        self.text.push_str(text);
    }

    /// Replaces the text of the block that is being written.
    fn set_unfinished(&mut self, text: &str) {
        self.text.truncate(self.complete_len());
        self.push_unfinished(text);
    }

    /// Takes a complete block, and returns the steps that it completes.
    pub(super) fn push_block(&mut self, item: &Item) -> Vec<TurnStep> {
        let text = match item {
            Item::Text { role: Role::Assistant, text } => text,
            _ => "",
        };
        self.set_unfinished(text);
        self.block_ends.push(self.text.len());
        self.recorded.clear();
        if self.is_live { self.complete_steps() } else { vec![] }
    }

    /// Takes a part of the unfinished block's text that is on record.
    pub(super) fn push_recorded(&mut self, text: &str) {
        self.recorded.push_str(text);
    }

    /// Takes the next live text, and returns the steps that it completes.
    pub(super) fn push_delta(&mut self, text: &str) -> Vec<TurnStep> {
        self.push_unfinished(text);
        self.is_live = true;
        self.complete_steps()
    }

    /// Takes the whole text so far, as a live stream tells it to a client that joins: one block after the other, without a break.
    pub(super) fn catch_up(&mut self, so_far: &str) -> Vec<TurnStep> {
        let mut rest = Some(so_far);
        let mut begins = 0;
        for end in &self.block_ends {
            let block = &self.text[begins..*end];
            let block =
                if begins == 0 { block } else { block.strip_prefix(BLOCK_SEPARATOR).unwrap_or(block) };
            rest = rest.and_then(|rest| rest.strip_prefix(block));
            begins = *end;
        }
        if let Some(rest) = rest.filter(|rest| rest.starts_with(self.unfinished())) {
            self.set_unfinished(rest);
        }
        self.is_live = true;
        self.complete_steps()
    }

    /// The pieces of the text that are complete and were not given out yet.
    fn complete_pieces(&mut self) -> Vec<String> {
        let mut pieces = Vec::new();
        while let Some(length) = self.text.get(self.given..).and_then(piece_length) {
            pieces.push(self.text[self.given..self.given + length].to_owned());
            self.given += length;
        }
        pieces
    }

    fn complete_steps(&mut self) -> Vec<TurnStep> {
        self.complete_pieces().into_iter().map(TurnStep::Text).collect()
    }

    /// The steps with which the model call ends.
    pub(super) fn end(mut self, ended: &AttemptEnded) -> Vec<TurnStep> {
        let kept = usize::try_from(ended.kept).unwrap_or(usize::MAX).min(self.block_ends.len());
        let kept_len = kept.checked_sub(1).map_or(0, |last| self.block_ends[last]);
        let is_cut = ended.is_interrupted();
        // The record has the text that watchers saw, also where these deltas did not come here.
        if !is_cut && self.recorded.starts_with(self.unfinished()) {
            let recorded = std::mem::take(&mut self.recorded);
            self.set_unfinished(&recorded);
        }
        let pieces = if is_cut { vec![] } else { self.complete_pieces() };
        let mut steps = Vec::new();
        let is_discarded = (kept == 0 && ended.error.is_some()) || self.given > kept_len;
        if is_discarded {
            steps.push(TurnStep::Discarded { missed: pieces, is_cut });
            self.given = 0;
        } else {
            steps.extend(pieces.into_iter().map(TurnStep::Text));
        }
        if kept_len > 0 {
            self.text.truncate(kept_len);
            steps.extend(self.complete_steps());
            steps.extend((self.given < kept_len).then(|| TurnStep::Text(self.text[self.given..].to_owned())));
            steps.extend((is_cut && !is_discarded).then_some(TurnStep::Cut));
            steps.push(TurnStep::MessageEnded { text: self.text, goes_on: ended.goes_on });
        }
        steps
    }
}

/// The bytes of the first piece: a word with the space around it, if what follows it is there. `None` if the piece
/// may go on.
fn piece_length(text: &str) -> Option<usize> {
    let (mut has_word, mut has_space_after) = (false, false);
    for (count, (position, character)) in text.char_indices().enumerate() {
        if count == MAX_PIECE_CHARS || (has_space_after && !character.is_whitespace()) {
            return Some(position);
        }
        has_space_after |= has_word && character.is_whitespace();
        has_word |= !character.is_whitespace();
    }
    None
}

#[cfg(test)]
#[path = "open_answer_tests.rs"]
mod tests;
