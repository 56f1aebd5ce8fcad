//! Anthropic's messages.

mod decode;
mod encode;

pub(super) use decode::Messages;
pub(super) use encode::encode;

/// What the proof of a thought begins with that the provider hides; a real proof is base64, which has no colon.
const HIDDEN: &str = "redacted:";

#[cfg(test)]
#[path = "anthropic_tests.rs"]
mod tests;
