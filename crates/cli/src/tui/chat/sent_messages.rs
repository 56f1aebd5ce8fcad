//! Messages that the user sent while a turn runs, and how they are taken back.
//!
//! Such a message is in the inbox as soon as it is shown as sent. Up, Esc and Ctrl-C order its withdrawal. Whether the order came before
//! the turn took the message is for the session to say: with the event `input_withdrawn` the typed line returns to the input field,
//! and without it the message stays sent.

use longhaul_agent::UserMessage;
use longhaul_protocol::{EventKind, InputId, JoinMode, OrderKind};

use super::line_source::LineSource;
use super::{Chat, ChatStep};
use crate::tui::ScreenUpdate;

/// The messages of this terminal that no step has shown to the model, the oldest first.
#[derive(Default)]
pub(super) struct SentMessages {
    messages: Vec<SentMessage>,
    /// A turn runs, in this process or another. A message that is sent now joins it.
    is_turn_open: bool,
}

struct SentMessage {
    id: InputId,
    /// The line as the user typed it.
    line: String,
    /// The session has taken it from the inbox.
    is_taken: bool,
}

impl SentMessages {
    pub(super) fn add(&mut self, id: InputId, line: &str) {
        self.messages.push(SentMessage { id, line: line.to_owned(), is_taken: false });
    }

    /// Whether a message that is sent now joins a turn.
    pub(super) fn would_join(&self) -> bool {
        self.is_turn_open
    }

    /// Follows what becomes of the messages. Returns the line of one that was taken back.
    pub(super) fn apply_event(&mut self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::InputTaken { id } => {
                self.messages.iter_mut().filter(|sent| sent.id == *id).for_each(|sent| sent.is_taken = true);
                None
            }
            EventKind::TurnStarted { .. } => {
                self.is_turn_open = true;
                None
            }
            EventKind::StepStarted => {
                self.messages.retain(|sent| !sent.is_taken);
                self.is_turn_open = true;
                None
            }
            EventKind::TurnEnded { .. } => {
                self.is_turn_open = false;
                None
            }
            EventKind::Warning { code, .. } if code == "abandoned" => {
                self.is_turn_open = false;
                None
            }
            EventKind::InputWithdrawn { id } => {
                self.messages.extract_if(.., |sent| sent.id == *id).next().map(|sent| sent.line)
            }
            _ => None,
        }
    }
}

impl Chat<'_> {
    /// Sends a message into the open turn, where it can be taken back until a step reads it, and follows that turn. It may run in another
    /// process.
    pub(super) async fn join_turn(&mut self, message: &UserMessage, line: &str) -> anyhow::Result<ChatStep> {
        if !self.may_send().await? {
            return Ok(ChatStep::Line);
        }
        match self.session.put_message(message, JoinMode::Join, None).await {
            Ok(accepted) => self.sent.add(accepted.id, line.trim_end()),
            Err(error) => {
                self.printer.tell(ScreenUpdate::Unsent);
                self.printer.note(error);
                return Ok(ChatStep::Line);
            }
        }
        self.follow_turn().await
    }

    /// Orders the withdrawal of what was sent during the turn, the newest first: each line returns before the one that came back before it.
    pub(super) async fn take_back_messages(&mut self) {
        for sent in self.sent.messages.iter().rev() {
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
