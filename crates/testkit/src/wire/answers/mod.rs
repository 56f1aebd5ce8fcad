//! What a model says, as the four protocols put it.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use longhaul_model::{Protocol, StopKind, TokenCounts};
use serde_json::Value;

#[cfg(test)]
#[path = "answers_tests.rs"]
mod tests;

/// The name of the model in every answer.
const MODEL: &str = "test-model";

/// What a model says: a thought, a text, calls of tools, in this order.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    thought: Option<String>,
    text: Option<String>,
    calls: Vec<(String, Value)>,
    usage: Option<TokenCounts>,
    stop: StopKind,
}

impl Said {
    /// Nothing, to begin with.
    pub fn nothing() -> Self {
        Self { thought: None, text: None, calls: vec![], usage: None, stop: StopKind::Finished }
    }

    /// A text.
    pub fn text(text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..Self::nothing() }
    }

    /// With a thought before it. Where the protocol has signatures, it has one.
    #[must_use]
    pub fn thought(mut self, thought: &str) -> Self {
        self.thought = Some(thought.to_owned());
        self
    }

    /// With a call of this tool. `Value::Null` are no arguments at all, not even `{}`.
    #[must_use]
    pub fn call(mut self, name: &str, arguments: Value) -> Self {
        self.calls.push((name.to_owned(), arguments));
        self
    }

    /// With these counts of tokens; without any, the answer does not speak of them.
    #[must_use]
    pub fn usage(mut self, input: u64, output: u64) -> Self {
        self.usage = Some(TokenCounts { input: Some(input), output: Some(output), ..TokenCounts::default() });
        self
    }

    /// With so many of the tokens that were sent found in the provider's cache.
    #[must_use]
    pub fn cached(mut self, cached: u64) -> Self {
        self.usage.get_or_insert_default().cached = Some(cached);
        self
    }

    /// With another stop than that of an answer that is finished.
    #[must_use]
    pub fn stop(mut self, stop: StopKind) -> Self {
        self.stop = stop;
        self
    }

    /// With so many tokens read, whatever was said about them before.
    pub(super) fn reading(mut self, input: u64) -> Self {
        self.usage.get_or_insert_default().input = Some(input);
        self
    }

    /// The body of the answer.
    pub fn bytes(&self, protocol: Protocol) -> Vec<u8> {
        self.frames(protocol).concat()
    }

    /// The body of the answer, each server-sent event by itself.
    pub fn frames(&self, protocol: Protocol) -> Vec<Vec<u8>> {
        match protocol {
            Protocol::OpenaiChat => chat::frames(self),
            Protocol::OpenaiResponses => responses::frames(self),
            Protocol::Anthropic => anthropic::frames(self),
            Protocol::Gemini => gemini::frames(self),
        }
    }

    /// Tokens sent, from the cache among those if that is said, and received.
    fn counts(&self) -> Option<(u64, Option<u64>, u64)> {
        let known = |count: Option<u64>| count.unwrap_or(0);
        self.usage.map(|usage| (known(usage.input), usage.cached, known(usage.output)))
    }
}

/// A text in at least two pieces, if it is long enough for that.
fn deltas(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(2).clamp(1, 12);
    characters.chunks(size).map(|chunk| chunk.iter().collect()).collect()
}

/// The text of arguments as a model writes it.
fn argument_text(arguments: &Value) -> String {
    if arguments.is_null() { String::new() } else { arguments.to_string() }
}

/// A server-sent event that is named like its type.
fn named(data: &Value) -> Vec<u8> {
    let name = data["type"].as_str().unwrap();
    format!("event: {name}\ndata: {data}\n\n").into_bytes()
}
