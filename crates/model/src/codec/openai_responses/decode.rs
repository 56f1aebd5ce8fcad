use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Proof;
use crate::codec::part_writer::{OpenBlock, PartWriter};
use crate::codec::{Decoder, Fault, Frame, error_body, parse, token_count};
use crate::{AnswerPart, StopKind, StopReason, TokenCounts};

/// What stands between two parts of a summary.
const BETWEEN_SUMMARIES: &str = "\n\n";

/// The fields of the events that we know; raw where events that we don't know may have something else there.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    r#type: String,
    output_index: Option<u64>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    response: Value,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ItemKind {
    Message,
    FunctionCall,
    Reasoning,
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct CallItem {
    #[serde(default)]
    call_id: Option<String>,
    name: String,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct MessageItem {
    #[serde(default)]
    content: Vec<Content>,
}

#[derive(Deserialize)]
struct ReasoningItem<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    summary: Option<&'a RawValue>,
    #[serde(default)]
    content: Option<Vec<Content>>,
    #[serde(borrow, default)]
    encrypted_content: Option<Cow<'a, str>>,
}

/// A piece of a message, of a thought or of its summary.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content {
    #[serde(alias = "summary_text", alias = "reasoning_text")]
    OutputText {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    #[serde(other)]
    Unknown,
}

/// From events to parts.
#[derive(Default)]
pub(in crate::codec) struct Responses {
    blocks: PartWriter,
    /// The place of the call that is open.
    call: Option<u64>,
    /// The places of which deltas came, so that what is whole at the end is not said twice.
    streamed: HashSet<u64>,
    refused: bool,
}

impl Responses {
    /// A call ends with its item alone, so that nothing else can come before that.
    fn said(&mut self, index: u64, say: impl FnOnce(&mut PartWriter)) -> Option<()> {
        if self.blocks.open() == OpenBlock::Call {
            return None;
        }
        self.streamed.insert(index);
        say(&mut self.blocks);
        Some(())
    }

    /// Nothing if the event makes no sense.
    fn event(&mut self, event: &Event<'_>, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        let index = event.output_index.unwrap_or(0);
        let delta = || event.delta.and_then(|delta| serde_json::from_str::<String>(delta.get()).ok());
        match event.r#type.as_str() {
            "response.output_text.delta" => {
                let delta = delta()?;
                self.said(index, |blocks| blocks.text(delta, parts))
            }
            "response.refusal.delta" => {
                self.refused = true;
                let delta = delta()?;
                self.said(index, |blocks| blocks.text(delta, parts))
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let delta = delta()?;
                self.said(index, |blocks| blocks.reasoning(delta, parts))
            }
            "response.reasoning_summary_part.added" => {
                if self.blocks.open() == OpenBlock::Reasoning {
                    self.blocks.reasoning(BETWEEN_SUMMARIES.to_owned(), parts);
                }
                Some(())
            }
            "response.output_item.added" => self.added(index, event.item?, parts),
            "response.function_call_arguments.delta" => {
                let delta = delta()?;
                self.call.filter(|call| *call == index)?;
                if !delta.is_empty() {
                    self.streamed.insert(index);
                }
                self.blocks.arguments(delta, parts);
                Some(())
            }
            "response.output_item.done" => self.done(index, event.item?, parts),
            "response.completed" | "response.incomplete" => self.end(event, parts),
            // What only repeats, what only says that something goes on, and what is new.
            _ => Some(()),
        }
    }

    fn added(&mut self, index: u64, item: &RawValue, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        let ItemKind::FunctionCall = serde_json::from_str(item.get()).ok()? else { return Some(()) };
        self.begin_call(index, serde_json::from_str(item.get()).ok()?, parts).map(drop)
    }

    /// Its arguments come back.
    fn begin_call(
        &mut self,
        index: u64,
        item: CallItem,
        parts: &mut VecDeque<AnswerPart>,
    ) -> Option<Option<String>> {
        if self.call.is_some() || item.name.is_empty() {
            return None;
        }
        self.call = Some(index);
        self.blocks.begin_call(item.call_id.filter(|id| !id.is_empty()), item.name, parts);
        Some(item.arguments)
    }

    fn done(&mut self, index: u64, item: &RawValue, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        let streamed = self.streamed.contains(&index);
        match serde_json::from_str(item.get()).ok()? {
            ItemKind::FunctionCall => {
                let item: CallItem = serde_json::from_str(item.get()).ok()?;
                let arguments = match self.call {
                    Some(call) if call == index => item.arguments,
                    _ => self.begin_call(index, item, parts)?,
                };
                if !streamed {
                    self.blocks.arguments(arguments.unwrap_or_default(), parts);
                }
                self.blocks.close(parts);
                self.call = None;
            }
            ItemKind::Message => {
                let item: MessageItem = serde_json::from_str(item.get()).ok()?;
                self.whole(index, item.content, streamed, parts)?;
            }
            ItemKind::Reasoning => {
                let item: ReasoningItem<'_> = serde_json::from_str(item.get()).ok()?;
                self.thought(index, item, streamed, parts)?;
            }
            ItemKind::Unknown => {}
        }
        Some(())
    }

    fn whole(
        &mut self,
        index: u64,
        content: Vec<Content>,
        streamed: bool,
        parts: &mut VecDeque<AnswerPart>,
    ) -> Option<()> {
        for piece in content {
            let (text, refused) = match piece {
                Content::OutputText { text } => (text, false),
                Content::Refusal { refusal } => (refusal, true),
                Content::Unknown => continue,
            };
            self.refused |= refused;
            if !streamed {
                self.said(index, |blocks| blocks.text(text, parts))?;
            }
        }
        if self.blocks.open() == OpenBlock::Text {
            self.blocks.close(parts);
        }
        Some(())
    }

    fn thought(
        &mut self,
        index: u64,
        item: ReasoningItem<'_>,
        streamed: bool,
        parts: &mut VecDeque<AnswerPart>,
    ) -> Option<()> {
        if !streamed {
            let summary: Option<Vec<Content>> =
                item.summary.and_then(|text| serde_json::from_str(text.get()).ok());
            let pieces = summary.filter(|pieces| !pieces.is_empty()).or(item.content).unwrap_or_default();
            for (place, piece) in pieces.into_iter().enumerate() {
                let Content::OutputText { text } = piece else { continue };
                let between = if place == 0 { "" } else { BETWEEN_SUMMARIES };
                self.said(index, |blocks| blocks.reasoning(between.to_owned() + &text, parts))?;
            }
        }
        if let Some(encrypted_content) = item.encrypted_content.filter(|content| !content.is_empty()) {
            let proof = Proof { id: item.id, summary: item.summary, encrypted_content };
            let proof = serde_json::to_string(&proof).ok()?;
            self.said(index, |blocks| {
                blocks.begin_reasoning(parts);
                blocks.sign(&proof);
            })?;
        }
        if self.blocks.open() == OpenBlock::Reasoning {
            self.blocks.close(parts);
        }
        Some(())
    }

    fn end(&mut self, event: &Event<'_>, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        let cut = event.r#type == "response.incomplete";
        let stop = match event.response.pointer("/incomplete_details/reason").and_then(Value::as_str) {
            Some("content_filter") => StopReason::new(StopKind::Refused, "content_filter"),
            Some(reason) => StopReason::new(StopKind::Length, reason),
            None if cut => StopReason::new(StopKind::Length, "incomplete"),
            None if self.refused => StopReason::new(StopKind::Refused, "refusal"),
            None => StopReason::new(StopKind::Finished, "completed"),
        };
        if self.blocks.open() == OpenBlock::Call {
            // A call that was cut stays open: it may not be run. One that is just missing its end is no answer.
            cut.then_some(())?;
        } else {
            self.blocks.close(parts);
        }
        count(&event.response, parts);
        parts.push_back(AnswerPart::End(stop));
        Some(())
    }
}

fn count(response: &Value, parts: &mut VecDeque<AnswerPart>) {
    let tokens = TokenCounts {
        input: token_count(response, "/usage/input_tokens"),
        output: token_count(response, "/usage/output_tokens"),
        cached: token_count(response, "/usage/input_tokens_details/cached_tokens"),
        written: None,
    };
    if tokens != TokenCounts::default() {
        parts.push_back(AnswerPart::Usage(tokens));
    }
}

impl Decoder for Responses {
    fn decode(&mut self, frame: Frame<'_>, parts: &mut VecDeque<AnswerPart>) -> Result<(), Fault> {
        let Some(event) = parse::<Event<'_>>(frame)? else { return Ok(()) };
        match event.r#type.as_str() {
            "response.failed" => {
                count(&event.response, parts);
                let said =
                    error_body::parse_error_object(event.response.get("error").unwrap_or(&Value::Null));
                Err(Fault::Provider(said.unwrap_or_default()))
            }
            "error" | "" => match parse::<Value>(frame)?.as_ref().and_then(error_body::parse_error_value) {
                Some(said) => Err(Fault::Provider(said)),
                None => Err(Fault::unreadable(frame.data)),
            },
            _ => self.event(&event, parts).ok_or_else(|| Fault::unreadable(frame.data)),
        }
    }
}
