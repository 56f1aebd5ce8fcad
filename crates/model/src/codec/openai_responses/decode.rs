use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ReasoningSignature;
use crate::codec::part_writer::{OpenBlock, PartWriter};
use crate::codec::{Decoder, Fault, Frame, error_body, parse, token_count};
use crate::{AnswerPart, SearchSource, StopKind, StopReason, TokenCounts};

/// Separates two parts of a reasoning summary.
const SUMMARY_SEPARATOR: &str = "\n\n";

/// The fields of the known events. A field is raw JSON if unknown events may hold another type there.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Event<'a> {
    r#type: String,
    output_index: Option<u64>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    annotation: Option<&'a RawValue>,
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

/// A page that the text cites.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Annotation {
    UrlCitation {
        url: String,
        #[serde(default)]
        title: String,
    },
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

/// A piece of a message, of reasoning or of its summary.
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

/// Decodes events into parts.
#[derive(Default)]
pub(in crate::codec) struct Responses {
    blocks: PartWriter,
    /// The output index of the open call.
    call: Option<u64>,
    /// Output indexes whose deltas were written. When such an item is done, its whole text is not written again.
    streamed: HashSet<u64>,
    refused: bool,
}

impl Responses {
    /// Writes text or reasoning. `None` while a call is open: only the end of its own item may close a call.
    fn write_content(&mut self, index: u64, write: impl FnOnce(&mut PartWriter)) -> Option<()> {
        if self.blocks.open() == OpenBlock::Call {
            return None;
        }
        self.streamed.insert(index);
        write(&mut self.blocks);
        Some(())
    }

    /// `None` if the event is not valid at this point.
    fn handle_event(&mut self, event: &Event<'_>, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        let index = event.output_index.unwrap_or(0);
        let delta = || event.delta.and_then(|delta| serde_json::from_str::<String>(delta.get()).ok());
        match event.r#type.as_str() {
            "response.output_text.delta" => {
                let delta = delta()?;
                self.write_content(index, |blocks| blocks.text(delta, parts))
            }
            "response.refusal.delta" => {
                self.refused = true;
                let delta = delta()?;
                self.write_content(index, |blocks| blocks.text(delta, parts))
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let delta = delta()?;
                self.write_content(index, |blocks| blocks.reasoning(delta, parts))
            }
            "response.reasoning_summary_part.added" => {
                if self.blocks.open() == OpenBlock::Reasoning {
                    self.blocks.reasoning(SUMMARY_SEPARATOR.to_owned(), parts);
                }
                Some(())
            }
            "response.output_text.annotation.added" => {
                let annotation = event.annotation.and_then(|found| serde_json::from_str(found.get()).ok());
                if let Some(Annotation::UrlCitation { url, title }) = annotation {
                    parts.push_back(AnswerPart::Source(SearchSource { title, url }));
                }
                Some(())
            }
            "response.output_item.added" => self.begin_item(index, event.item?, parts),
            "response.function_call_arguments.delta" => {
                let delta = delta()?;
                self.call.filter(|call| *call == index)?;
                if !delta.is_empty() {
                    self.streamed.insert(index);
                }
                self.blocks.arguments(delta, parts);
                Some(())
            }
            "response.output_item.done" => self.end_item(index, event.item?, parts),
            "response.completed" | "response.incomplete" => self.end_answer(event, parts),
            // Events that repeat earlier ones, progress events and unknown events.
            _ => Some(()),
        }
    }

    fn begin_item(&mut self, index: u64, item: &RawValue, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        let ItemKind::FunctionCall = serde_json::from_str(item.get()).ok()? else { return Some(()) };
        self.begin_call(index, serde_json::from_str(item.get()).ok()?, parts).map(drop)
    }

    /// Returns the arguments that came with the item. `None` if another call is open or the name is missing.
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

    fn end_item(&mut self, index: u64, item: &RawValue, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
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
                self.end_message(index, item.content, streamed, parts)?;
            }
            ItemKind::Reasoning => {
                let item: ReasoningItem<'_> = serde_json::from_str(item.get()).ok()?;
                self.end_reasoning(index, item, streamed, parts)?;
            }
            ItemKind::Unknown => {}
        }
        Some(())
    }

    fn end_message(
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
                self.write_content(index, |blocks| blocks.text(text, parts))?;
            }
        }
        if self.blocks.open() == OpenBlock::Text {
            self.blocks.close(parts);
        }
        Some(())
    }

    fn end_reasoning(
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
                let between = if place == 0 { "" } else { SUMMARY_SEPARATOR };
                self.write_content(index, |blocks| blocks.reasoning(between.to_owned() + &text, parts))?;
            }
        }
        if let Some(encrypted_content) = item.encrypted_content.filter(|content| !content.is_empty()) {
            let signature = ReasoningSignature { id: item.id, summary: item.summary, encrypted_content };
            let signature = serde_json::to_string(&signature).ok()?;
            self.write_content(index, |blocks| {
                blocks.begin_reasoning(parts);
                blocks.sign(&signature);
            })?;
        }
        if self.blocks.open() == OpenBlock::Reasoning {
            self.blocks.close(parts);
        }
        Some(())
    }

    fn end_answer(&mut self, event: &Event<'_>, parts: &mut VecDeque<AnswerPart>) -> Option<()> {
        let cut = event.r#type == "response.incomplete";
        let stop = match event.response.pointer("/incomplete_details/reason").and_then(Value::as_str) {
            Some("content_filter") => StopReason::new(StopKind::Refused, "content_filter"),
            Some(reason) => StopReason::new(StopKind::Length, reason),
            None if cut => StopReason::new(StopKind::Length, "incomplete"),
            None if self.refused => StopReason::new(StopKind::Refused, "refusal"),
            None => StopReason::new(StopKind::Finished, "completed"),
        };
        if self.blocks.open() == OpenBlock::Call {
            // In an incomplete response an open call was cut off. It stays open, so it never runs. In a completed
            // response an open call is a fault.
            cut.then_some(())?;
        } else {
            self.blocks.close(parts);
        }
        report_usage(&event.response, parts);
        parts.push_back(AnswerPart::End(stop));
        Some(())
    }
}

fn report_usage(response: &Value, parts: &mut VecDeque<AnswerPart>) {
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
                report_usage(&event.response, parts);
                let error =
                    error_body::parse_error_object(event.response.get("error").unwrap_or(&Value::Null));
                Err(Fault::Provider(error.unwrap_or_default()))
            }
            "error" | "" => match parse::<Value>(frame)?.as_ref().and_then(error_body::parse_error_value) {
                Some(error) => Err(Fault::Provider(error)),
                None => Err(Fault::unreadable(frame.data)),
            },
            _ => self.handle_event(&event, parts).ok_or_else(|| Fault::unreadable(frame.data)),
        }
    }
}
