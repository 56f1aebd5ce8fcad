use serde::{Deserialize, Serialize};

use crate::{BlobRef, CallId};

/// One element of a context, which a model reads or writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// A message.
    Text { role: Role, text: String },
    /// A model's reasoning before its answer.
    Reasoning {
        /// The part that the provider shows.
        text: String,
        /// The provider's signature. It must be sent back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolCall {
        call: CallId,
        /// The provider's id of the call, used only on the wire.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire_id: Option<String>,
        name: String,
        /// The arguments as the model wrote them. They may be invalid JSON.
        arguments: String,
        /// The provider's signature. It must be sent back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    ToolResult {
        call: CallId,
        /// The text that the model reads.
        content: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        is_error: bool,
    },
    /// A picture that a person sent.
    Image(Image),
    /// A message of the runtime to the model.
    Note {
        /// The text without the mark that it gets on the wire.
        text: String,
    },
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
