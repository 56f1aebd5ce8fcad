//! Removes the escape sequences of programs that draw, such as an editor, from output that comes in chunks.

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// What the next byte belongs to.
#[derive(Debug, Default, Clone, Copy)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// In a control sequence (`ESC [ … letter`).
    Control,
    /// In a string (`ESC ] … BEL`, or up to `ESC \\`).
    String,
    /// After an ESC in a string.
    StringEscape,
}

#[derive(Default)]
pub(super) struct EscapeFilter(EscapeState);

impl EscapeFilter {
    /// The chunk without escape sequences. One may begin in an earlier chunk.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        bytes.iter().copied().filter(|byte| self.is_text(*byte)).collect()
    }

    fn is_text(&mut self, byte: u8) -> bool {
        let (next, is_text) = match (self.0, byte) {
            (EscapeState::Text, ESCAPE) => (EscapeState::Escape, false),
            (EscapeState::Text, _) => (EscapeState::Text, true),
            (EscapeState::Escape, b'[') => (EscapeState::Control, false),
            (EscapeState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => (EscapeState::String, false),
            // An intermediate byte, as in `ESC ( B`.
            (EscapeState::Escape, 0x20..=0x2f) => (EscapeState::Escape, false),
            (EscapeState::Control, 0x40..=0x7e) | (EscapeState::Escape, _) => (EscapeState::Text, false),
            (EscapeState::Control, _) => (EscapeState::Control, false),
            (EscapeState::String, BELL) => (EscapeState::Text, false),
            (EscapeState::String | EscapeState::StringEscape, ESCAPE) => (EscapeState::StringEscape, false),
            (EscapeState::StringEscape, b'\\') => (EscapeState::Text, false),
            (EscapeState::String | EscapeState::StringEscape, _) => (EscapeState::String, false),
        };
        self.0 = next;
        is_text
    }
}

#[cfg(test)]
#[path = "escape_filter_tests.rs"]
mod tests;
