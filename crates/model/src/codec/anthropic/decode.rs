use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::REDACTED_PREFIX;
use crate::codec::part_writer::PartWriter;
use crate::codec::{Decoder, Fault, Frame, error_body, parse, token_count};
use crate::{AnswerPart, SearchSource, StopKind, StopReason, TokenCounts};

/// The fields of all events that this decoder knows.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    r#type: Option<String>,
    message: Option<Started>,
    index: Option<u64>,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    delta: Option<Delta>,
    usage: Value,
    error: Value,
}

#[derive(Deserialize)]
struct Started {
    #[serde(default)]
    usage: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    r#type: String,
    text: String,
    thinking: String,
    signature: String,
    data: String,
    id: Option<String>,
    name: String,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

/// A page in the result of a search.
#[derive(Deserialize)]
struct FoundPage {
    url: String,
    #[serde(default)]
    title: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Delta {
    r#type: String,
    text: String,
    thinking: String,
    signature: String,
    partial_json: String,
    stop_reason: Option<String>,
}

/// The kind of the open block.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BlockKind {
    Text,
    Thinking,
    /// Holds the arguments from the start event, in case no deltas follow.
    Call(Option<String>),
    /// A block type that this decoder does not know. Its deltas are ignored.
    Unknown,
}

/// Decodes events into parts.
#[derive(Default)]
pub(in crate::codec) struct Messages {
    blocks: PartWriter,
    open: Option<(u64, BlockKind)>,
    stop: Option<StopReason>,
    usage: Usage,
}

/// The counts so far, split the way the provider reports them.
#[derive(Default)]
struct Usage {
    plain: Option<u64>,
    read: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
}

impl Messages {
    /// `None` if the block is invalid or another one is still open.
    fn begin_block(&mut self, index: u64, block: Block<'_>, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        if self.open.is_some() {
            return None;
        }
        let kind = match block.r#type.as_str() {
            "text" => {
                self.blocks.text(block.text, parts);
                BlockKind::Text
            }
            "thinking" => {
                self.blocks.begin_reasoning(parts);
                self.blocks.reasoning(block.thinking, parts);
                self.sign(&block.signature);
                BlockKind::Thinking
            }
            "redacted_thinking" => {
                self.blocks.begin_reasoning(parts);
                self.sign(&format!("{REDACTED_PREFIX}{}", block.data));
                BlockKind::Thinking
            }
            "tool_use" if block.name.is_empty() => return None,
            "tool_use" => {
                self.blocks.begin_call(block.id.filter(|id| !id.is_empty()), block.name, parts);
                let whole = block.input.map(RawValue::get).filter(|input| !matches!(*input, "{}" | "null"));
                BlockKind::Call(whole.map(str::to_owned))
            }
            "web_search_tool_result" => {
                // An error of the search is no list; the model says what it means.
                let found =
                    block.content.and_then(|found| serde_json::from_str::<Vec<FoundPage>>(found.get()).ok());
                let source = |FoundPage { title, url }| AnswerPart::Source(SearchSource { title, url });
                parts.extend(found.into_iter().flatten().map(source));
                BlockKind::Unknown
            }
            _ => BlockKind::Unknown,
        };
        self.open = Some((index, kind));
        Some(())
    }

    fn sign(&mut self, signature: &str) {
        if !signature.is_empty() {
            self.blocks.sign(signature);
        }
    }

    /// `None` if no such block is open or the delta does not fit its kind.
    fn append_delta(&mut self, index: u64, delta: Delta, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        let (_, kind) = self.open.as_mut().filter(|(open, _)| *open == index)?;
        match (delta.r#type.as_str(), kind) {
            (_, BlockKind::Unknown) => {}
            ("text_delta", BlockKind::Text) => self.blocks.text(delta.text, parts),
            ("thinking_delta", BlockKind::Thinking) => self.blocks.reasoning(delta.thinking, parts),
            ("signature_delta", BlockKind::Thinking) => self.sign(&delta.signature),
            ("input_json_delta", BlockKind::Call(whole)) => {
                if !delta.partial_json.is_empty() {
                    *whole = None;
                }
                self.blocks.arguments(delta.partial_json, parts);
            }
            ("text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta", _) => return None,
            _ => {}
        }
        Some(())
    }

    /// `None` if the block is not open.
    fn end_block(&mut self, index: u64, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        let (_, kind) = self.open.take().filter(|(open, _)| *open == index)?;
        if let BlockKind::Call(Some(whole)) = kind {
            self.blocks.arguments(whole, parts);
        }
        self.blocks.close(parts);
        Some(())
    }

    fn count_input(&mut self, usage: &Value) {
        let known = &mut self.usage;
        for (field, name) in [
            (&mut known.plain, "/input_tokens"),
            (&mut known.read, "/cache_read_input_tokens"),
            (&mut known.written, "/cache_creation_input_tokens"),
        ] {
            *field = token_count(usage, name).or(*field);
        }
    }

    fn report_usage(&self, parts: &mut VecDeque<AnswerPart>) {
        let known = &self.usage;
        let input = known.plain.map(|plain| plain + known.read.unwrap_or(0) + known.written.unwrap_or(0));
        let tokens = TokenCounts { input, output: known.output, cached: known.read, written: known.written };
        if tokens != TokenCounts::default() {
            parts.push_back(AnswerPart::Usage(tokens));
        }
    }

    /// `None` if the event is not valid at this point.
    fn handle_event(&mut self, event: Event<'_>, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        match event.r#type?.as_str() {
            "message_start" => {
                // Its output count is only a placeholder.
                self.count_input(&event.message?.usage);
                self.report_usage(parts);
            }
            "content_block_start" => self.begin_block(event.index?, event.content_block?, parts)?,
            "content_block_delta" => self.append_delta(event.index?, event.delta?, parts)?,
            "content_block_stop" => self.end_block(event.index?, parts)?,
            "message_delta" => {
                self.count_input(&event.usage);
                self.usage.output = token_count(&event.usage, "/output_tokens").or(self.usage.output);
                self.report_usage(parts);
                let stop = event.delta?.stop_reason.map(|word| StopReason::new(stop_kind(&word), word));
                self.stop = stop.or(self.stop.take());
            }
            "message_stop" => {
                let stop = self.stop.take().filter(|_| self.open.is_none())?;
                parts.push_back(AnswerPart::End(stop));
            }
            // Pings and unknown events.
            _ => {}
        }
        Some(())
    }
}

impl Decoder for Messages {
    fn decode(&mut self, frame: Frame<'_>, parts: &mut VecDeque<AnswerPart>) -> Result<(), Fault> {
        let Some(event) = parse::<Event<'_>>(frame)? else { return Ok(()) };
        if event.r#type.as_deref() == Some("error") || !event.error.is_null() {
            return Err(Fault::Provider(error_body::parse_error_object(&event.error).unwrap_or_default()));
        }
        self.handle_event(event, parts).ok_or_else(|| Fault::unreadable(frame.data))
    }
}

fn stop_kind(word: &str) -> StopKind {
    match word {
        "max_tokens" | "model_context_window_exceeded" => StopKind::Length,
        "refusal" => StopKind::Refused,
        _ => StopKind::Finished,
    }
}
