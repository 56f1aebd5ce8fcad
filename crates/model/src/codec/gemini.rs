//! Gemini's `streamGenerateContent`.

mod decode;
mod encode;

pub(super) use decode::Generated;
pub(super) use encode::encode;

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
