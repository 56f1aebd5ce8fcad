//! The orders of roles that servers accept.
//!
//! OpenAI takes a system message anywhere. Qwen's chat template takes one only at the start. Mistral wants an
//! assistant message after tool results, Llama's and Mistral's templates want user and assistant to alternate, and
//! Gemma's has no system message. A server that accepts one [`RoleOrder`] also accepts every later one.
//!
//! Messages that were sent never change. So messages are never merged: a short filler of the other role separates two
//! that may not be neighbours.

use serde::{Deserialize, Serialize};

/// The assistant message that separates two messages that may not be neighbours.
pub(super) const ASSISTANT_FILLER: &str = "Noted.";
/// The user message that precedes a conversation that would begin with the assistant.
pub(super) const USER_FILLER: &str = "(The conversation goes on here.)";

/// The order of roles in a request, the most demanding first.
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
    /// The orders that a server may accept after it refused this one, in the order to try them.
    pub(crate) fn plainer_orders(self) -> impl Iterator<Item = Self> {
        [Self::System, Self::User, Self::Alternating, Self::NoSystem]
            .into_iter()
            .filter(move |order| *order > self)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    Tool,
}

/// Inserts fillers between messages that may not be neighbours in this order. A filler depends only on the messages before and after
/// it.
pub(super) fn insert_fillers<M>(
    order: RoleOrder,
    messages: Vec<M>,
    speaker: impl Fn(&M) -> Speaker,
    filler: impl Fn(Speaker) -> M,
) -> Vec<M> {
    if order < RoleOrder::Alternating {
        return messages;
    }
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
