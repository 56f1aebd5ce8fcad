use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::codec::part_writer::{OpenBlock, PartWriter};
use crate::codec::{Decoder, Fault, Frame, ProviderError, Quirks, error_body, parse, token_count};
use crate::{AnswerPart, StopKind, StopReason, TokenCounts};

/// The last frame of a stream.
const DONE: &str = "[DONE]";

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(borrow, default)]
    tool_calls: Option<Vec<CallDelta<'a>>>,
}

/// Plain text, or a list of text and reasoning from a reasoning model.
#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    List(Vec<Piece>),
}

#[derive(Deserialize)]
struct Piece {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Vec<Piece>,
}

impl Content {
    fn into_deltas(self) -> Vec<ContentDelta> {
        match self {
            Self::Text(text) => vec![ContentDelta::Text(text)],
            Self::List(pieces) => pieces.into_iter().flat_map(Piece::into_deltas).collect(),
        }
    }
}

impl Piece {
    fn into_deltas(self) -> impl Iterator<Item = ContentDelta> {
        let thoughts =
            self.thinking.into_iter().filter_map(|thought| thought.text).map(ContentDelta::Reasoning);
        thoughts.chain(self.text.map(ContentDelta::Text))
    }
}

#[derive(Deserialize)]
struct CallDelta<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(borrow, default)]
    function: Option<FunctionDelta<'a>>,
}

#[derive(Default, Deserialize)]
struct FunctionDelta<'a> {
    #[serde(default)]
    name: Option<String>,
    /// A JSON string. Some servers send the object itself.
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

/// Decodes chunks into parts.
pub(in crate::codec) struct Chat {
    ends_at_finish_reason: bool,
    blocks: PartWriter,
    /// Identifies the call that began last.
    last: Option<CallKey>,
    /// Text and reasoning that came while a call was open. They follow when the call is complete.
    held: Vec<ContentDelta>,
    refused: bool,
    finish: Option<StopReason>,
    usage: Option<TokenCounts>,
}

struct CallKey {
    index: Option<u64>,
    id: Option<String>,
}

enum ContentDelta {
    Text(String),
    Reasoning(String),
}

impl Chat {
    pub(in crate::codec) fn new(quirks: &Quirks) -> Self {
        Self {
            ends_at_finish_reason: quirks.ends_at_finish_reason,
            blocks: PartWriter::default(),
            last: None,
            held: Vec::new(),
            refused: false,
            finish: None,
            usage: None,
        }
    }

    fn handle_delta(
        &mut self,
        delta: Delta<'_>,
        frame: Frame<'_>,
        parts: &mut VecDeque<AnswerPart>,
    ) -> Result<(), Fault> {
        // Some servers send the same reasoning in both fields.
        let thought = delta.reasoning_content.filter(|text| !text.is_empty()).or(delta.reasoning);
        self.write_content(thought.map(ContentDelta::Reasoning), parts);
        for content in delta.content.into_iter().flat_map(Content::into_deltas) {
            self.write_content(Some(content), parts);
        }
        if let Some(refusal) = delta.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.write_content(Some(ContentDelta::Text(refusal)), parts);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.handle_call(call, frame, parts)?;
        }
        Ok(())
    }

    /// Writes text or reasoning, or holds it back while a call is open. Only the next call or the finish reason
    /// completes a call, so other content must not close it.
    fn write_content(&mut self, content: Option<ContentDelta>, parts: &mut VecDeque<AnswerPart>) {
        match content {
            Some(ContentDelta::Text(text) | ContentDelta::Reasoning(text)) if text.is_empty() => {}
            Some(content) if self.blocks.open() == OpenBlock::Call => self.held.push(content),
            Some(ContentDelta::Text(text)) => self.text(text, parts),
            Some(ContentDelta::Reasoning(text)) => self.reasoning(text, parts),
            None => {}
        }
    }

    fn text(&mut self, text: String, parts: &mut VecDeque<AnswerPart>) {
        self.blocks.text(text, parts);
    }

    fn reasoning(&mut self, text: String, parts: &mut VecDeque<AnswerPart>) {
        if self.blocks.open() != OpenBlock::Reasoning {
            self.blocks.begin_reasoning(parts);
            // This protocol has no signatures. An empty one still gets the name of the model, so that the reasoning
            // goes back only to that model.
            self.blocks.sign("");
        }
        self.blocks.reasoning(text, parts);
    }

    fn close(&mut self, parts: &mut VecDeque<AnswerPart>) {
        self.blocks.close(parts);
        for content in std::mem::take(&mut self.held) {
            self.write_content(Some(content), parts);
        }
    }

    fn handle_call(
        &mut self,
        delta: CallDelta<'_>,
        frame: Frame<'_>,
        parts: &mut VecDeque<AnswerPart>,
    ) -> Result<(), Fault> {
        let unreadable = || Fault::unreadable(frame.data);
        if self.finish.is_some() {
            return Err(unreadable());
        }
        let function = delta.function.unwrap_or_default();
        let name = function.name.filter(|name| !name.is_empty());
        let id = delta.id.filter(|id| !id.is_empty());
        let begins = match &self.last {
            None => true,
            Some(last) => match (delta.index, last.index) {
                (Some(index), Some(open)) if index < open => return Err(unreadable()),
                (Some(index), Some(open)) if index > open => true,
                // Some servers give every call the same index. Then each call comes with a name and an id of its own.
                (Some(_), Some(_)) => name.is_some() && last.id.is_some() && id.is_some() && id != last.id,
                _ => match &id {
                    Some(_) => id != last.id,
                    None => name.is_some(),
                },
            },
        };
        if begins {
            let name = name.ok_or_else(unreadable)?;
            self.close(parts);
            self.blocks.begin_call(id.clone(), name, parts);
            self.last = Some(CallKey { index: delta.index, id });
        }
        if let Some(arguments) = function.arguments.map(RawValue::get).filter(|text| *text != "null") {
            let text = match arguments.starts_with('"') {
                true => serde_json::from_str(arguments).map_err(|_| unreadable())?,
                false => arguments.to_owned(),
            };
            self.blocks.arguments(text, parts);
        }
        Ok(())
    }

    fn report_usage(&mut self, usage: Option<Value>, parts: &mut VecDeque<AnswerPart>) {
        let Some(usage) = usage else { return };
        let tokens = TokenCounts {
            input: token_count(&usage, "/prompt_tokens"),
            output: token_count(&usage, "/completion_tokens"),
            cached: token_count(&usage, "/prompt_tokens_details/cached_tokens")
                .or_else(|| token_count(&usage, "/prompt_cache_hit_tokens"))
                .or_else(|| token_count(&usage, "/cached_tokens")),
            written: None,
        };
        // Some servers repeat the usage in every chunk.
        if tokens != TokenCounts::default() && self.usage != Some(tokens) {
            self.usage = Some(tokens);
            parts.push_back(AnswerPart::Usage(tokens));
        }
    }

    fn end(&mut self, frame: Frame<'_>, parts: &mut VecDeque<AnswerPart>) -> Result<(), Fault> {
        let mut stop = self.finish.take().ok_or_else(|| Fault::unreadable(frame.data))?;
        if self.refused {
            stop.kind = StopKind::Refused;
        }
        self.close(parts);
        parts.push_back(AnswerPart::End(stop));
        Ok(())
    }
}

impl Decoder for Chat {
    fn decode(&mut self, frame: Frame<'_>, parts: &mut VecDeque<AnswerPart>) -> Result<(), Fault> {
        if frame.data.trim() == DONE {
            return self.end(frame, parts);
        }
        let Some(chunk) = parse::<Chunk<'_>>(frame)? else { return Ok(()) };
        if let Some(error) = chunk.error.as_ref().filter(|error| !error.is_null()) {
            self.report_usage(chunk.usage, parts);
            return Err(Fault::Provider(error_body::parse_error_object(error).unwrap_or_default()));
        }
        let Some(choices) = chunk.choices else {
            return match parse::<Value>(frame)?.as_ref().and_then(error_body::parse_error_value) {
                Some(error) if chunk.usage.is_none() => Err(Fault::Provider(error)),
                _ => {
                    self.report_usage(chunk.usage, parts);
                    Ok(())
                }
            };
        };
        let mut finish = None;
        for choice in choices.into_iter().filter(|choice| choice.index.unwrap_or(0) == 0) {
            if let Some(delta) = choice.delta {
                self.handle_delta(delta, frame, parts)?;
            }
            finish = finish.or(choice.finish_reason.filter(|word| !word.is_empty()));
        }
        self.report_usage(chunk.usage, parts);
        if let Some(word) = finish.filter(|_| self.finish.is_none()) {
            let kind = stop_kind(&word).ok_or_else(|| failed_answer(&word))?;
            // The answer reached its limit within this call, so the arguments may be incomplete. The call must never
            // run.
            if kind == StopKind::Length && self.blocks.open() == OpenBlock::Call {
                self.blocks.abandon();
                self.held.clear();
            }
            self.close(parts);
            self.finish = Some(StopReason::new(kind, word));
            if self.ends_at_finish_reason {
                return self.end(frame, parts);
            }
        }
        Ok(())
    }
}

/// What a finish reason means. `None` if it is a failure. An unknown reason counts as a normal stop.
fn stop_kind(word: &str) -> Option<StopKind> {
    match word.to_ascii_lowercase().as_str() {
        "length" | "max_tokens" | "max_output_tokens" | "model_length" => Some(StopKind::Length),
        "content_filter" | "content-filter" | "refusal" | "safety" | "recitation" | "sensitive" => {
            Some(StopKind::Refused)
        }
        "error" | "network_error" | "insufficient_system_resource" | "abort" | "cancelled" => None,
        _ => Some(StopKind::Finished),
    }
}

fn failed_answer(word: &str) -> Fault {
    let message = format!("the provider ended the answer with {word:?}");
    Fault::Provider(ProviderError { codes: vec![word.to_owned()], message, ..ProviderError::default() })
}
