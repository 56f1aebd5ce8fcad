//! OpenAI's responses.

mod decode;
mod encode;

use std::borrow::Cow;

pub(super) use decode::Responses;
pub(super) use encode::encode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What makes a thought the model's own: the signature is this, as JSON.
#[derive(Serialize, Deserialize)]
struct Proof<'a> {
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    id: Option<Cow<'a, str>>,
    /// As it came, since it has to go back so.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    summary: Option<&'a RawValue>,
    #[serde(borrow)]
    encrypted_content: Cow<'a, str>,
}

#[cfg(test)]
#[path = "openai_responses_tests.rs"]
mod tests;
