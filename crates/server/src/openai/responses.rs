//! `/v1/responses`. A response is a turn: its id names the session and the turn, and its form is folded from the records.

use std::num::NonZeroU64;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use longhaul_agent::{RecordedTurn, TurnPlace, TurnStep, find_turn};
use longhaul_protocol::{Hash, QuestionId, SessionId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::acceptance::{IncomingRequest, SessionReference, accept_request, retry_headers};
use super::bindings::{delete_response, is_deleted};
use super::error::{OpenaiError, OpenaiResult};
use super::follower::TurnSteps;
use super::messages::{Conversation, ConversationMessage, WireMessage};
use super::models::check_model;
use super::parameters::check_parameters;
use super::request::{parse_item_id, parse_response_id, read_request, session_reference};
use super::response_events::{ResponseFold, ResponseStatus};
use super::sse::{EventWriter, StreamClosed, count_stream, turn_stream};
use crate::access::Caller;
use crate::body::{JsonBody, OptionalJsonBody, Query};
use crate::state::ServerState;

/// A request for a response. Other parameters are in `docs/openai.md`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ResponsesRequest {
    /// An id of `GET /v1/models`.
    model: Option<String>,
    input: ResponsesInput,
    /// A note to the model.
    instructions: Option<String>,
    stream: Option<bool>,
    /// Answer as soon as the turn has begun.
    background: Option<bool>,
    /// `false`: the response can't be retrieved later.
    store: Option<bool>,
    /// The key of a session, `conv_` and its id, or an object with that as `id`.
    conversation: Option<Value>,
    /// The response to go on from. If it is not the newest of its session, the session is forked.
    previous_response_id: Option<String>,
    /// The most tokens of each answer of the model.
    max_output_tokens: Option<NonZeroU64>,
    /// `metadata.session` is the key of a session.
    metadata: Option<Map<String, Value>>,
    /// Recorded, and never a key.
    user: Option<String>,
}

/// The input of a response.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum ResponsesInput {
    Text(String),
    Items(Vec<WireMessage>),
}

/// How a response is retrieved.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct RetrieveQuery {
    /// Get the events of the response.
    stream: Option<bool>,
    /// Only events with a higher `sequence_number`.
    starting_after: Option<u64>,
}

pub(crate) async fn create_response(
    State(state): State<ServerState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Value>,
) -> OpenaiResult<Response> {
    let request: ResponsesRequest = read_request(&body)?;
    let permit = count_stream(&state, request.stream)?;
    let incoming = incoming_request(&state, caller, &headers, &body, &request).await?;
    let accepted = accept_request(&state, &incoming).await?;
    let mut follower = accepted.follow(&state).await?;
    let mut fold = ResponseFold::new(accepted.id);
    let mut skips_until = accepted.answered.map(|answered| answered.question);
    if let Some(permit) = permit {
        // The turn may wait behind another one for longer than a client or a proxy waits for headers.
        let (mut writer, response) = turn_stream(&state, permit);
        tokio::spawn(async move {
            let written = write_events(&mut writer, &mut follower, &mut fold, skips_until, 0).await;
            if written.is_ok() {
                accepted.delivery.mark_delivered();
            }
        });
        return Ok(response);
    }
    // The id is known when the turn has begun.
    while apply_step(&mut fold, follower.next().await?, &mut skips_until).is_empty() {}
    while request.background != Some(true) && !is_over(&follower, &fold).await? {
        fold.apply(follower.next().await?);
    }
    let response = Json(fold.json()).into_response();
    accepted.delivery.mark_delivered();
    Ok(response)
}

async fn incoming_request(
    state: &ServerState,
    caller: Caller,
    headers: &HeaderMap,
    body: &Value,
    request: &ResponsesRequest,
) -> OpenaiResult<IncomingRequest> {
    if let Some(body) = body.as_object() {
        check_parameters(body)?;
    }
    check_model(state, request.model.as_deref()).await?;
    let mut conversation = read_input(state, &request.input).await?;
    if let Some(instructions) = &request.instructions {
        conversation.add_instructions(instructions);
    }
    conversation.check_input("input")?;
    let mut named = session_reference(headers, request.metadata.as_ref(), request.conversation.as_ref())?;
    if let (None, Some(previous)) = (&named, &request.previous_response_id) {
        let (session, turn) = parse_response_id(previous).ok_or_else(|| {
            let message = format!("there is no response {previous:?}");
            let error = OpenaiError::not_found("previous_response_not_found", message);
            error.about("previous_response_id")
        })?;
        named = Some(SessionReference::Response { session, turn });
    }
    let (client_key, is_counted_retry) = retry_headers(headers)?;
    Ok(IncomingRequest {
        caller,
        named,
        conversation,
        body: Hash::of(body.to_string()),
        client_key,
        is_counted_retry,
        user: request.user.clone(),
        max_output_tokens: request.max_output_tokens.map(NonZeroU64::get),
        unstored: request.store == Some(false),
        model: request.model.clone(),
        background: request.background == Some(true),
        previous_response_id: request.previous_response_id.clone(),
        metadata: request.metadata.clone().unwrap_or_default(),
    })
}

async fn read_input(state: &ServerState, input: &ResponsesInput) -> OpenaiResult<Conversation> {
    let items = match input {
        ResponsesInput::Text(text) => return Ok(Conversation::of_text(text.clone())),
        ResponsesInput::Items(items) => items,
    };
    let mut conversation = Conversation::default();
    for (index, item) in items.iter().enumerate() {
        let param = format!("input[{index}]");
        match (item.r#type.as_deref(), &item.id) {
            (Some("item_reference"), Some(id)) => {
                let text = referenced_text(state, id).await?;
                let missing =
                    || OpenaiError::invalid("item_not_found", &param, format!("there is no item {id:?}"));
                conversation.push_message(ConversationMessage::assistant(text.ok_or_else(missing)?));
            }
            _ => conversation.push(item, &param)?,
        }
    }
    Ok(conversation)
}

/// The text of an output item of an earlier response.
async fn referenced_text(state: &ServerState, id: &str) -> OpenaiResult<Option<String>> {
    let Some((session, turn)) = parse_item_id(id) else { return Ok(None) };
    if let Some(entry) = state.journal().session_with_id(session).await?.filter(|entry| entry.trashed) {
        return Err(OpenaiError::in_trash(&entry.key));
    }
    let Some(place) = find_turn(&*state.journal(), session, turn).await? else { return Ok(None) };
    let fold = read_response(state, session, &place).await?;
    Ok(fold.item_text(id).map(str::to_owned))
}

/// The events of a step. Steps up to the answer to `skips_until` make none: they were told before.
fn apply_step(fold: &mut ResponseFold, step: TurnStep, skips_until: &mut Option<QuestionId>) -> Vec<Value> {
    let is_skipped = skips_until.is_some();
    if matches!(&step, TurnStep::Answered(id) if Some(*id) == *skips_until)
        || matches!(step, TurnStep::Ended(_))
    {
        *skips_until = None;
    }
    let events = fold.apply(step);
    if is_skipped && skips_until.is_some() { vec![] } else { events }
}

/// Whether the response changes no more until the client acts.
async fn is_over(follower: &TurnSteps, fold: &ResponseFold) -> OpenaiResult<bool> {
    match fold.status() {
        ResponseStatus::InProgress => Ok(false),
        ResponseStatus::Ended(_) | ResponseStatus::Plan => Ok(true),
        ResponseStatus::Question(question) => follower.is_open(*question).await,
    }
}

/// Writes events until the response is over.
async fn write_events(
    writer: &mut EventWriter,
    follower: &mut TurnSteps,
    fold: &mut ResponseFold,
    mut skips_until: Option<QuestionId>,
    first_number: u64,
) -> Result<(), StreamClosed> {
    writer.comment().await?;
    loop {
        let step = match is_over(follower, fold).await {
            Ok(true) if skips_until.is_none() => return Ok(()),
            Ok(_) => writer.next_step(follower).await?,
            Err(error) => Err(error),
        };
        match step {
            Ok(step) => {
                for event in apply_step(fold, step, &mut skips_until) {
                    if event["sequence_number"].as_u64() >= Some(first_number) {
                        writer.event(&event).await?;
                    }
                }
            }
            // The client comes back with the number of the last event.
            Err(error) => {
                let event =
                    json!({"type": "error", "code": error.code, "message": error.message, "param": null});
                writer.error(&error, Some("error"), &event).await?;
                return Err(StreamClosed);
            }
        }
    }
}

/// A response that can be retrieved.
async fn find_response(state: &ServerState, id: &str) -> OpenaiResult<(SessionId, u64, TurnPlace)> {
    let missing = || OpenaiError::not_found("response_not_found", format!("there is no response {id:?}"));
    let (session, turn) = parse_response_id(id).ok_or_else(missing)?;
    let journal = state.journal();
    let entry = journal.session_with_id(session).await?.ok_or_else(missing)?;
    if entry.trashed {
        return Err(OpenaiError::in_trash(&entry.key));
    }
    let place = find_turn(&*journal, session, turn).await?.ok_or_else(missing)?;
    if place.unstored || is_deleted(&*journal, session, turn).await? {
        return Err(missing());
    }
    Ok((session, turn, place))
}

/// A response as its records have it.
async fn read_response(
    state: &ServerState,
    session: SessionId,
    place: &TurnPlace,
) -> OpenaiResult<ResponseFold> {
    let journal = state.journal();
    let mut fold = ResponseFold::new(session);
    let mut steps = RecordedTurn::new(&*journal, session, place.locator());
    while !fold.has_ended()
        && let Some(recorded) = steps.next().await?
    {
        fold.apply(recorded.step);
    }
    Ok(fold)
}

pub(crate) async fn retrieve_response(
    State(state): State<ServerState>,
    Path(id): Path<String>,
    Query(query): Query<RetrieveQuery>,
) -> OpenaiResult<Response> {
    let (session, turn, place) = find_response(&state, &id).await?;
    if query.stream != Some(true) {
        let fold = read_response(&state, session, &place).await?;
        if fold.has_ended() {
            state.deliveries().mark_fetched(session, turn);
        }
        return Ok(Json(fold.json()).into_response());
    }
    let permit = state.count_follower()?;
    let entry = state.journal().session_with_id(session).await?;
    let missing = || OpenaiError::not_found("response_not_found", format!("there is no response {id:?}"));
    let handle = state.runtime().session(&entry.ok_or_else(missing)?.key).await?;
    let mut follower = TurnSteps::follow(&handle, place.locator(), state.shutdown()).await?;
    let mut fold = ResponseFold::new(session);
    let first_number = query.starting_after.map_or(0, |after| after.saturating_add(1));
    let (mut writer, response) = turn_stream(&state, permit);
    tokio::spawn(async move {
        let written = write_events(&mut writer, &mut follower, &mut fold, None, first_number).await;
        if written.is_ok() && fold.has_ended() {
            state.deliveries().mark_fetched(session, turn);
        }
    });
    Ok(response)
}

pub(crate) async fn cancel_response(
    State(state): State<ServerState>,
    Path(id): Path<String>,
    _: OptionalJsonBody<Map<String, Value>>,
) -> OpenaiResult<Json<Value>> {
    let (session, turn, place) = find_response(&state, &id).await?;
    if place.ended.is_none()
        && let Some(entry) = state.journal().session_with_id(session).await?
    {
        let handle = state.runtime().session(&entry.key).await?;
        if handle.state().await?.turn.is_some_and(|open| open.number == turn) {
            handle.cancel().await?;
        }
    }
    Ok(Json(read_response(&state, session, &place).await?.json()))
}

pub(crate) async fn remove_response(
    State(state): State<ServerState>,
    Path(id): Path<String>,
) -> OpenaiResult<Json<Value>> {
    let (session, turn, _) = find_response(&state, &id).await?;
    delete_response(&*state.journal(), session, turn).await?;
    Ok(Json(json!({"id": id, "object": "response", "deleted": true})))
}
