//! `POST /v1/chat/completions`.

use std::num::NonZeroU64;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use longhaul_agent::TurnStep;
use longhaul_protocol::{ClientRequest, Hash, QuestionKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout_at};

use super::acceptance::{AcceptedRequest, IncomingRequest, SessionReference, accept_request, retry_headers};
use super::completion::{Completion, CompletionChunks};
use super::error::{OpenaiError, OpenaiResult};
use super::follower::TurnSteps;
use super::messages::{Conversation, WireMessage};
use super::models::check_model;
use super::parameters::check_parameters;
use super::request::{SESSION_HEADER, read_request, session_header, session_reference};
use super::sse::{EventWriter, StreamClosed, count_stream, turn_stream};
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
    max_tokens: Option<NonZeroU64>,
    /// The same, by its newer name.
    max_completion_tokens: Option<NonZeroU64>,
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
    let incoming = incoming_request(&state, caller, &headers, &body, &request).await?;
    let accepted = accept_request(&state, &incoming).await?;
    let mut steps = accepted.follow(&state).await?;
    let model = request.model.clone().unwrap_or_else(|| ClientRequest::CONFIGURED_MODEL.to_owned());
    let mut completion =
        Completion::new(accepted.request, model, accepted.answered.map(|answered| answered.question));
    let key = session_header(accepted.session.key());
    let mut response = if let Some(permit) = permit {
        let with_usage = request.stream_options.and_then(|options| options.include_usage) == Some(true);
        let stream = turn_stream(&state, permit);
        stream_completion(stream, accepted, steps, completion, with_usage).await?
    } else {
        while !completion.has_ended() {
            let step = steps.next().await?;
            if let Some(step) = unless_settled(&steps, step).await? {
                completion.apply(step);
            }
        }
        if let Some(error) = completion.error() {
            accepted.delivery.mark_delivered();
            return Err(error);
        }
        let answer = Json(completion.json()).into_response();
        accepted.delivery.mark_delivered();
        answer
    };
    if let Some(key) = key {
        response.headers_mut().insert(SESSION_HEADER, key);
    }
    Ok(response)
}

async fn incoming_request(
    state: &ServerState,
    caller: Caller,
    headers: &HeaderMap,
    body: &Value,
    request: &ChatRequest,
) -> OpenaiResult<IncomingRequest> {
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
    let named: Option<SessionReference> =
        session_reference(headers, request.metadata.as_ref(), request.conversation.as_ref())?;
    Ok(IncomingRequest {
        caller,
        named,
        conversation,
        body: Hash::of(body.to_string()),
        client_key,
        is_counted_retry,
        user: request.user.clone(),
        max_output_tokens: request.max_completion_tokens.or(request.max_tokens).map(NonZeroU64::get),
        unstored: false,
        model: request.model.clone(),
        background: false,
        previous_response_id: None,
        metadata: request.metadata.clone().unwrap_or_default(),
    })
}

impl EventWriter {
    /// Ends a chat stream with an error.
    async fn fail(&mut self, error: &OpenaiError) -> Result<(), StreamClosed> {
        self.error(error, None, &json!(error.body())).await
    }
}

/// The next step. `None` for a question that was answered already: the turn goes on.
async fn unless_settled(steps: &TurnSteps, step: TurnStep) -> OpenaiResult<Option<TurnStep>> {
    let is_settled = match &step {
        TurnStep::Question(question) if question.kind != QuestionKind::Plan => {
            !steps.is_open(question.id).await?
        }
        _ => false,
    };
    Ok((!is_settled).then_some(step))
}

/// Begins a stream when there is text, an end or a question, so that an early failure is an HTTP error.
async fn stream_completion(
    (mut writer, response): (EventWriter, Response),
    accepted: AcceptedRequest,
    mut steps: TurnSteps,
    completion: Completion,
    with_usage: bool,
) -> OpenaiResult<Response> {
    let deadline = Instant::now() + FIRST_TEXT_WAIT;
    let mut chunks = CompletionChunks::new(completion);
    let mut first = None;
    while first.is_none()
        && !chunks.completion.has_ended()
        && let Ok(step) = timeout_at(deadline, steps.next()).await
    {
        if let Some(step) = unless_settled(&steps, step?).await? {
            first = chunks.apply(step)?;
        }
    }
    if let Some(error) = chunks.completion.error() {
        accepted.delivery.mark_delivered();
        return Err(error);
    }
    tokio::spawn(async move {
        // A client that is gone ends the stream, and nothing else.
        let _ = write_completion(&mut writer, &accepted, steps, chunks, first, with_usage).await;
    });
    Ok(response)
}

async fn write_completion(
    writer: &mut EventWriter,
    accepted: &AcceptedRequest,
    mut steps: TurnSteps,
    mut chunks: CompletionChunks,
    first: Option<Value>,
    with_usage: bool,
) -> Result<(), StreamClosed> {
    for chunk in [Some(chunks.role()), first].into_iter().flatten() {
        writer.data(&chunk.to_string()).await?;
    }
    while !chunks.completion.has_ended() {
        let step = match writer.next_step(&mut steps).await? {
            Ok(step) => unless_settled(&steps, step).await,
            Err(error) => Err(error),
        };
        let chunk = step.and_then(|step| step.map_or(Ok(None), |step| chunks.apply(step)));
        match chunk {
            Ok(Some(chunk)) => writer.data(&chunk.to_string()).await?,
            Ok(None) => {}
            Err(error) => return writer.fail(&error).await,
        }
    }
    if let Some(error) = chunks.completion.error() {
        accepted.delivery.mark_delivered();
        return writer.fail(&error).await;
    }
    match chunks.finish(with_usage) {
        Ok(last) => {
            for chunk in last {
                writer.data(&chunk.to_string()).await?;
            }
        }
        Err(error) => return writer.fail(&error).await,
    }
    writer.data("[DONE]").await?;
    accepted.delivery.mark_delivered();
    Ok(())
}
