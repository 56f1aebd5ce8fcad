//! Which parameters of OpenAI's API are refused and which are ignored. One table makes the check and the list in
//! `docs/openai.md`.

use serde_json::{Map, Value};

use super::error::{OpenaiError, OpenaiResult};

/// Whether a value is refused, given the whole body.
type RefusalCheck = fn(&Value, &Map<String, Value>) -> bool;

/// A parameter that has no effect here.
struct Parameter {
    name: &'static str,
    /// When it is refused. Otherwise it is ignored.
    refused_if: Option<RefusalCheck>,
    /// What the list says about it.
    note: &'static str,
}

/// The parameters of chat completions and responses that change the meaning of a request and are not supported, and
/// those that don't matter. Other unknown parameters are ignored too.
const PARAMETERS: &[Parameter] = &[
    refused("n", "more than 1", |value, _| value.as_f64().is_some_and(|n| n > 1.0)),
    refused("logprobs", "other than false", |value, _| is_on(value)),
    refused("top_logprobs", "more than 0", |value, _| value.as_f64().is_some_and(|n| n > 0.0)),
    refused(
        "tools",
        "not empty, unless `tool_choice` is `none`: the agent has its own tools",
        |value, body| has_items(value) && !is_tool_choice_none(body),
    ),
    refused("functions", "not empty, unless `tool_choice` is `none`", |value, body| {
        has_items(value) && !is_tool_choice_none(body)
    }),
    refused("response_format", "other than `text`", |value, _| !is_text_format(value)),
    refused("text", "`text.format` other than `text`", |value, _| {
        value.get("format").is_some_and(|format| !is_text_format(format))
    }),
    refused("stop", "not empty", |value, _| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }),
    refused("audio", "not null", |value, _| !value.is_null()),
    refused("modalities", "with anything but `text`", |value, _| {
        value.as_array().is_some_and(|modes| modes.iter().any(|mode| mode != "text"))
    }),
    refused("prompt", "not null: stored prompts are OpenAI's own", |value, _| !value.is_null()),
    ignored("temperature", ""),
    ignored("top_p", ""),
    ignored("seed", ""),
    ignored("metadata", "apart from `metadata.session`"),
    ignored("store", "apart from `false`, which makes a response impossible to retrieve"),
    ignored("safety_identifier", ""),
    ignored("parallel_tool_calls", ""),
    ignored("tool_choice", ""),
    ignored("frequency_penalty", ""),
    ignored("presence_penalty", ""),
    ignored("logit_bias", ""),
    ignored("prediction", ""),
    ignored("reasoning", "the config sets the effort"),
    ignored("reasoning_effort", "the config sets the effort"),
    ignored("verbosity", ""),
    ignored("include", ""),
    ignored("truncation", "a full context is compacted"),
    ignored("service_tier", ""),
    ignored("prompt_cache_key", ""),
    ignored("max_tool_calls", "`limits.steps` bounds a turn"),
    ignored("user", "it is recorded, and never chooses a session"),
];

const fn refused(name: &'static str, note: &'static str, refused_if: RefusalCheck) -> Parameter {
    Parameter { name, refused_if: Some(refused_if), note }
}

const fn ignored(name: &'static str, note: &'static str) -> Parameter {
    Parameter { name, refused_if: None, note }
}

/// Refuses a body with a parameter that would change its meaning.
pub(crate) fn check_parameters(body: &Map<String, Value>) -> OpenaiResult<()> {
    for Parameter { name, refused_if, note } in PARAMETERS {
        let (Some(is_refused), Some(value)) = (refused_if, body.get(*name)) else { continue };
        if is_refused(value, body) {
            let message = format!("`{name}` is not supported if it is {note}; leave it out");
            return Err(OpenaiError::invalid("unsupported_parameter", name, message));
        }
    }
    Ok(())
}

fn is_on(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

fn has_items(value: &Value) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty())
}

fn is_tool_choice_none(body: &Map<String, Value>) -> bool {
    ["tool_choice", "function_call"].iter().any(|name| body.get(*name).is_some_and(|choice| choice == "none"))
}

fn is_text_format(format: &Value) -> bool {
    format.is_null() || format.get("type").is_some_and(|kind| kind == "text")
}

#[cfg(test)]
#[path = "parameters_tests.rs"]
mod tests;
