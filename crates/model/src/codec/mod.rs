//! The four wire protocols. Each is two pure functions: from a request to bytes, and from a frame to parts of an answer.
//!
//! What is sent stays as it was sent: the messages of a request are, cache marks aside, byte for byte the beginning of those of
//! the next one. So an item never goes into a message that was already sent, and everything else stands before the messages.

mod anthropic;
mod blocks;
mod frames;
mod gemini;
mod history;
mod openai_chat;
mod openai_responses;
#[cfg(test)]
mod requests_tests;
mod roles;
#[cfg(test)]
mod roles_tests;
mod said;
#[cfg(test)]
mod scenarios_tests;

use std::collections::VecDeque;
use std::time::Duration;

pub(crate) use frames::{Frames, Framing};
pub use roles::RoleOrder;
pub(crate) use said::duration;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{AnswerPart, Request};

/// How much of what can't be read is shown, in characters.
const SHOWN_OF_A_FAULT: usize = 200;

/// What a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// OpenAI's chat completions, and everybody else's.
    OpenaiChat,
    /// OpenAI's responses.
    OpenaiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's generateContent.
    Gemini,
}

impl Protocol {
    /// The body of a request: the same request, the same bytes.
    pub(crate) fn encode(self, asked: &Asked<'_>) -> Vec<u8> {
        match self {
            Self::OpenaiChat => openai_chat::encode(asked),
            Self::OpenaiResponses => openai_responses::encode(asked),
            Self::Anthropic => anthropic::encode(asked),
            Self::Gemini => gemini::encode(asked),
        }
    }

    /// What reads one answer.
    pub(crate) fn decoder(self, quirks: &Quirks) -> Box<dyn Decoder> {
        match self {
            Self::OpenaiChat => Box::new(openai_chat::Chat::new(quirks)),
            Self::OpenaiResponses => Box::new(openai_responses::Responses::default()),
            Self::Anthropic => Box::new(anthropic::Messages::default()),
            Self::Gemini => Box::new(gemini::Generated::default()),
        }
    }

    /// Where a model is asked, behind the base URL.
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

    /// What stands in the head of a request.
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

    /// What the body of an answer says that is an error; nothing if it is not the error of a model server.
    pub(crate) fn said(self, status: u16, body: &[u8]) -> Option<Said> {
        said::in_body(status, body)
    }
}

/// A name that can stand in an address.
fn escaped(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/@:".contains(&byte);
    let letter = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    name.bytes().map(letter).collect()
}

/// Where a server differs from others that speak the same protocol.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// openai-chat: the field for the limit of an answer is `max_completion_tokens`, not `max_tokens`.
    pub max_completion_tokens: bool,
    /// openai-chat: the finish reason is the end mark; `[DONE]` may never come.
    pub ends_at_finish_reason: bool,
    /// openai-chat: what the model thought goes back to it, as `reasoning_content`.
    pub wants_reasoning_back: bool,
    /// The order of roles that its server is known to accept.
    pub roles: RoleOrder,
    /// openai-chat: `stream_options` is refused.
    pub no_stream_options: bool,
}

/// A count of more tokens than this is none.
const MOST_TOKENS: u64 = 1 << 40;

/// What is encoded.
pub(crate) struct Asked<'a> {
    pub(crate) request: &'a Request,
    /// The model, in the provider's own word.
    pub(crate) model: &'a str,
    /// The model as `provider/model`. A signature is the name of the model that it belongs to, a space, and the provider's
    /// bytes; only one's own may go back, and of another model's thoughts nothing does.
    pub(crate) author: &'a str,
    pub(crate) quirks: &'a Quirks,
    /// In which order roles may stand.
    pub(crate) roles: RoleOrder,
    /// Whether the model thinks, so that its thoughts can be asked for.
    pub(crate) reasons: bool,
}

/// One frame of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame<'a> {
    /// Its name, where it has one.
    pub(crate) event: &'a str,
    pub(crate) data: &'a str,
}

/// What a frame can be instead of a part of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It can't be read; with its beginning.
    Unreadable(String),
    /// The provider says what went wrong.
    Said(Said),
}

impl Fault {
    /// Something that can't be read, and begins like this.
    fn unreadable(text: &str) -> Self {
        Self::Unreadable(text.chars().take(SHOWN_OF_A_FAULT).collect())
    }
}

/// What a provider says when something went wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// The HTTP status, or the one that stands in the error itself.
    pub(crate) status: Option<u16>,
    /// Its words for programs: type, code, status, whatever of them there is.
    pub(crate) codes: Vec<String>,
    /// Its words for people.
    pub(crate) message: String,
    /// How long to wait, where the error itself says so.
    pub(crate) delay: Option<Duration>,
    /// The size of the context, where the error has a field for it.
    pub(crate) window: Option<u64>,
}

/// From frames to parts. It remembers what is open.
pub(crate) trait Decoder: Send {
    /// Adds to `parts` what a frame holds. After [`AnswerPart::End`] or a fault nothing more is asked.
    fn decode(&mut self, frame: Frame<'_>, parts: &mut VecDeque<AnswerPart>) -> Result<(), Fault>;
}

/// What a frame holds. One without anything in it holds nothing, so nothing can be missing: some servers send them to show that
/// they live.
fn parse<'a, T: Deserialize<'a>>(frame: Frame<'a>) -> Result<Option<T>, Fault> {
    if frame.data.trim().is_empty() {
        return Ok(None);
    }
    serde_json::from_str(frame.data).map(Some).map_err(|_| Fault::unreadable(frame.data))
}

/// A count of tokens, if there is one at this place.
fn figure(usage: &Value, pointer: &str) -> Option<u64> {
    usage.pointer(pointer).and_then(Value::as_u64).filter(|count| *count <= MOST_TOKENS)
}

/// The bytes of a body.
fn to_bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("texts, numbers and objects with texts as keys can always be written")
}
