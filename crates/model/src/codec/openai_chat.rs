//! OpenAI's Chat Completions API, which most other servers speak too, each a little differently.

mod decode;
mod encode;

pub(super) use decode::Chat;
pub(super) use encode::encode;

#[cfg(test)]
#[path = "openai_chat_tests.rs"]
mod tests;
