//! Plain output, update by update: the answer for standard output, notices for standard error.

use crate::block::{Block, BlockContent, BlockState, TextTarget, TurnEnd, Update};
use crate::notice::{Verbosity, notice_text};
use crate::text::sanitize;

/// How much of the answer is printed, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainForm {
    /// Only the answer that a turn ended with, so that a script gets no text twice, whatever broke off on the way.
    Final,
    /// Every message, once it can't be taken back.
    Messages,
    /// No answer, and only the notices that a user who waits for a compaction needs.
    Outcome,
    /// The text as it arrives, for a user who watches.
    Stream,
    /// Every message as a whole, for a user who may be typing meanwhile.
    AtPrompt,
}

/// What to print next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlainOutput {
    /// Text of the answer, exactly this.
    Text(String),
    /// A whole message, on lines of its own.
    Message(String),
    /// A notice beside the answer, on a line of its own.
    Notice(String),
    /// The line that [`PlainOutput::Text`] began ends, if one is open.
    EndLine,
}

/// The notice that text which was printed does not count.
pub(crate) const BROKEN_OFF: &str = "[the answer was cut off; retrying]";

/// Renders updates as plain text. It remembers how much of the open message was printed.
#[derive(Debug)]
pub struct PlainRenderer {
    pub form: PlainForm,
    verbosity: Verbosity,
    /// Text of the open message that arrived and was not printed.
    pending: String,
    /// Bytes of the open message that were printed.
    printed: usize,
    /// Printed text was discarded, and it is not known yet whether the model is asked again.
    is_broken_off: bool,
}

impl PlainRenderer {
    pub fn new(form: PlainForm, verbosity: Verbosity) -> Self {
        Self { form, verbosity, pending: String::new(), printed: 0, is_broken_off: false }
    }

    pub fn render(&mut self, update: &Update) -> Vec<PlainOutput> {
        let mut output = Vec::new();
        if self.form == PlainForm::Outcome && !concerns_compaction(update) {
            return output;
        }
        match update {
            Update::Appended { target: TextTarget::Message, text, .. } => self.push_text(text, &mut output),
            Update::Ended(Block { content: BlockContent::Message { text, .. }, state, .. }) => match state {
                BlockState::Discarded => {
                    self.pending.clear();
                    self.is_broken_off = std::mem::take(&mut self.printed) > 0;
                }
                // The text may still be completed by its message.
                BlockState::Interrupted => {}
                _ => self.end_message(text, &mut output),
            },
            Update::Ended(Block { content: BlockContent::TurnEnd(end), .. }) => {
                self.end_turn(end, &mut output);
            }
            update => {
                if let Some(notice) = notice_text(update, self.verbosity) {
                    self.announce_break(&mut output);
                    output.push(PlainOutput::Notice(notice));
                }
            }
        }
        output
    }

    fn push_text(&mut self, text: &str, output: &mut Vec<PlainOutput>) {
        self.announce_break(output);
        self.pending.push_str(text);
        if self.form == PlainForm::Stream {
            self.printed += self.pending.len();
            output.push(PlainOutput::Text(sanitize(&std::mem::take(&mut self.pending))));
        }
    }

    fn end_message(&mut self, text: &str, output: &mut Vec<PlainOutput>) {
        let printed = std::mem::take(&mut self.printed);
        self.pending.clear();
        match self.form {
            PlainForm::Messages => output.push(PlainOutput::Message(text.to_owned())),
            PlainForm::Stream if printed == 0 => output.push(PlainOutput::Message(sanitize(text))),
            PlainForm::Stream => output.push(PlainOutput::EndLine),
            PlainForm::AtPrompt => {
                output.push(PlainOutput::Message(sanitize(text.get(printed..).unwrap_or(text))));
            }
            PlainForm::Final | PlainForm::Outcome => {}
        }
    }

    fn end_turn(&mut self, end: &TurnEnd, output: &mut Vec<PlainOutput>) {
        self.pending.clear();
        (self.printed, self.is_broken_off) = (0, false);
        output.push(PlainOutput::EndLine);
        if self.form == PlainForm::Final {
            output.push(PlainOutput::Message(end.text.clone()));
        }
    }

    /// Says that the text printed so far is asked for again, now that it is.
    fn announce_break(&mut self, output: &mut Vec<PlainOutput>) {
        if std::mem::take(&mut self.is_broken_off) && self.form == PlainForm::Stream {
            output.push(PlainOutput::Notice(BROKEN_OFF.to_owned()));
        }
    }
}

/// What a user who waits for a compaction wants to see meanwhile.
fn concerns_compaction(update: &Update) -> bool {
    match update {
        Update::Started(block) => {
            matches!(block.content, BlockContent::Compaction { .. } | BlockContent::Retry(_))
        }
        Update::Appended { .. } => false,
        Update::Ended(block) => {
            matches!(block.content, BlockContent::ModelChange { .. } | BlockContent::Warning { .. })
        }
    }
}
