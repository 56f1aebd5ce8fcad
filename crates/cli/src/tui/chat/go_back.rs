//! Esc Esc: back to an earlier message. The chat goes on in a fork that ends before that message, and the message is in the input field.
//! The session itself stays as it is.

use longhaul_agent::now;
use longhaul_journal::records;
use longhaul_protocol::{At, Seq, SessionRecord, StreamName};

use super::slash::session::NextSession;
use super::{Chat, ChatStep};
use crate::commands::fork::fork_as;
use crate::commands::sessions::list::ago;
use crate::tui::{PickerItem, ScreenUpdate};

/// Messages in the list, the newest.
const MAX_MESSAGES: usize = 1_000;

/// A message of the user's, with the record that took it.
struct SentMessage {
    seq: Seq,
    at: At,
    text: String,
}

impl Chat<'_> {
    /// Lets the user pick an earlier message, and goes on before it.
    pub(super) async fn go_back(&mut self) -> anyhow::Result<ChatStep> {
        let next = self.pick_message_and_fork().await;
        let (next, text) = match next {
            Ok(Some((key, text))) => (Ok(NextSession::Named(key)), Some(text)),
            Ok(None) => return Ok(ChatStep::Line),
            Err(error) => (Err(error), None),
        };
        let step = self.switch_session(next).await?;
        if let Some(text) = text {
            self.printer.tell(ScreenUpdate::Input(text));
        }
        Ok(step)
    }

    /// The key of the fork, and the text of the picked message.
    async fn pick_message_and_fork(&mut self) -> anyhow::Result<Option<(String, String)>> {
        let mut messages = self.sent_messages().await?;
        if messages.is_empty() {
            self.printer.note("there is no earlier message to go back to");
            return Ok(None);
        }
        let item = |message: &SentMessage| PickerItem {
            key: String::new(),
            line: message.text.lines().next().unwrap_or_default().to_owned(),
            detail: ago(now(), message.at),
        };
        let choices = messages.iter().map(item).collect();
        let title = "Go back to which message? It and what followed stay in this session.".to_owned();
        let Some(index) = self.command_context().pick(title, choices).await else { return Ok(None) };
        let message = messages.swap_remove(index);
        let before = self.session.key().to_owned();
        let forked = fork_as(&*self.runtime.journal(), &before, Some(message.seq - 1), None).await?;
        self.printer.note(format!("{before} stays as it was; /session resume {before} goes back to it"));
        Ok(Some((forked.key, message.text)))
    }

    /// The messages of the user's in this session, the newest first.
    async fn sent_messages(&self) -> anyhow::Result<Vec<SentMessage>> {
        let Some(id) = self.session.id() else { return Ok(Vec::new()) };
        let journal = self.runtime.journal();
        let stream = StreamName::session(id);
        let mut cursor = records(&*journal, &stream, 1);
        let mut messages = Vec::new();
        while let Some(record) = cursor.next().await? {
            if record.kind == "input_taken"
                && record.seq > 1
                && let Ok(SessionRecord::InputTaken(input)) = SessionRecord::decode(&record)
            {
                messages.push(SentMessage { seq: record.seq, at: record.at, text: input.text });
            }
        }
        messages.reverse();
        messages.truncate(MAX_MESSAGES);
        Ok(messages)
    }
}
