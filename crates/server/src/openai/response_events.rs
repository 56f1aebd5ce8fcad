//! A turn as a response of OpenAI's API: its events and its present form. Pure.
//!
//! The number of an event is derived from the records: events are counted from 0 without a gap. So an event has the same
//! number in every stream, also after a restart. An answer that broke off and was asked for again is an incomplete item.
//!
//! Only when the process died in the middle of an answer is it unknown how many of its events clients have seen. These
//! events don't count then, and a large step in the numbers makes sure that all later events have higher ones.

use longhaul_agent::TurnStep;
use longhaul_protocol::{ClientRequest, Outcome, Question, QuestionId, QuestionKind, SessionId, TurnEnded};
use serde_json::{Value, json};

use super::answer::{TurnUsage, add_usage, limit_message};
use super::completion::{limit_word, question_json};
use super::error::OpenaiError;

/// What the death of the process in the middle of an answer adds to the numbers of later events. It is more than the events
/// of any answer.
const CUT_STEP: u64 = 1 << 24;

/// Folds the steps of a turn into a response.
pub(crate) struct ResponseFold {
    session: SessionId,
    turn: u64,
    /// What the client asked for, as it is on record; `None` if no client of `/v1` began the turn.
    request: Option<Box<ClientRequest>>,
    created_at: i64,
    status: ResponseStatus,
    items: Vec<Value>,
    /// The text of the item that is being written.
    open: Option<String>,
    /// Events so far that count, and their number when the open item began.
    events: u64,
    events_before_item: u64,
    /// Answers in which the process died.
    cut_answers: u64,
    discarded_answers: usize,
    /// Discarded answers that are an item of the stream.
    incomplete_items: usize,
    usage: Option<TurnUsage>,
    plan: Option<Question>,
}

/// How far a response is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ResponseStatus {
    InProgress,
    /// The turn waits for the answer to this question.
    Question(QuestionId),
    /// The turn has ended with a plan, and asks whether to carry it out.
    Plan,
    Ended(Box<TurnEnded>),
}

impl ResponseFold {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            turn: 0,
            request: None,
            created_at: 0,
            status: ResponseStatus::InProgress,
            items: vec![],
            open: None,
            events: 0,
            events_before_item: 0,
            cut_answers: 0,
            discarded_answers: 0,
            incomplete_items: 0,
            usage: None,
            plan: None,
        }
    }

    pub(crate) fn status(&self) -> &ResponseStatus {
        &self.status
    }

    /// Whether the turn has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.status, ResponseStatus::Ended(_) | ResponseStatus::Plan)
    }

    /// The events that a step makes.
    pub(crate) fn apply(&mut self, step: TurnStep) -> Vec<Value> {
        match step {
            TurnStep::Started { turn, at, request } => {
                (self.turn, self.created_at, self.request) = (turn, at.0 / 1_000, request);
                self.begin()
            }
            TurnStep::Text(piece) => self.push_text(&piece),
            TurnStep::MessageEnded { text, .. } => self.end_item(&text),
            TurnStep::Discarded { missed, is_cut: false } => {
                let mut events: Vec<Value> = missed.iter().flat_map(|piece| self.push_text(piece)).collect();
                events.extend(self.discard_item());
                events
            }
            TurnStep::Discarded { is_cut: true, .. } => {
                if self.open.take().is_some() {
                    self.events = self.events_before_item;
                }
                self.cut_answers += 1;
                self.discarded_answers += 1;
                vec![]
            }
            TurnStep::Cut => {
                self.cut_answers += 1;
                vec![]
            }
            TurnStep::Question(question) if question.kind == QuestionKind::Plan => {
                self.plan = Some(question);
                vec![]
            }
            TurnStep::Question(question) => self.ask(&question, ResponseStatus::Question(question.id)),
            TurnStep::Answered(id) if self.status == ResponseStatus::Question(id) => {
                self.status = ResponseStatus::InProgress;
                self.begin()
            }
            TurnStep::Answered(_) | TurnStep::PlanSettled | TurnStep::Withdrawn => vec![],
            TurnStep::Usage(usage) => {
                add_usage(&mut self.usage, &usage);
                vec![]
            }
            TurnStep::Ended(ended) => {
                match self.plan.take().filter(|_| ended.outcome == Outcome::Completed) {
                    Some(plan) => self.ask(&plan, ResponseStatus::Plan),
                    None => {
                        let mut events = Vec::new();
                        if let Some(message) = limit_message(&ended) {
                            events.extend(self.push_text(message));
                            events.extend(self.end_item(message));
                        }
                        self.status = ResponseStatus::Ended(Box::new(ended));
                        events.push(self.event_with_response(self.end_event_name()));
                        events
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
        fields["sequence_number"] = (self.cut_answers * CUT_STEP + self.events).into();
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
        self.items.len() + self.incomplete_items
    }

    /// No other answer of the turn has the same id, also if it was discarded.
    fn item_id(&self) -> String {
        format!("msg_{}_{}_{}", self.session, self.turn, self.items.len() + self.discarded_answers)
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

    /// Ends the item of an answer that broke off. The response does not have it.
    fn discard_item(&mut self) -> Vec<Value> {
        let (index, id) = (self.output_index(), self.item_id());
        self.discarded_answers += 1;
        let Some(text) = self.open.take() else { return vec![] };
        self.incomplete_items += 1;
        let item = message_item(&id, "incomplete", Some(&text));
        vec![self.numbered("response.output_item.done", json!({"output_index": index, "item": item}))]
    }

    /// A question is an item of its own, and makes the response incomplete.
    fn ask(&mut self, question: &Question, status: ResponseStatus) -> Vec<Value> {
        let mut events = self.push_text(&question.text);
        events.extend(self.end_item(&question.text));
        let extension = json!({"question": question_json(question)});
        if let Some(item) = self.items.last_mut() {
            item["longhaul"] = extension.clone();
        }
        if let Some(event) = events.last_mut() {
            event["item"]["longhaul"] = extension;
        }
        self.status = status;
        events.push(self.event_with_response("response.incomplete"));
        events
    }

    /// The response as it is now.
    pub(crate) fn json(&self) -> Value {
        let (status, error, incomplete) = match &self.status {
            ResponseStatus::InProgress => ("in_progress", Value::Null, Value::Null),
            ResponseStatus::Question(_) | ResponseStatus::Plan => {
                ("incomplete", Value::Null, json!({"reason": "question"}))
            }
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
        let reported = self.usage.filter(|_| self.status != ResponseStatus::InProgress);
        let usage = reported.map(|TurnUsage { input, output, cached }| {
            json!({
                "input_tokens": input, "input_tokens_details": {"cached_tokens": cached.unwrap_or(0)},
                "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": input + output,
            })
        });
        let (session, request) = (self.session, self.request.as_deref());
        let model = request.and_then(|request| request.model.as_deref());
        json!({
            "id": format!("resp_{session}_{}", self.turn), "object": "response", "created_at": self.created_at,
            "status": status, "error": error, "incomplete_details": incomplete,
            "model": model.unwrap_or(ClientRequest::CONFIGURED_MODEL), "output": self.items, "usage": usage,
            "instructions": request.and_then(|request| request.instructions.as_ref()),
            "max_output_tokens": request.and_then(|request| request.max_output_tokens),
            "previous_response_id": request.and_then(|request| request.previous_response_id.as_ref()),
            "metadata": request.map(|request| request.metadata.clone()).unwrap_or_default(),
            "background": request.is_some_and(|request| request.background),
            "store": !request.is_some_and(|request| request.unstored),
            "user": request.and_then(|request| request.user.as_ref()),
            "conversation": {"id": format!("conv_{session}")}, "parallel_tool_calls": true, "tool_choice": "auto",
            "tools": [], "temperature": null, "top_p": null, "truncation": "disabled",
            "text": {"format": {"type": "text"}}, "reasoning": {"effort": null, "summary": null},
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
