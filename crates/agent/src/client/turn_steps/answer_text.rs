//! The messages of a turn as one text.

/// The messages of a turn, joined to one text. A message that the next one continues is joined without a break.
#[derive(Debug, Clone, Default)]
pub struct AnswerText {
    text: String,
    goes_on: bool,
}

impl AnswerText {
    /// What comes between the messages so far and the next one.
    pub fn separator(&self) -> &'static str {
        if self.text.is_empty() || self.goes_on { "" } else { "\n\n" }
    }

    /// Adds a message. `goes_on`: the next one continues it.
    pub fn add(&mut self, message: &str, goes_on: bool) {
        self.text.push_str(self.separator());
        self.text.push_str(message);
        self.goes_on = goes_on;
    }

    /// The whole text.
    pub fn into_text(self) -> String {
        self.text
    }
}
