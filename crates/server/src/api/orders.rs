//! Orders to a session: cancel, retry, continue, compact, remember, answers; and forks.

use axum::extract::State;
use axum::{Extension, Json};
use hyper::{HeaderMap, Method, StatusCode};
use longhaul_agent::fork::{ForkRequestKey, fork_session, fork_session_once};
use longhaul_agent::{AcceptedOrder, Error, Session, nothing_to_do};
use longhaul_protocol::{Answer, Hash, OrderKind, Question, QuestionId, QuestionKind, StreamName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::fork_content::ForkContent;
use super::inputs::{IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_MEANING, idempotency_key};
use super::named_session::LiveSession;
use super::sessions::require_own_key;
use crate::access::{Access, Caller, Scope};
use crate::body::{JsonBody, NoFields, OptionalJsonBody};
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

/// Keys that are tried for a fork without one: `KEY-fork`, `KEY-fork-2` and so on.
const MAX_FORK_KEYS: u32 = 1_000;
/// What the answer `project` does.
const FOR_A_PROJECT: &str = "allow a call for a whole project";

pub(crate) fn routes() -> Vec<Route> {
    let act = Access::Token(Scope::Act);
    vec![
        documented(
            Route::new(Method::POST, "/api/sessions/{key}/cancel", act, "Cancel the running turn", cancel)
                .optional_body::<NoFields>(),
        ),
        documented(
            Route::new(
                Method::POST,
                "/api/sessions/{key}/retry",
                act,
                "Run a failed turn again, or end the wait before a retry",
                retry,
            )
            .optional_body::<NoFields>(),
        ),
        documented(
            Route::new(
                Method::POST,
                "/api/sessions/{key}/continue",
                act,
                "Continue an interrupted answer",
                continue_answer,
            )
            .optional_body::<NoFields>(),
        ),
        documented(
            Route::new(Method::POST, "/api/sessions/{key}/compact", act, "Compact the context", compact)
                .optional_body::<CompactOrder>(),
        ),
        documented(
            Route::new(
                Method::POST,
                "/api/sessions/{key}/remember",
                act,
                "Note a text in memory, or extract what is new in the session",
                remember,
            )
            .optional_body::<RememberOrder>(),
        ),
        documented(
            Route::new(Method::POST, "/api/sessions/{key}/answers", act, "Answer a question", answer)
                .body::<QuestionAnswer>(),
        ),
        Route::new(Method::POST, "/api/sessions/{key}/fork", act, "Fork a session", fork)
            .header(IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_MEANING)
            .optional_body::<ForkOrder>()
            .answers::<ForkedSession>(StatusCode::CREATED, "The new session.")
            .fails(StatusCode::CONFLICT, "A session has this key.")
            .fails(StatusCode::UNPROCESSABLE_ENTITY, "The Idempotency-Key was used for another fork."),
    ]
}

/// What all orders have in common.
fn documented(route: Route) -> Route {
    route
        .header(IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_MEANING)
        .answers::<OrderAccepted>(
            StatusCode::ACCEPTED,
            "The order is on disk, and the session carries it out.",
        )
        .fails(StatusCode::CONFLICT, "The session is in the trash, or the question is settled.")
        .fails(StatusCode::UNPROCESSABLE_ENTITY, "The Idempotency-Key was used for something else.")
}

/// An order that is on disk.
#[derive(Debug, Serialize, JsonSchema)]
struct OrderAccepted {
    order_id: String,
    /// The position in the inbox of the session.
    input_seq: u64,
    /// The session's last record before the order: follow its events with `?after=` to miss nothing.
    after: u64,
    /// Why the order will change nothing, if the session has nothing to cancel, retry or continue.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

type OrderAnswer = ApiResult<(StatusCode, Json<OrderAccepted>)>;

fn accepted(order: AcceptedOrder, note: Option<String>) -> (StatusCode, Json<OrderAccepted>) {
    let AcceptedOrder { seq, id, after } = order;
    (StatusCode::ACCEPTED, Json(OrderAccepted { order_id: id.to_string(), input_seq: seq, after, note }))
}

async fn put_order(live: LiveSession, headers: &HeaderMap, kind: OrderKind) -> OrderAnswer {
    let key = idempotency_key(headers)?;
    let note = nothing_to_do(&live.session, &kind).await?;
    let last_before = match (&note, live.session.id()) {
        (Some(_), Some(id)) => live.session.journal().head(&StreamName::inbox(id)).await?.seq,
        _ => 0,
    };
    let order = live.session.put_order(kind, key.as_deref()).await?;
    // An order whose key was used before has done what it could.
    let note = note.filter(|_| order.seq > last_before);
    Ok(accepted(order, note))
}

async fn cancel(live: LiveSession, headers: HeaderMap, _: OptionalJsonBody<NoFields>) -> OrderAnswer {
    put_order(live, &headers, OrderKind::Cancel).await
}

async fn retry(live: LiveSession, headers: HeaderMap, _: OptionalJsonBody<NoFields>) -> OrderAnswer {
    put_order(live, &headers, OrderKind::Retry).await
}

async fn continue_answer(
    live: LiveSession,
    headers: HeaderMap,
    _: OptionalJsonBody<NoFields>,
) -> OrderAnswer {
    put_order(live, &headers, OrderKind::Continue).await
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CompactOrder {
    /// What the summary should focus on.
    focus: Option<String>,
}

async fn compact(
    live: LiveSession,
    headers: HeaderMap,
    OptionalJsonBody(order): OptionalJsonBody<CompactOrder>,
) -> OrderAnswer {
    let focus = order.focus.filter(|focus| !focus.trim().is_empty());
    put_order(live, &headers, OrderKind::Compact { focus }).await
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RememberOrder {
    /// The text to note, word for word. Without one, what is new in the session is extracted. A token below `admin` notes it
    /// as its own and untrusted, not as the user's word.
    text: Option<String>,
}

async fn remember(
    Extension(caller): Extension<Caller>,
    live: LiveSession,
    headers: HeaderMap,
    OptionalJsonBody(order): OptionalJsonBody<RememberOrder>,
) -> OrderAnswer {
    if order.text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(Problem::bad_request("invalid_body", "text: there is nothing to remember"));
    }
    let token = (caller.scope < Scope::Admin).then_some(caller.token);
    put_order(live, &headers, OrderKind::Remember { text: order.text, token }).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuestionAnswer {
    /// The id of the question.
    question: String,
    /// `yes`, `no`, one of the question's choices, or any other text: it refuses an approval and is the reason. What holds
    /// beyond the session (`project`) or changes its mode (accepting a plan) needs an admin token.
    answer: String,
}

async fn answer(
    live: LiveSession,
    headers: HeaderMap,
    Extension(caller): Extension<Caller>,
    JsonBody(QuestionAnswer { question, answer }): JsonBody<QuestionAnswer>,
) -> OrderAnswer {
    let key = idempotency_key(&headers)?;
    let id: QuestionId = question.parse().map_err(|_| {
        let detail = format!("there is no question {question:?}; GET the session lists those that are open");
        Problem::not_found("no_such_question", detail)
    })?;
    check_answer_scope(&caller, &live.session, id, &answer).await?;
    match live.session.put_answer(id, &answer).await {
        // The client sends its answer again, because it did not learn that the first one arrived.
        Err(error @ Error::QuestionSettled { .. }) if key.is_some() => {
            let recorded = live.session.recorded_answer(id, &answer).await?;
            recorded.map(|order| accepted(order, None)).ok_or_else(|| error.into())
        }
        answered => Ok(accepted(answered?, None)),
    }
}

/// Refuses an answer that changes the user's rules if the caller may not change them.
pub(crate) async fn check_answer_scope(
    caller: &Caller,
    session: &Session,
    question: QuestionId,
    answer: &str,
) -> ApiResult<()> {
    if caller.scope >= Scope::Admin {
        return Ok(());
    }
    let open = session.open_questions().await?;
    match open.iter().find(|open| open.id == question) {
        Some(question) => check_answer(caller, question, answer),
        // One that opens right now may be an approval.
        None if Answer::parse(answer) == Answer::Project => caller.require(Scope::Admin, FOR_A_PROJECT),
        None => Ok(()),
    }
}

/// Refuses an answer to this question that allows more than the caller may allow.
pub(crate) fn check_answer(caller: &Caller, question: &Question, answer: &str) -> ApiResult<()> {
    let answer = Answer::parse(answer);
    // To a question that takes text, each answer is a word like any other.
    if question.kind.takes_text() || matches!(answer, Answer::No | Answer::Text(_)) {
        return Ok(());
    }
    let what = match answer {
        Answer::Project => FOR_A_PROJECT,
        _ if question.kind == QuestionKind::Plan => "accept a plan, because that changes the session's mode",
        _ if question.refused.is_some() => "let a command run outside of the sandbox",
        _ if question.is_for_user() => "allow what reaches beyond the session",
        _ => return Ok(()),
    };
    caller.require(Scope::Admin, what)
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForkOrder {
    /// The last record that the fork has; by default the end of the last turn.
    at: Option<u64>,
    /// The key of the fork; by default the session's key with `-fork`.
    #[schemars(length(min = 1, max = 512))]
    key: Option<String>,
    /// The record of the input before which the session is forked: the block's `seq`. By default the first input after `at`.
    input: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ForkedSession {
    key: String,
    id: String,
    /// That input, to be changed and sent to the fork; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<ForkContent>,
}

async fn fork(
    State(state): State<ServerState>,
    Extension(caller): Extension<Caller>,
    LiveSession { entry, .. }: LiveSession,
    headers: HeaderMap,
    OptionalJsonBody(order): OptionalJsonBody<ForkOrder>,
) -> ApiResult<(StatusCode, Json<ForkedSession>)> {
    if let Some(key) = &order.key {
        require_own_key(&caller, key)?;
    }
    let (journal, idempotency_key) = (state.journal(), idempotency_key(&headers)?);
    let content = Hash::of(json!({"at": order.at, "key": order.key}).to_string());
    let mut number = 1;
    loop {
        let key = order.key.clone().unwrap_or_else(|| match number {
            1 => format!("{}-fork", entry.key),
            number => format!("{}-fork-{number}", entry.key),
        });
        let forked = match &idempotency_key {
            Some(client_key) => {
                let request = ForkRequestKey { key: client_key, content };
                fork_session_once(&*journal, &entry.key, order.at, &key, request).await
            }
            None => {
                let forked = fork_session(&*journal, &entry.key, order.at, &key).await;
                forked.map(|forked| (forked.key, forked.id))
            }
        };
        match forked {
            Err(Error::Journal(longhaul_journal::Error::SessionExists { .. }))
                if order.key.is_none() && number < MAX_FORK_KEYS =>
            {
                number += 1;
            }
            forked => {
                let (key, id) = forked?;
                let content = ForkContent::find(&*journal, entry.id, order.input, order.at).await?;
                let body = ForkedSession { key, id: id.to_string(), content };
                return Ok((StatusCode::CREATED, Json(body)));
            }
        }
    }
}
