//! In which order roles may stand in a request.
//!
//! Servers differ in what they accept. OpenAI takes a system message anywhere. Qwen's chat template takes one only at the start.
//! Mistral wants an assistant message after tool results, Llama's and Mistral's templates want user and assistant to alternate,
//! and Gemma's knows no system message at all. Each [`RoleOrder`] is accepted wherever the one before it is.
//!
//! Messages that were already sent never change: where two messages may not stand next to each other, a short one of the other
//! role is put between them, and nothing is merged.

use serde::{Deserialize, Serialize};

/// The assistant message that stands where a server wants one between two messages.
pub(super) const ASSISTANT_FILLER: &str = "Noted.";
/// The user message that stands where a conversation would begin with the assistant.
pub(super) const USER_FILLER: &str = "(The conversation goes on here.)";

/// In which order roles stand in a request, the most demanding order first.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RoleOrder {
    /// Notes and summaries are system messages in the middle of the conversation.
    System,
    /// Notes and summaries are marked user messages; the only system message is the first one.
    #[default]
    User,
    /// As [`User`](Self::User), and user and assistant alternate; an assistant message follows tool results.
    Alternating,
    /// As [`Alternating`](Self::Alternating), and the system prompt is the first user message.
    NoSystem,
}

impl RoleOrder {
    /// All orders that a server may accept that refused this one.
    pub(crate) fn plainer(self) -> impl Iterator<Item = Self> {
        [Self::System, Self::User, Self::Alternating, Self::NoSystem]
            .into_iter()
            .filter(move |order| *order > self)
    }

    /// Whether user and assistant have to alternate.
    pub(super) fn alternates(self) -> bool {
        self >= Self::Alternating
    }
}

/// Whose message it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    Tool,
}

/// These messages with fillers between those that may not stand next to each other. What stands before a message depends only
/// on that message and the one before it.
pub(super) fn alternate<M>(
    messages: Vec<M>,
    speaker: impl Fn(&M) -> Speaker,
    filler: impl Fn(Speaker) -> M,
) -> Vec<M> {
    let mut alternating = Vec::with_capacity(messages.len());
    let mut last = Speaker::System;
    for message in messages {
        let next = speaker(&message);
        match (last, next) {
            (Speaker::User | Speaker::Tool, Speaker::User) => {
                alternating.push(filler(Speaker::Assistant));
            }
            (Speaker::System, Speaker::Assistant | Speaker::Tool) => alternating.push(filler(Speaker::User)),
            _ => {}
        }
        last = next;
        alternating.push(message);
    }
    alternating
}
