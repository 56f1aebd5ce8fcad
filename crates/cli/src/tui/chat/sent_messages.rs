//! Messages that the user sent while a turn runs, and how they are taken back.
//!
//! Such a message is in the inbox as soon as it is shown as sent. Up, Esc and Ctrl-C order its withdrawal. Whether the order came before
//! the turn took the message is for the session to say: with the event `input_withdrawn` the typed line returns to the input field,
//! and without it the message stays sent.

use longhaul_protocol::{EventKind, InputId, OrderKind};

use super::Chat;
use super::line_source::LineSource;
use crate::tui::ScreenUpdate;

/// The messages of this terminal that no step has shown to the model, the oldest first.
#[derive(Default)]
pub(super) struct SentMessages(Vec<SentMessage>);

struct SentMessage {
    id: InputId,
    /// The line as the user typed it.
    line: String,
    /// The session has taken it from the inbox.
    is_taken: bool,
}

impl SentMessages {
    pub(super) fn add(&mut self, id: InputId, line: &str) {
        self.0.push(SentMessage { id, line: line.to_owned(), is_taken: false });
    }

    /// Follows what becomes of the messages. Returns the line of one that was taken back.
    pub(super) fn apply_event(&mut self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::InputTaken { id } => {
                self.0.iter_mut().filter(|sent| sent.id == *id).for_each(|sent| sent.is_taken = true);
                None
            }
            EventKind::StepStarted => {
                self.0.retain(|sent| !sent.is_taken);
                None
            }
            EventKind::InputWithdrawn { id } => {
                self.0.extract_if(.., |sent| sent.id == *id).next().map(|sent| sent.line)
            }
            _ => None,
        }
    }
}

impl Chat<'_> {
    /// Orders the withdrawal of what was sent during the turn, the newest first: each line returns before the one that came back before it.
    pub(super) async fn take_back_messages(&mut self) {
        for sent in self.sent.0.iter().rev() {
            if let Err(error) = self.session.order(OrderKind::Withdraw { input: sent.id }).await {
                self.printer.note(error);
                return;
            }
        }
    }

    /// Returns a line that was taken back to the user.
    pub(super) fn return_line(&mut self, line: String) {
        match self.lines {
            LineSource::Screen(_) => self.printer.tell(ScreenUpdate::TakenBack(line)),
            LineSource::Plain(_) | LineSource::Piped(_) => self.printer.note(format!("not sent: {line}")),
        }
    }
}
