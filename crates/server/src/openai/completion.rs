//! A turn as a chat completion: its present form, and its chunks. Pure.
//!
//! A chat stream can't take text back. If the model's answer breaks off and it answers again, the stream goes on where the
//! new answer begins with the text that was sent, and ends with an error where it does not.

use hyper::StatusCode;
use longhaul_agent::{AnswerText, TurnStep};
use longhaul_protocol::{InputId, Limit, Outcome, Question, QuestionId, QuestionKind, TurnEnded};
use serde_json::{Value, json};

use super::answer::{TurnUsage, add_usage, limit_message};
use super::error::{OpenaiError, OpenaiResult};

/// A chat completion that is being made.
pub(crate) struct Completion {
    id: String,
    model: String,
    created: i64,
    /// The question that the request answered. The request before has told the client what came before that answer.
    skips_until: Option<QuestionId>,
    answer: AnswerText,
    usage: Option<TurnUsage>,
    plan: Option<Question>,
    end: Option<CompletionEnd>,
}

enum CompletionEnd {
    Turn(TurnEnded),
    Question(Box<Question>),
}

impl Completion {
    /// The completion of a request. `answers`: the question that the request answered.
    pub(crate) fn new(request: InputId, model: String, answers: Option<QuestionId>) -> Self {
        Self {
            id: format!("chatcmpl-{request}"),
            model,
            created: request.made_at().0 / 1_000,
            skips_until: answers,
            answer: AnswerText::default(),
            usage: None,
            plan: None,
            end: None,
        }
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Applies a step. A question ends the completion, but for that of a plan, which the end of the turn follows.
    pub(crate) fn apply(&mut self, step: TurnStep) {
        if self.skips_until.is_some() {
            let ended = matches!(step, TurnStep::Ended(_));
            if matches!(&step, TurnStep::Answered(id) if Some(*id) == self.skips_until) || ended {
                self.skips_until = None;
            }
            if !ended {
                return;
            }
        }
        match step {
            TurnStep::MessageEnded { text, goes_on } => self.answer.add(&text, goes_on),
            TurnStep::Usage(usage) => add_usage(&mut self.usage, &usage),
            TurnStep::Question(question) if question.kind == QuestionKind::Plan => self.plan = Some(question),
            TurnStep::Question(question) => self.end = Some(CompletionEnd::Question(Box::new(question))),
            TurnStep::Ended(ended) => {
                let plan = self.plan.take().filter(|_| ended.outcome == Outcome::Completed);
                self.end = Some(
                    plan.map_or(CompletionEnd::Turn(ended), |plan| CompletionEnd::Question(Box::new(plan))),
                );
            }
            _ => {}
        }
    }

    /// The error of a turn that failed.
    pub(crate) fn error(&self) -> Option<OpenaiError> {
        match &self.end {
            Some(CompletionEnd::Turn(ended)) if ended.outcome == Outcome::Failed => {
                Some(OpenaiError::of_turn(ended))
            }
            _ => None,
        }
    }

    /// The text that follows the messages: the question, or which limit was reached.
    fn closing_text(&self) -> Option<String> {
        match &self.end {
            Some(CompletionEnd::Question(question)) => Some(question.text.clone()),
            Some(CompletionEnd::Turn(ended)) => limit_message(ended).map(str::to_owned),
            None => None,
        }
    }

    fn finish_reason(&self) -> &'static str {
        match &self.end {
            Some(CompletionEnd::Turn(ended)) if ended.outcome == Outcome::Limit => "length",
            _ => "stop",
        }
    }

    /// What OpenAI has no field for.
    fn extension(&self) -> Option<Value> {
        match self.end.as_ref()? {
            CompletionEnd::Question(question) => Some(json!({"question": question_json(question)})),
            CompletionEnd::Turn(ended) if ended.outcome == Outcome::Completed => None,
            CompletionEnd::Turn(ended) => {
                Some(json!({"outcome": ended.outcome, "limit": ended.limit, "message": ended.error}))
            }
        }
    }

    /// The usage; `None` if the provider did not tell it.
    fn usage_json(&self) -> Option<Value> {
        let TurnUsage { input, output, cached } = self.usage?;
        let mut usage = json!({
            "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
        });
        if let Some(cached) = cached {
            usage["prompt_tokens_details"] = json!({"cached_tokens": cached});
        }
        Some(usage)
    }

    pub(crate) fn json(&self) -> Value {
        let mut answer = self.answer.clone();
        if let Some(closing) = self.closing_text() {
            answer.add(&closing, false);
        }
        let message = json!({"role": "assistant", "content": answer.into_text(), "refusal": null});
        let mut form = json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.model,
            "choices": [{
                "index": 0, "message": message, "logprobs": null, "finish_reason": self.finish_reason(),
            }],
        });
        if let Some(usage) = self.usage_json() {
            form["usage"] = usage;
        }
        if let Some(extension) = self.extension() {
            form["longhaul"] = extension;
        }
        form
    }

    fn chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model,
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}],
        })
    }
}

/// A question as clients see it.
pub(crate) fn question_json(question: &Question) -> Value {
    json!({"id": question.id, "kind": question.kind, "choices": question.choices})
}

/// The chunks of a completion that is streamed.
pub(crate) struct CompletionChunks {
    pub(crate) completion: Completion,
    sent: SentText,
}

impl CompletionChunks {
    pub(crate) fn new(completion: Completion) -> Self {
        Self { completion, sent: SentText::default() }
    }

    /// The first chunk.
    pub(crate) fn role(&self) -> Value {
        self.completion.chunk(&json!({"role": "assistant", "content": ""}), None)
    }

    /// Applies a step. The chunk with its text, if the client has not got it. An error if the client has text that is not in the answer.
    pub(crate) fn apply(&mut self, step: TurnStep) -> OpenaiResult<Option<Value>> {
        let mut chunk = None;
        if self.completion.skips_until.is_none() {
            // The separator comes with the first piece of a message.
            let separator = if self.sent.is_empty() { self.completion.answer.separator() } else { "" };
            let part = self.sent.apply(&step).map_err(|()| answer_changed())?;
            chunk = (!part.is_empty()).then(|| self.text_chunk(separator, &part));
        }
        self.completion.apply(step);
        Ok(chunk)
    }

    /// The chunks after the end of the turn. An error if no answer followed the one that broke off.
    pub(crate) fn finish(mut self, with_usage: bool) -> OpenaiResult<Vec<Value>> {
        self.sent.end().map_err(|()| answer_changed())?;
        let completion = &self.completion;
        let closing = completion.closing_text();
        let mut chunks: Vec<Value> = closing
            .map(|closing| self.text_chunk(completion.answer.separator(), &closing))
            .into_iter()
            .collect();
        let mut last = completion.chunk(&json!({}), Some(completion.finish_reason()));
        if let Some(extension) = completion.extension() {
            last["longhaul"] = extension;
        }
        chunks.push(last);
        if let Some(usage) = completion.usage_json().filter(|_| with_usage) {
            let mut chunk = completion.chunk(&json!({}), None);
            chunk["choices"] = json!([]);
            chunk["usage"] = usage;
            chunks.push(chunk);
        }
        Ok(chunks)
    }

    fn text_chunk(&self, separator: &str, text: &str) -> Value {
        self.completion.chunk(&json!({"content": format!("{separator}{text}")}), None)
    }
}

/// The text of the message that is being written, and how much of it the client has.
#[derive(Default)]
struct SentText {
    text: String,
    /// The client's part of a discarded answer. The new answer has to begin with it.
    to_repeat: String,
}

impl SentText {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.to_repeat.is_empty()
    }

    /// The part of a step for the client. An error if the client has text that is not in the answer.
    fn apply(&mut self, step: &TurnStep) -> Result<String, ()> {
        match step {
            TurnStep::Text(piece) => return self.push(piece),
            TurnStep::MessageEnded { .. } => self.end()?,
            TurnStep::Discarded { .. } => self.discard(),
            _ => {}
        }
        Ok(String::new())
    }

    /// The next part for the client. An error if it contradicts what the client has.
    fn push(&mut self, piece: &str) -> Result<String, ()> {
        let before = self.text.len();
        self.text.push_str(piece);
        if self.to_repeat.is_empty() {
            return Ok(piece.to_owned());
        }
        let shared = self.to_repeat.len().min(self.text.len());
        if self.text.as_bytes()[..shared] != self.to_repeat.as_bytes()[..shared] {
            return Err(());
        }
        let new = self.text.get(self.to_repeat.len().max(before)..).unwrap_or_default().to_owned();
        if self.text.len() >= self.to_repeat.len() {
            self.to_repeat.clear();
        }
        Ok(new)
    }

    /// The message is complete. An error if it is shorter than what the client has.
    fn end(&mut self) -> Result<(), ()> {
        let is_repeated = self.to_repeat.is_empty();
        *self = Self::default();
        if is_repeated { Ok(()) } else { Err(()) }
    }

    fn discard(&mut self) {
        let text = std::mem::take(&mut self.text);
        // A shorter second try does not make the client forget.
        if text.len() > self.to_repeat.len() {
            self.to_repeat = text;
        }
    }
}

fn answer_changed() -> OpenaiError {
    let message =
        "the model's answer broke off, and its next one is different; ask for the whole answer again";
    OpenaiError::new(StatusCode::BAD_GATEWAY, "answer_changed", message)
}

/// The word for a limit, as OpenAI's clients know it.
pub(crate) fn limit_word(ended: &TurnEnded) -> String {
    match ended.limit {
        Some(Limit::Tokens) | None => "max_output_tokens".to_owned(),
        Some(limit) => json!(limit).as_str().unwrap_or("limit").to_owned(),
    }
}

#[cfg(test)]
#[path = "completion_tests.rs"]
mod tests;
