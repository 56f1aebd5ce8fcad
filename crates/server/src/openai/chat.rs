//! `POST /v1/chat/completions`.
//!
//! A chat stream can't take text back. If the model's answer breaks off and it answers again, the stream goes on where the
//! new answer begins with the text that was sent, and ends with an error where it does not.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use hyper::StatusCode;
use hyper::header::HeaderValue;
use longhaul_agent::{AnswerText, TurnStep};
use longhaul_protocol::{ClientRequest, Hash, Limit, Outcome, Question, QuestionKind, TurnEnded};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use super::answer::{TurnUsage, add_usage, limit_message};
use super::error::{OpenaiError, OpenaiResult};
use super::follower::TurnSteps;
use super::messages::{Conversation, WireMessage};
use super::models::check_model;
use super::parameters::check_parameters;
use super::placement::{Incoming, NamedSession, Placed, place, retry_headers};
use super::request::{SESSION_HEADER, named_session, read_request};
use super::sse::{ClientGone, EventWriter, count_stream, event_stream};
use crate::access::Caller;
use crate::body::JsonBody;
use crate::state::ServerState;

/// How long a stream waits for the first text before it begins. A turn that fails until then is an HTTP error.
const FIRST_TEXT_WAIT: Duration = Duration::from_secs(10);

/// A request for a chat completion. Other parameters are in `docs/openai.md`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ChatRequest {
    /// An id of `GET /v1/models`.
    model: Option<String>,
    messages: Vec<WireMessage>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    /// The most tokens of each answer of the model.
    max_tokens: Option<u64>,
    /// The same, by its newer name.
    max_completion_tokens: Option<u64>,
    /// `metadata.session` is the key of a session.
    metadata: Option<Map<String, Value>>,
    /// The key of a session, `conv_` and its id, or an object with that as `id`.
    conversation: Option<Value>,
    /// Recorded, and never a key.
    user: Option<String>,
}

/// What a stream contains.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct StreamOptions {
    /// Whether the last chunk has the usage.
    include_usage: Option<bool>,
}

pub(crate) async fn create_chat_completion(
    State(state): State<ServerState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Value>,
) -> OpenaiResult<Response> {
    let request: ChatRequest = read_request(&body)?;
    let permit = count_stream(&state, request.stream)?;
    let incoming = incoming_of(&state, caller, &headers, &body, &request).await?;
    let placed = place(&state, &incoming).await?;
    let mut follower = placed.follow(&state).await?;
    let model = request.model.clone().unwrap_or_else(|| ClientRequest::CONFIGURED_MODEL.to_owned());
    let mut completion = Completion::new(&placed, model);
    let key = HeaderValue::from_str(&urlencoded(placed.session.key())).ok();
    let mut response = if let Some(permit) = permit {
        let with_usage = request.stream_options.and_then(|options| options.include_usage) == Some(true);
        let stream = event_stream(&state, permit);
        stream_completion(stream, placed, follower, completion, with_usage).await?
    } else {
        while completion.end.is_none() {
            let step = follower.next().await?;
            completion.apply(&follower, step).await?;
        }
        if let Some(error) = completion.error() {
            placed.delivery.mark_delivered();
            return Err(error);
        }
        let answer = Json(completion.json()).into_response();
        placed.delivery.mark_delivered();
        answer
    };
    if let Some(key) = key {
        response.headers_mut().insert(SESSION_HEADER, key);
    }
    Ok(response)
}

/// A session key as a header value.
fn urlencoded(key: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'%';
    key.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

async fn incoming_of(
    state: &ServerState,
    caller: Caller,
    headers: &HeaderMap,
    body: &Value,
    request: &ChatRequest,
) -> OpenaiResult<Incoming> {
    if let Some(body) = body.as_object() {
        check_parameters(body)?;
    }
    check_model(state, request.model.as_deref()).await?;
    let mut conversation = Conversation::default();
    for (index, message) in request.messages.iter().enumerate() {
        conversation.push(message, &format!("messages[{index}]"))?;
    }
    conversation.check_input("messages")?;
    let (client_key, is_counted_retry) = retry_headers(headers)?;
    let named: Option<NamedSession> =
        named_session(headers, request.metadata.as_ref(), request.conversation.as_ref())?;
    Ok(Incoming {
        caller,
        named,
        conversation,
        body: Hash::of(body.to_string()),
        client_key,
        is_counted_retry,
        user: request.user.clone(),
        max_output_tokens: request.max_completion_tokens.or(request.max_tokens),
        unstored: false,
        model: request.model.clone(),
        background: false,
        previous_response_id: None,
        metadata: request.metadata.clone().unwrap_or_default(),
    })
}

/// A chat completion that is being made.
struct Completion {
    id: String,
    model: String,
    created: i64,
    /// The question that the request answered. What came before its answer was told by the request before.
    skips_until: Option<longhaul_protocol::QuestionId>,
    answer: AnswerText,
    usage: Option<TurnUsage>,
    plan: Option<Question>,
    end: Option<CompletionEnd>,
}

enum CompletionEnd {
    Turn(TurnEnded),
    Question(Question),
}

impl Completion {
    fn new(placed: &Placed, model: String) -> Self {
        Self {
            id: format!("chatcmpl-{}", placed.request),
            model,
            created: placed.request.made_at().0 / 1_000,
            skips_until: placed.answered.map(|answered| answered.question),
            answer: AnswerText::default(),
            usage: None,
            plan: None,
            end: None,
        }
    }

    async fn apply(&mut self, follower: &TurnSteps, step: TurnStep) -> OpenaiResult<()> {
        if self.skips_until.is_some() {
            let ended = matches!(step, TurnStep::Ended(_));
            if matches!(&step, TurnStep::Answered(id) if Some(*id) == self.skips_until) || ended {
                self.skips_until = None;
            }
            if !ended {
                return Ok(());
            }
        }
        match step {
            TurnStep::MessageEnded { text, goes_on } => self.answer.add(&text, goes_on),
            TurnStep::Usage(usage) => add_usage(&mut self.usage, &usage),
            TurnStep::Question(question) if question.kind == QuestionKind::Plan => self.plan = Some(question),
            TurnStep::Question(question) if follower.is_open(question.id).await? => {
                self.end = Some(CompletionEnd::Question(question));
            }
            TurnStep::Ended(ended) => {
                let plan = self.plan.take().filter(|_| ended.outcome == Outcome::Completed);
                self.end = Some(plan.map_or(CompletionEnd::Turn(ended), CompletionEnd::Question));
            }
            _ => {}
        }
        Ok(())
    }

    /// The error of a turn that failed.
    fn error(&self) -> Option<OpenaiError> {
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

    fn json(&self) -> Value {
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

/// The text of the message that is being written, and how much of it the client has.
#[derive(Default)]
struct SentText {
    text: String,
    /// The client's part of a discarded answer. The new answer has to begin with it.
    owed: String,
}

impl SentText {
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
        if self.owed.is_empty() {
            return Ok(piece.to_owned());
        }
        let shared = self.owed.len().min(self.text.len());
        if self.text.as_bytes()[..shared] != self.owed.as_bytes()[..shared] {
            return Err(());
        }
        let new = self.text.get(self.owed.len().max(before)..).unwrap_or_default().to_owned();
        if self.text.len() >= self.owed.len() {
            self.owed.clear();
        }
        Ok(new)
    }

    /// The message is complete. An error if it is shorter than what the client has.
    fn end(&mut self) -> Result<(), ()> {
        let is_told = self.owed.is_empty();
        *self = Self::default();
        if is_told { Ok(()) } else { Err(()) }
    }

    fn discard(&mut self) {
        let text = std::mem::take(&mut self.text);
        // A shorter second try does not make the client forget.
        if text.len() > self.owed.len() {
            self.owed = text;
        }
    }
}

fn answer_changed() -> OpenaiError {
    let message =
        "the model's answer broke off, and its next one is different; ask for the whole answer again";
    OpenaiError::new(StatusCode::BAD_GATEWAY, "answer_changed", message)
}

impl EventWriter {
    /// Ends a chat stream with an error.
    async fn fail(&mut self, error: &OpenaiError) -> Result<(), ClientGone> {
        self.error(error, None, &json!(error.body())).await
    }
}

/// Begins a stream when there is text, an end or a question, so that an early failure is an HTTP error.
async fn stream_completion(
    (mut writer, response): (EventWriter, Response),
    placed: Placed,
    mut follower: TurnSteps,
    mut completion: Completion,
    with_usage: bool,
) -> OpenaiResult<Response> {
    let deadline = Instant::now() + FIRST_TEXT_WAIT;
    let mut first = None;
    while let Ok(step) = timeout_at(deadline, follower.next()).await {
        let step = step?;
        let is_text = matches!(step, TurnStep::Text(_)) && completion.skips_until.is_none();
        completion.apply(&follower, step.clone()).await?;
        if is_text || completion.end.is_some() {
            first = Some(step);
            break;
        }
    }
    if let Some(error) = completion.error() {
        placed.delivery.mark_delivered();
        return Err(error);
    }
    tokio::spawn(async move {
        // A client that is gone ends the stream, and nothing else.
        let _ = write_completion(&mut writer, &placed, follower, completion, first, with_usage).await;
    });
    Ok(response)
}

async fn write_completion(
    writer: &mut EventWriter,
    placed: &Placed,
    mut follower: TurnSteps,
    mut completion: Completion,
    first: Option<TurnStep>,
    with_usage: bool,
) -> Result<(), ClientGone> {
    let mut sent = SentText::default();
    writer.data(&completion.chunk(&json!({"role": "assistant", "content": ""}), None).to_string()).await?;
    let mut waiting = first;
    loop {
        if let Some(step) = waiting.take()
            && completion.skips_until.is_none()
        {
            // The separator comes with the first piece of a message.
            let begins = sent.text.is_empty() && sent.owed.is_empty();
            let Ok(part) = sent.apply(&step) else { return writer.fail(&answer_changed()).await };
            if !part.is_empty() {
                let separator = if begins { completion.answer.separator() } else { "" };
                let delta = json!({"content": format!("{separator}{part}")});
                writer.data(&completion.chunk(&delta, None).to_string()).await?;
            }
        }
        if completion.end.is_some() {
            break;
        }
        let step = match writer.next_step(&mut follower).await? {
            Ok(step) => step,
            Err(error) => return writer.fail(&error).await,
        };
        if let Err(error) = completion.apply(&follower, step.clone()).await {
            return writer.fail(&error).await;
        }
        waiting = Some(step);
    }
    if let Some(error) = completion.error() {
        placed.delivery.mark_delivered();
        return writer.fail(&error).await;
    }
    // The answer that broke off was followed by none.
    if sent.end().is_err() {
        return writer.fail(&answer_changed()).await;
    }
    if let Some(closing) = completion.closing_text() {
        let delta = json!({"content": format!("{}{closing}", completion.answer.separator())});
        writer.data(&completion.chunk(&delta, None).to_string()).await?;
    }
    let mut last = completion.chunk(&json!({}), Some(completion.finish_reason()));
    if let Some(extension) = completion.extension() {
        last["longhaul"] = extension;
    }
    writer.data(&last.to_string()).await?;
    if let Some(usage) = completion.usage_json().filter(|_| with_usage) {
        let mut chunk = completion.chunk(&json!({}), None);
        chunk["choices"] = json!([]);
        chunk["usage"] = usage;
        writer.data(&chunk.to_string()).await?;
    }
    writer.data("[DONE]").await?;
    placed.delivery.mark_delivered();
    Ok(())
}

/// The word for a limit, as OpenAI's clients know it.
pub(crate) fn limit_word(ended: &TurnEnded) -> String {
    match ended.limit {
        Some(Limit::Tokens) | None => "max_output_tokens".to_owned(),
        Some(limit) => json!(limit).as_str().unwrap_or("limit").to_owned(),
    }
}

#[cfg(test)]
#[path = "chat_tests.rs"]
mod tests;
