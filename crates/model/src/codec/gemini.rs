//! Gemini's generateContent, as a stream.

mod decode;
mod encode;

pub(super) use decode::Generated;
pub(super) use encode::encode;

#[cfg(test)]
#[path = "gemini_tests.rs"]
mod tests;
