//! A turn as a response of OpenAI's API: its events and its present form. Pure.
//!
//! The number of an event is derived from the records: events are counted from 0, and each discarded answer of the model
//! adds a large step. So an event has the same number in every stream, also after a restart, and what follows a discarded
//! answer has higher numbers than all events of that answer.

use longhaul_protocol::{Outcome, Question, QuestionKind, SessionId, TurnEnded};
use serde_json::{Value, json};

use super::chat::{limit_word, question_json};
use super::error::OpenaiError;
use super::turn::{TurnStep, TurnUsage};

/// What a discarded answer adds to the numbers of later events. It is more than the events of any answer.
const DISCARD_STEP: u64 = 1 << 24;

/// What the client asked for, repeated in the response.
#[derive(Debug, Clone)]
pub(crate) struct ResponseHead {
    pub(crate) session: SessionId,
    pub(crate) model: String,
    pub(crate) instructions: Option<String>,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) previous_response_id: Option<String>,
    pub(crate) metadata: Value,
    pub(crate) background: bool,
    pub(crate) store: bool,
}

/// Folds the steps of a turn into a response.
pub(crate) struct ResponseFold {
    head: ResponseHead,
    turn: u64,
    created_at: i64,
    status: ResponseStatus,
    items: Vec<Value>,
    /// The text of the item that is being written.
    open: Option<String>,
    /// Events so far that count, and their number when the open item began.
    events: u64,
    events_before_item: u64,
    discarded_answers: u64,
    /// Discarded answers that clients may have seen as an item.
    discarded_items: usize,
    usage: TurnUsage,
    plan: Option<Question>,
}

/// How far a response is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ResponseStatus {
    InProgress,
    /// A question waits for an answer.
    Question,
    Ended(Box<TurnEnded>),
}

impl ResponseFold {
    pub(crate) fn new(head: ResponseHead, turn: u64) -> Self {
        Self {
            head,
            turn,
            created_at: 0,
            status: ResponseStatus::InProgress,
            items: vec![],
            open: None,
            events: 0,
            events_before_item: 0,
            discarded_answers: 0,
            discarded_items: 0,
            usage: TurnUsage::default(),
            plan: None,
        }
    }

    pub(crate) fn status(&self) -> &ResponseStatus {
        &self.status
    }

    /// The events that a step makes.
    pub(crate) fn apply(&mut self, step: TurnStep) -> Vec<Value> {
        match step {
            TurnStep::Started { turn, at } => {
                (self.turn, self.created_at) = (turn, at.0 / 1_000);
                self.begin()
            }
            TurnStep::Text(piece) => self.push_text(&piece),
            TurnStep::MessageEnded { text, .. } => self.end_item(&text),
            TurnStep::Discarded { had_text } => {
                if self.open.take().is_some() {
                    self.events = self.events_before_item;
                }
                self.discarded_answers += 1;
                self.discarded_items += usize::from(had_text);
                vec![]
            }
            TurnStep::Question(question) if question.kind == QuestionKind::Plan => {
                self.plan = Some(question);
                vec![]
            }
            TurnStep::Question(question) => self.ask(&question),
            TurnStep::Answered(_) if self.status == ResponseStatus::Question => {
                self.status = ResponseStatus::InProgress;
                self.begin()
            }
            TurnStep::Answered(_) => vec![],
            TurnStep::Usage(usage) => {
                self.usage.add(&usage);
                vec![]
            }
            TurnStep::Ended(ended) => {
                match self.plan.take().filter(|_| ended.outcome == Outcome::Completed) {
                    Some(plan) => self.ask(&plan),
                    None => {
                        self.status = ResponseStatus::Ended(Box::new(ended));
                        vec![self.event_with_response(self.end_event_name())]
                    }
                }
            }
        }
    }

    fn begin(&mut self) -> Vec<Value> {
        vec![self.event_with_response("response.created"), self.event_with_response("response.in_progress")]
    }

    fn numbered(&mut self, kind: &str, mut fields: Value) -> Value {
        fields["type"] = kind.into();
        fields["sequence_number"] = (self.discarded_answers * DISCARD_STEP + self.events).into();
        self.events += 1;
        fields
    }

    fn event_with_response(&mut self, kind: &str) -> Value {
        let response = self.json();
        self.numbered(kind, json!({"response": response}))
    }

    fn end_event_name(&self) -> &'static str {
        match &self.status {
            ResponseStatus::Ended(ended) if ended.outcome == Outcome::Completed => "response.completed",
            ResponseStatus::Ended(ended) if ended.outcome == Outcome::Failed => "response.failed",
            _ => "response.incomplete",
        }
    }

    fn output_index(&self) -> usize {
        self.items.len() + self.discarded_items
    }

    fn item_id(&self) -> String {
        format!("msg_{}_{}_{}", self.head.session, self.turn, self.output_index())
    }

    fn push_text(&mut self, piece: &str) -> Vec<Value> {
        let (index, id) = (self.output_index(), self.item_id());
        let mut events = Vec::new();
        if self.open.is_none() {
            self.events_before_item = self.events;
            let item = message_item(&id, "in_progress", None);
            events.push(
                self.numbered("response.output_item.added", json!({"output_index": index, "item": item})),
            );
            let part = text_part("");
            let fields = json!({"item_id": id, "output_index": index, "content_index": 0, "part": part});
            events.push(self.numbered("response.content_part.added", fields));
        }
        self.open.get_or_insert_default().push_str(piece);
        let fields = json!({
            "item_id": id, "output_index": index, "content_index": 0, "delta": piece, "logprobs": [],
        });
        events.push(self.numbered("response.output_text.delta", fields));
        events
    }

    fn end_item(&mut self, text: &str) -> Vec<Value> {
        let (index, id) = (self.output_index(), self.item_id());
        self.open = None;
        let item = message_item(&id, "completed", Some(text));
        let place = json!({"item_id": id, "output_index": index, "content_index": 0});
        let with = |name: &str, value: Value| {
            let mut fields = place.clone();
            fields[name] = value;
            fields
        };
        let mut done = with("text", text.into());
        done["logprobs"] = json!([]);
        let events = vec![
            self.numbered("response.output_text.done", done),
            self.numbered("response.content_part.done", with("part", text_part(text))),
            self.numbered("response.output_item.done", json!({"output_index": index, "item": item})),
        ];
        self.items.push(item);
        events
    }

    /// A question is an item of its own, and makes the response incomplete.
    fn ask(&mut self, question: &Question) -> Vec<Value> {
        let mut events = self.push_text(&question.text);
        events.extend(self.end_item(&question.text));
        let extension = json!({"question": question_json(question)});
        if let Some(item) = self.items.last_mut() {
            item["longhaul"] = extension.clone();
        }
        if let Some(event) = events.last_mut() {
            event["item"]["longhaul"] = extension;
        }
        self.status = ResponseStatus::Question;
        events.push(self.event_with_response("response.incomplete"));
        events
    }

    /// The response as it is now.
    pub(crate) fn json(&self) -> Value {
        let (status, error, incomplete) = match &self.status {
            ResponseStatus::InProgress => ("in_progress", Value::Null, Value::Null),
            ResponseStatus::Question => ("incomplete", Value::Null, json!({"reason": "question"})),
            ResponseStatus::Ended(ended) => match ended.outcome {
                Outcome::Completed => ("completed", Value::Null, Value::Null),
                Outcome::Cancelled => ("cancelled", Value::Null, Value::Null),
                Outcome::Limit => ("incomplete", Value::Null, json!({"reason": limit_word(ended)})),
                Outcome::Failed => {
                    let error = OpenaiError::of_turn(ended);
                    ("failed", json!({"code": error.code, "message": error.message}), Value::Null)
                }
            },
        };
        let TurnUsage { input, output, cached } = self.usage;
        let usage = match self.status {
            ResponseStatus::InProgress => Value::Null,
            _ => json!({
                "input_tokens": input, "input_tokens_details": {"cached_tokens": cached},
                "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input + output,
            }),
        };
        let ResponseHead { session, model, instructions, max_output_tokens, .. } = &self.head;
        json!({
            "id": format!("resp_{session}_{}", self.turn), "object": "response", "created_at": self.created_at,
            "status": status, "error": error, "incomplete_details": incomplete, "model": model,
            "instructions": instructions, "max_output_tokens": max_output_tokens, "output": self.items,
            "previous_response_id": self.head.previous_response_id, "conversation": {"id": format!("conv_{session}")},
            "metadata": self.head.metadata, "background": self.head.background, "store": self.head.store,
            "usage": usage, "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "temperature": null,
            "top_p": null, "truncation": "disabled", "text": {"format": {"type": "text"}},
            "reasoning": {"effort": null, "summary": null}, "user": null,
        })
    }

    /// The text of an output item.
    pub(crate) fn item_text(&self, id: &str) -> Option<&str> {
        self.items.iter().find(|item| item["id"] == id)?["content"][0]["text"].as_str()
    }
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

fn message_item(id: &str, status: &str, text: Option<&str>) -> Value {
    let content: Vec<Value> = text.map(text_part).into_iter().collect();
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

#[cfg(test)]
#[path = "response_events_tests.rs"]
mod tests;
