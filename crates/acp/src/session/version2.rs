//! What a session does differently for an editor that speaks version 2: a prompt is answered as soon as it is on record, and the
//! state of the session is an update of its own.

use longhaul_jsonrpc::RpcError;
use longhaul_protocol::Seq;
use longhaul_transcript::TurnEnd;
use serde_json::{Value, json};

use super::{Replay, SessionTask, prompts};
use crate::error::Error;
use crate::wire::ProtocolVersion;
use crate::wire::reply::StopReason;
use crate::wire::update::{MessageChunk, SessionUpdate};

impl SessionTask {
    pub(super) fn version(&self) -> ProtocolVersion {
        self.setup.features.version
    }

    /// Answers the prompts whose input is on record, with the id of the message that they have become.
    pub(super) async fn accept_prompts(&mut self, taken_at: Seq) {
        let Some(message_id) = self.fold.as_ref().map(|fold| fold.message_id(taken_at)) else { return };
        for id in self.prompts.take_of_input(taken_at) {
            self.setup.outbox.reply(&id, Ok(json!({"messageId": message_id}))).await;
        }
    }

    /// Answers a prompt that is not a message of the session: a command, or the answer to a question. Does nothing in version 1, where
    /// the end of the prompt is its answer.
    pub(super) async fn accept_command(&self, id: &Value, text: &str) {
        if self.version() == ProtocolVersion::V2 {
            let message_id = self.prompt_message_id(id);
            self.setup.outbox.reply(id, Ok(json!({"messageId": message_id}))).await;
            self.show(SessionUpdate::UserMessageChunk(MessageChunk::text(message_id, text))).await;
        }
    }

    /// Answers a prompt that ends without a turn of its own.
    pub(super) async fn end_prompt(&self, id: &Value, reason: StopReason) {
        let answer = match (self.version(), reason) {
            (ProtocolVersion::V1, reason) => Ok(reason.reply()),
            (ProtocolVersion::V2, StopReason::Cancelled) => Err(Error::Cancelled),
            (ProtocolVersion::V2, _) => Ok(json!({"messageId": self.prompt_message_id(id)})),
        };
        self.setup.outbox.reply(id, answer).await;
    }

    /// Tells the state of the session.
    pub(super) async fn show_state(&self, state: Value) {
        if self.version() == ProtocolVersion::V2 && self.replay == Replay::Over {
            let mut update = state;
            update["sessionUpdate"] = json!("state_update");
            self.send_update(update).await;
        }
    }

    /// Tells that the session works, or waits for its user.
    pub(super) async fn show_open_state(&self) {
        let state = match (self.questions.are_open(), self.open_turn) {
            (true, _) => "requires_action",
            (false, Some(_)) => "running",
            (false, None) => return,
        };
        self.show_state(json!({"state": state})).await;
    }

    /// Tells how a turn has ended.
    pub(super) async fn show_end_state(&self, end: &TurnEnd) {
        if self.questions.are_open() {
            return self.show_open_state().await;
        }
        let state = match prompts::stop_reason(end) {
            Some(reason) => json!({"state": "idle", "stopReason": reason}),
            None => {
                let error = RpcError::from(&prompts::failure_of(end));
                json!({"state": "idle", "stopReason": "error", "error": error})
            }
        };
        self.show_state(state).await;
    }

    fn prompt_message_id(&self, id: &Value) -> String {
        format!("{}/prompt/{id}", self.setup.editor_id)
    }
}
