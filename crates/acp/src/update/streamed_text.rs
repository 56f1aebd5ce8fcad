//! The text of one answer as the editor has it. Deltas are shown as they come; the records say later which of it counts.

/// Text between two blocks of an answer.
const BLOCK_SEPARATOR: &str = "\n\n";

/// What the editor has of the answer of one attempt. The text of all blocks stands here without separators, as the deltas bring it.
#[derive(Debug, Default)]
pub(super) struct StreamedText {
    shown: String,
    /// The next delta begins a block.
    is_between_blocks: bool,
    /// How much of `shown` counts, as far as the records have told.
    counted: usize,
    /// Text was shown that the records don't have.
    is_stale: bool,
}

impl StreamedText {
    /// What to show for a delta.
    pub(super) fn push_delta(&mut self, delta: &str) -> String {
        let is_next_block = std::mem::take(&mut self.is_between_blocks) && !self.shown.is_empty();
        self.shown.push_str(delta);
        if is_next_block { format!("{BLOCK_SEPARATOR}{delta}") } else { delta.to_owned() }
    }

    /// What to show for the whole text so far, of which a part may have been shown.
    pub(super) fn push_whole(&mut self, text: &str) -> Option<String> {
        let rest = text.strip_prefix(self.shown.as_str())?.to_owned();
        (!rest.is_empty()).then(|| self.push_delta(&rest))
    }

    /// The block whose deltas came is complete.
    pub(super) fn end_block(&mut self) {
        self.is_between_blocks = true;
    }

    /// What to show of a block that counts: the part that was not shown. Blocks come in their order.
    pub(super) fn count_block(&mut self, block: &str) -> Option<String> {
        let rest = &self.shown[self.counted..];
        if rest.starts_with(block) {
            self.counted += block.len();
            return None;
        }
        let (is_next_block, missing) = match block.strip_prefix(rest) {
            Some(missing) => (rest.is_empty() && self.counted > 0, missing),
            None => {
                self.is_stale = true;
                (true, block)
            }
        };
        let text = if is_next_block { format!("{BLOCK_SEPARATOR}{missing}") } else { missing.to_owned() };
        self.shown.push_str(missing);
        self.counted = self.shown.len();
        Some(text)
    }

    /// Forgets the answer, because its attempt is over. Returns whether text was shown that does not count.
    pub(super) fn end(&mut self) -> bool {
        let ended = std::mem::take(self);
        ended.is_stale || ended.counted < ended.shown.len()
    }
}

#[cfg(test)]
#[path = "streamed_text_tests.rs"]
mod tests;
