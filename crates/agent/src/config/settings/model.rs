use longhaul_model::{Effort, Protocol};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::none_if_empty;

/// What answers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    /// As `provider/model`; `scripted/FILE.json` plays a file. `LONGHAUL_MODEL` and `--model` win.
    pub name: String,
    /// The server to ask, if not the provider's own: one that speaks as OpenAI, Anthropic or Gemini do.
    #[serde(deserialize_with = "none_if_empty")]
    pub base_url: Option<String>,
    /// The name of the variable that holds the key, if not the provider's usual one; commands don't see that variable.
    #[serde(deserialize_with = "none_if_empty")]
    pub api_key_env: Option<String>,
    /// What the server speaks, if not what the provider usually does.
    #[serde(with = "protocol")]
    #[schemars(schema_with = "protocol::schema")]
    pub protocol: Option<Protocol>,
    /// Whether the model can call tools, if that is not known.
    pub tools: Option<bool>,
    /// Seconds to wait for a connection; 10, unless the server has other needs.
    pub connect_timeout_s: Option<u64>,
    /// Seconds to wait for the first byte of an answer; 300, unless the server has other needs.
    pub first_byte_timeout_s: Option<u64>,
    /// Seconds of silence within an answer; 120, unless the server has other needs.
    pub silence_timeout_s: Option<u64>,
    /// How many tokens a context may have; without it, the server is asked, then the catalogue.
    #[schemars(range(min = 1))]
    pub context_window: Option<u64>,
    /// How many tokens an answer may have; without it, what the catalogue says about the model, otherwise 8,192. Never more
    /// than a quarter of the context.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u64>,
    /// How much the model reasons before it answers; empty: as its server likes. A server that refuses it is asked without it.
    #[serde(with = "effort")]
    #[schemars(schema_with = "effort::schema")]
    pub effort: Option<Effort>,
    /// Models that are asked, in this order, when this one can't answer.
    pub fallback: Vec<String>,
}

/// What is done about calls of the model that fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetrySettings {
    /// How often a call is made again.
    #[schemars(range(max = 1000))]
    pub max_retries: u32,
    /// Milliseconds before the first time; they double from then on.
    pub base_ms: u64,
    /// Milliseconds that a wait has at most.
    pub cap_ms: u64,
    /// Seconds that all waits of a call have together.
    pub budget_s: u64,
    /// Seconds that a single turn waits for the network to come back; the terminal and `serve` wait without end. 0: being
    /// offline counts as a failed try.
    pub offline_wait_s: u64,
    /// Seconds that a server may ask to wait before the wait counts as a long one. `run` and its kin don't wait that long: the call fails, and the error says when to try again.
    /// The terminal and `serve` wait, up to a day, and show it, unless a fallback model can answer.
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
