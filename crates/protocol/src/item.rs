use serde::{Deserialize, Serialize};

use crate::{BlobRef, CallId};

/// One element of a context, which a model reads or writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// Something said.
    Text { role: Role, text: String },
    /// A model's reasoning before its answer.
    Reasoning {
        /// As much of it as the provider shows.
        text: String,
        /// The provider's signature, which must go back to it unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolCall {
        call: CallId,
        /// The provider's id, for the wire alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire_id: Option<String>,
        name: String,
        /// The arguments, as the model wrote them. They may not be JSON.
        arguments: String,
        /// The provider's signature, which must go back to it unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolResult {
        call: CallId,
        /// What the model reads.
        content: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        is_error: bool,
    },
    /// A picture that a person sent.
    Image(Image),
    /// A message of the runtime to the model.
    Note {
        /// Without the mark that it gets on the wire.
        text: String,
    },
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The runtime.
    System,
    /// A person or a program that talks to the agent.
    User,
    Assistant,
}

/// A picture, kept as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    pub data: BlobRef,
}

/// A text with a line that says how many pictures came with it, for readers that can't show them.
pub fn with_picture_note(text: String, pictures: &[Image]) -> String {
    match pictures.len() {
        0 => text,
        1 => format!("{text}\n[a picture]"),
        many => format!("{text}\n[{many} pictures]"),
    }
}
