//! Classifies provider errors. Pure.

use crate::codec::ProviderError;
use crate::{FailureClass, RateLimits};

/// Error codes for an exhausted quota or credit.
const QUOTA_CODES: &[&str] = &[
    "insufficient_quota",
    "insufficient_balance",
    "insufficient_credits",
    "billing",
    "credit_balance",
    "payment_required",
    "quota_exceeded",
    "usage_limit_reached",
    "spend_limit",
];
/// Phrases for an exhausted quota or credit. An error about a per-minute quota has similar words, but states a delay.
const QUOTA_WORDS: &[&str] =
    &["credit balance is too low", "insufficient balance", "insufficient credits", "more credits"];
const TOO_LONG_CODES: &[&str] =
    &["context_length_exceeded", "exceed_context_size", "request_too_large", "prompt_too_long"];
const TOO_LONG_WORDS: &[&str] = &[
    "maximum context length",
    "context length exceeded",
    "prompt is too long",
    "context window",
    "available context size",
    "context size has been exceeded",
    "input token count",
    "input is too long",
    "input length and",
    "too many tokens",
    "maximum prompt length",
    "reduce the length of the messages",
    "exceeds the context",
    "max_model_len",
    "`inputs` tokens + `max_new_tokens`",
    "`inputs` must have less than",
    "context length of only",
    "model's context length",
];
const NO_TOOLS_WORDS: &[&str] = &[
    "does not support tools",
    "does not support tool",
    "support tool use",
    "does not support function",
    "tool use is not supported",
    "tools are not supported",
    "tools is not supported",
    "function calling is not",
];
/// What servers and chat templates say about the order of roles. A template error may have any HTTP status.
const ROLE_ORDER_WORDS: &[&str] = &[
    "system message must be",
    "system messages must be",
    "system role not supported",
    "system role is not supported",
    "must alternate",
    "should alternate",
    "unexpected role",
    "expected last role",
    "roles are supported",
    "after the optional system message",
    "consecutive messages",
    "same role",
    "role order",
    "order of roles",
    "last message must",
    "last message should",
    "first message must",
    "first message should",
    "must start with a user",
    "jinja",
    "chat template",
    "chat_template",
    "raise_exception",
    "templateerror",
];
const NO_MODEL_CODES: &[&str] = &["model_not_found", "model_not_available", "unknown_model"];
const REFUSED_CODES: &[&str] = &["content_filter", "content_policy", "safety", "prohibited_content"];
const KEY_CODES: &[&str] =
    &["authentication", "invalid_api_key", "permission", "unauthenticated", "unauthorized"];
const THROTTLED_CODES: &[&str] = &["rate_limit", "resource_exhausted", "too_many_requests"];
const OVERLOADED_CODES: &[&str] = &["overloaded", "unavailable", "engine_overloaded", "capacity"];
const INVALID_CODES: &[&str] =
    &["invalid_request", "invalid_argument", "invalid_prompt", "failed_precondition"];

/// The class of a provider error.
pub(crate) fn classify_error(error: &ProviderError) -> FailureClass {
    let codes: Vec<String> = error.codes.iter().map(|code| code.to_lowercase()).collect();
    let message = error.message.to_lowercase();
    let code = |words: &[&str]| codes.iter().any(|code| words.iter().any(|word| code.contains(word)));
    let words = |words: &[&str]| words.iter().any(|word| message.contains(word));
    let is_server = error.status.is_some_and(|status| status >= 500);
    let is_quota_exhausted = code(QUOTA_CODES) || words(QUOTA_WORDS);
    let exceeds_plan = message.contains("exceeded your current quota") && error.delay.is_none();
    if error.status == Some(402) || (!is_server && (is_quota_exhausted || exceeds_plan)) {
        return FailureClass::Quota;
    }
    // The text of a 5xx error is too unspecific to classify it.
    if !is_server {
        if code(TOO_LONG_CODES) || (error.status != Some(429) && words(TOO_LONG_WORDS)) {
            return FailureClass::TooLong;
        }
        if words(NO_TOOLS_WORDS) {
            return FailureClass::NoTools;
        }
        if code(NO_MODEL_CODES) {
            return FailureClass::NotFound;
        }
        if code(REFUSED_CODES) {
            return FailureClass::Refused;
        }
    }
    let is_about_roles = words(ROLE_ORDER_WORDS)
        || (matches!(error.status, Some(400 | 422)) && has_word(&message, &["role", "roles"]));
    if matches!(error.status, None | Some(400 | 422 | 500)) && is_about_roles {
        return FailureClass::RoleOrder;
    }
    match error.status {
        Some(429) => FailureClass::Throttled,
        Some(529 | 503) => FailureClass::Overloaded,
        Some(_) if is_server && code(OVERLOADED_CODES) => FailureClass::Overloaded,
        Some(408 | 504) => FailureClass::Timeout,
        Some(409 | 425) => FailureClass::Server,
        Some(401 | 403) => FailureClass::Key,
        Some(404) => FailureClass::NotFound,
        Some(413) => FailureClass::TooLong,
        Some(500..) => FailureClass::Server,
        // Some proxies report an overload with their own status.
        Some(_) if code(OVERLOADED_CODES) => FailureClass::Overloaded,
        Some(400..) => FailureClass::Invalid,
        // An error inside a stream has no status, only codes.
        None | Some(_) => {
            if code(THROTTLED_CODES) {
                FailureClass::Throttled
            } else if code(OVERLOADED_CODES) {
                FailureClass::Overloaded
            } else if code(KEY_CODES) {
                FailureClass::Key
            } else if code(INVALID_CODES) {
                FailureClass::Invalid
            } else {
                FailureClass::Server
            }
        }
    }
}

fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|found| words.contains(&found))
}

/// The rate limit headers, unchanged.
pub(crate) fn rate_limits(headers: &[(String, String)]) -> RateLimits {
    headers.iter().filter(|(name, _)| name.contains("ratelimit-")).cloned().collect()
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
