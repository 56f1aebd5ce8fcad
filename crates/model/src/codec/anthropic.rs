//! The Anthropic Messages API.

mod decode;
mod encode;

pub(super) use decode::Messages;
pub(super) use encode::encode;

/// The prefix of the signature of redacted reasoning. A real signature is base64 and has no colon.
const REDACTED_PREFIX: &str = "redacted:";

#[cfg(test)]
#[path = "anthropic_tests.rs"]
mod tests;
