//! OpenAI's Responses API.

mod decode;
mod encode;

use std::borrow::Cow;

pub(super) use decode::Responses;
pub(super) use encode::encode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What this protocol needs to take reasoning back. The signature of reasoning is this struct as JSON.
#[derive(Serialize, Deserialize)]
struct ReasoningSignature<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    /// Kept as raw JSON, because it has to be sent back unchanged.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    summary: Option<&'a RawValue>,
    #[serde(borrow)]
    encrypted_content: Cow<'a, str>,
}

#[cfg(test)]
#[path = "openai_responses_tests.rs"]
mod tests;
