use longhaul_model::{Effort, Protocol};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::none_if_empty;

/// The model and its server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// Model to use, as `provider/model` (`scripted/FILE.json` plays a file). `LONGHAUL_MODEL` and `--model` override it.
    pub name: String,
    /// Address of the server, if not the provider's; it must speak the OpenAI, Anthropic or Gemini protocol.
    #[serde(deserialize_with = "none_if_empty")]
    pub base_url: Option<String>,
    /// Environment variable with the API key, if not the provider's usual one; hidden from commands.
    #[serde(deserialize_with = "none_if_empty")]
    pub api_key_env: Option<String>,
    /// Protocol of the server, if not the provider's usual one.
    #[serde(with = "protocol")]
    #[schemars(schema_with = "protocol::schema")]
    pub protocol: Option<Protocol>,
    /// Whether the model can call tools, if the catalogue does not know.
    pub tools: Option<bool>,
    /// Seconds to wait for a connection; usually 10.
    pub connect_timeout_s: Option<u64>,
    /// Seconds to wait for the start of an answer; usually 300.
    pub first_byte_timeout_s: Option<u64>,
    /// Seconds to wait for more of an answer; usually 120.
    pub silence_timeout_s: Option<u64>,
    /// Size of the context window in tokens; unset: as the server says, else from the catalogue.
    #[schemars(range(min = 1))]
    pub context_window: Option<u64>,
    /// Longest answer in tokens.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u64>,
    /// How much the model reasons before it answers; empty: as its server likes. A server that refuses it is asked without it.
    #[serde(with = "effort")]
    #[schemars(schema_with = "effort::schema")]
    pub effort: Option<Effort>,
    /// Models to fall back to, in this order, when this one fails.
    pub fallback: Vec<String>,
}

/// Retries of failed model requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetrySettings {
    /// Retries of one request.
    #[schemars(range(max = 1000))]
    pub max_retries: u32,
    /// Milliseconds before the first retry; doubles each time.
    pub base_ms: u64,
    /// Longest wait before a retry, in milliseconds.
    pub cap_ms: u64,
    /// Total seconds to wait for one request.
    pub budget_s: u64,
    /// Seconds that `run` waits for the network to come back; the terminal and `serve` wait for ever. 0: being offline
    /// counts as a failed request.
    pub offline_wait_s: u64,
    /// Longest wait in seconds that `run` accepts when a server asks for one; a longer one fails the request. The terminal
    /// and `serve` wait up to a day, unless a fallback model can answer.
    pub max_server_delay_s: u64,
}

impl Default for RetrySettings {
    fn default() -> Self {
        Self {
            max_retries: 4,
            base_ms: 1_000,
            cap_ms: 30_000,
            budget_s: 120,
            offline_wait_s: 600,
            max_server_delay_s: 60,
        }
    }
}

/// A protocol in the form that people write. An empty text means the provider's own.
mod protocol {
    use serde::de::value::{Error as WordError, StrDeserializer};
    use serde::de::{Error, IntoDeserializer};
    use serde::{Deserializer, Serializer};

    use super::*;

    const ALL: [Protocol; 4] =
        [Protocol::OpenaiChat, Protocol::OpenaiResponses, Protocol::Anthropic, Protocol::Gemini];

    fn word(protocol: Protocol) -> &'static str {
        match protocol {
            Protocol::OpenaiChat => "openai-chat",
            Protocol::OpenaiResponses => "openai-responses",
            Protocol::Anthropic => "anthropic",
            Protocol::Gemini => "gemini",
        }
    }

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        chosen: &Option<Protocol>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        chosen.map(word).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Protocol>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
        if text.is_empty() {
            return Ok(None);
        }
        let word: StrDeserializer<'_, WordError> = text.as_str().into_deserializer();
        Protocol::deserialize(word).map(Some).map_err(D::Error::custom)
    }

    pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = [""].into_iter().chain(ALL.map(word)).collect();
        json_schema!({"type": "string", "enum": words})
    }
}

/// An effort in the form that people write. An empty text leaves it to the server.
mod effort {
    use serde::de::Error;
    use serde::{Deserializer, Serializer};

    use super::*;

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(
        chosen: &Option<Effort>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        chosen.map(Effort::name).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Effort>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
        if text.is_empty() {
            return Ok(None);
        }
        let named = Effort::ALL.into_iter().find(|effort| effort.name() == text);
        let allowed = || Effort::ALL.map(|effort| format!("`{}`", effort.name())).join(", ");
        let refused = || D::Error::custom(format!("unknown effort `{text}`, expected one of {}", allowed()));
        named.map(Some).ok_or_else(refused)
    }

    pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = [""].into_iter().chain(Effort::ALL.map(Effort::name)).collect();
        json_schema!({"type": "string", "enum": words})
    }
}
