use serde::{Deserialize, Serialize};

use crate::{BlobRef, CallId};

/// One thing in a context: what a model reads, and what it writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Item {
    /// Something said.
    Text {
        /// By whom.
        role: Role,
        /// The words.
        text: String,
    },
    /// What a model thought on its way to an answer.
    Reasoning {
        /// The thought, or the part of it that the provider shows.
        text: String,
        /// The provider's proof that it is its own, which must go back to it unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A model asks for a tool.
    ToolCall {
        /// Our id of the call.
        call: CallId,
        /// The provider's id, for the wire alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wire_id: Option<String>,
        /// The tool.
        name: String,
        /// The arguments, as text, exactly as the model wrote them; perhaps not even JSON.
        arguments: String,
        /// The provider's proof that it is its own, which must go back to it unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// What a tool gave back.
    ToolResult {
        /// The call that it answers.
        call: CallId,
        /// What the model reads.
        content: String,
        /// Images that the tool gave back.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        /// Whether the call failed.
        is_error: bool,
    },
    /// A picture that a person sent.
    Image(Image),
    /// Something that the runtime tells the model.
    Note {
        /// What it says, without the mark that it gets on the wire.
        text: String,
    },
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The runtime, in words that it composed.
    System,
    /// A person or a program that talks to the agent.
    User,
    /// The model.
    Assistant,
}

/// A picture, kept as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Its bytes and what they are.
    pub data: BlobRef,
}
