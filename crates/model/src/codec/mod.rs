//! The four wire protocols. Each is two pure functions: from a request to bytes, and from a frame to parts of an
//! answer.
//!
//! Messages that were sent never change: apart from cache marks, each request begins with the bytes of the previous
//! one. So an item never joins a message that was already sent, and everything else comes before the messages.

mod anthropic;
mod error_body;
mod frames;
mod gemini;
mod messages;
mod openai_chat;
mod openai_responses;
mod part_writer;
#[cfg(test)]
mod requests_tests;
mod roles;
#[cfg(test)]
mod roles_tests;
#[cfg(test)]
mod scenarios_tests;
#[cfg(test)]
mod search_tests;

use std::collections::VecDeque;
use std::time::Duration;

pub(crate) use frames::{Frames, Framing};
pub use roles::RoleOrder;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effort::SentEffort;
use crate::{AnswerPart, Effort, Request};

const MAX_FAULT_CHARS: usize = 200;

/// The wire protocol of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// OpenAI's chat completions, which most servers speak.
    OpenaiChat,
    /// OpenAI's responses.
    OpenaiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
}

impl Protocol {
    pub(crate) fn encode(self, asked: &EncodeInput<'_>) -> Vec<u8> {
        match self {
            Self::OpenaiChat => openai_chat::encode(asked),
            Self::OpenaiResponses => openai_responses::encode(asked),
            Self::Anthropic => anthropic::encode(asked),
            Self::Gemini => gemini::encode(asked),
        }
    }

    pub(crate) fn decoder(self, quirks: &Quirks) -> Box<dyn Decoder> {
        match self {
            Self::OpenaiChat => Box::new(openai_chat::Chat::new(quirks)),
            Self::OpenaiResponses => Box::new(openai_responses::Responses::default()),
            Self::Anthropic => Box::new(anthropic::Messages::default()),
            Self::Gemini => Box::new(gemini::Generated::default()),
        }
    }

    /// The path of a request, after the base URL.
    pub(crate) fn path(self, model: &str) -> String {
        match self {
            Self::OpenaiChat => "/chat/completions".to_owned(),
            Self::OpenaiResponses => "/responses".to_owned(),
            Self::Anthropic => "/messages".to_owned(),
            Self::Gemini => {
                let model = escaped(model.strip_prefix("models/").unwrap_or(model));
                format!("/models/{model}:streamGenerateContent?alt=sse")
            }
        }
    }

    /// The headers of a request.
    pub(crate) fn headers(self, key: Option<&str>) -> Vec<(String, String)> {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        headers.push(("accept", "text/event-stream".to_owned()));
        if self == Self::Anthropic {
            headers.push(("anthropic-version", "2023-06-01".to_owned()));
        }
        headers.extend(key.map(|key| match self {
            Self::OpenaiChat | Self::OpenaiResponses => ("authorization", format!("Bearer {key}")),
            Self::Anthropic => ("x-api-key", key.to_owned()),
            Self::Gemini => ("x-goog-api-key", key.to_owned()),
        }));
        headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The error in a response body. `None` if it is not the error of a model server.
    pub(crate) fn parse_error(self, status: u16, body: &[u8]) -> Option<ProviderError> {
        error_body::parse_error_body(status, body)
    }
}

/// Percent-encodes a name for a URL path.
fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/@:".contains(&byte);
    let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(letter).collect()
}

/// Where a server differs from others with the same protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// openai-chat: the field for the limit of an answer is `max_completion_tokens`, not `max_tokens`.
    pub max_completion_tokens: bool,
    /// openai-chat: the finish reason is the end mark; `[DONE]` may never come.
    pub ends_at_finish_reason: bool,
    /// openai-chat: reasoning is sent back, as `reasoning_content`.
    pub wants_reasoning_back: bool,
    /// The order of roles that the server accepts.
    pub roles: RoleOrder,
    /// openai-chat: `stream_options` is refused.
    pub no_stream_options: bool,
}

/// A request and everything else that its bytes depend on.
pub(crate) struct EncodeInput<'a> {
    pub(crate) request: &'a Request,
    /// The provider's own name of the model.
    pub(crate) model: &'a str,
    /// The model as `provider/model`. A signature begins with the name of its model and a space; only a model's own
    /// signatures and reasoning are sent back to it.
    pub(crate) author: &'a str,
    pub(crate) quirks: &'a Quirks,
    pub(crate) roles: RoleOrder,
    /// Whether to ask for the model's reasoning.
    pub(crate) reasons: bool,
    /// How much the model should reason, if the user says so and the server accepts it.
    pub(crate) effort: Option<SentEffort>,
    /// What `off` is for this model, in place of the protocol's usual word or number.
    pub(crate) effort_off: Option<&'a str>,
}

impl<'a> EncodeInput<'a> {
    /// The effort as a word.
    fn effort_word(&self, effort: Effort, usual_off: &'a str) -> &'a str {
        if effort == Effort::Off { self.effort_off.unwrap_or(usual_off) } else { effort.name() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    pub(crate) event: &'a str,
    pub(crate) data: &'a str,
}

/// Why a frame can't be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The frame can't be parsed. Holds its beginning.
    Unreadable(String),
    /// The provider reports an error.
    Provider(ProviderError),
}

impl Fault {
    fn unreadable(text: &str) -> Self {
        Self::Unreadable(text.chars().take(MAX_FAULT_CHARS).collect())
    }
}

/// An error that a provider reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProviderError {
    /// The HTTP status of the response, or the status that the error names.
    pub(crate) status: Option<u16>,
    /// The type, code and status words that the provider gives.
    pub(crate) codes: Vec<String>,
    pub(crate) message: String,
    /// How long the error asks the caller to wait.
    pub(crate) delay: Option<Duration>,
    /// The context window, if the error has a field for it.
    pub(crate) window: Option<u64>,
}

/// Decodes the frames of one answer.
pub(crate) trait Decoder: Send {
    /// Adds the parts of a frame. The caller stops after [`AnswerPart::End`] or a fault.
    fn decode(&mut self, frame: Frame<'_>, parts: &mut VecDeque<AnswerPart>) -> Result<(), Fault>;
}

/// Parses a frame. `None` for an empty frame, which some servers send as a keep-alive.
fn parse<'a, T: Deserialize<'a>>(frame: Frame<'a>) -> Result<Option<T>, Fault> {
    if frame.data.trim().is_empty() {
        return Ok(None);
    }
    serde_json::from_str(frame.data).map(Some).map_err(|_| Fault::unreadable(frame.data))
}

/// A token count at this JSON pointer.
fn token_count(usage: &Value, pointer: &str) -> Option<u64> {
    usage
        .pointer(pointer)
        .and_then(Value::as_u64)
        .filter(|count| *count <= crate::answer_stream::MAX_TOKEN_COUNT)
}

fn to_bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("texts, numbers and objects with texts as keys can always be written")
}
