//! The OpenAI-compatible API, under `/v1`.
//!
//! A request becomes an input of a session, and its answer is what a follower of the session sees. Nothing is stored for
//! the endpoint but which session a conversation is in, and which responses were deleted.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `chat`, `responses`, `models` | the handlers |
//! | `request`, `parameters`, `messages` | what requests have in common; refused parameters; the messages of a client |
//! | `acceptance`, `bindings`, `delivery` | which session a request belongs to, and whether it is a retry |
//! | `follower`, `answer` | the steps of a turn; what a client is told about it |
//! | `completion`, `response_events` | a turn as a chat completion with its chunks; as a response with numbered events |
//! | `sse`, `error` | streams; errors in OpenAI's form |

mod acceptance;
mod answer;
mod bindings;
mod chat;
mod completion;
mod delivery;
mod error;
mod follower;
mod messages;
mod models;
mod parameters;
mod request;
mod response_events;
mod responses;
mod sse;

use hyper::{Method, StatusCode};
use serde_json::{Map, Value};

use crate::access::{Access, Scope};
use crate::route::{EVENT_STREAM, Route};

pub(crate) use delivery::Deliveries;
pub(crate) use error::{ErrorBody, show_openai_errors};
pub(crate) use models::ServedModels;

pub(crate) fn routes() -> Vec<Route> {
    let (act, read) = (Access::Token(Scope::Act), Access::Token(Scope::Read));
    let chat = "Answer a chat: an input to the session that the messages belong to";
    let response = "Make a response: a turn of a session";
    let routes = vec![
            Route::new(Method::POST, "/v1/chat/completions", act, chat, chat::create_chat_completion)
                .body::<chat::ChatRequest>()
                .answers::<Value>(StatusCode::OK, "The completion, or its chunks as server-sent events.")
                .answers_raw(EVENT_STREAM, "The completion, or its chunks as server-sent events."),
            Route::new(Method::POST, "/v1/responses", act, response, responses::create_response)
                .body::<responses::ResponsesRequest>()
                .answers::<Value>(StatusCode::OK, "The response, or its events.")
                .answers_raw(EVENT_STREAM, "The response, or its events."),
            Route::new(
                Method::GET,
                "/v1/responses/{id}",
                read,
                "Get a response",
                responses::retrieve_response,
            )
            .query::<responses::RetrieveQuery>()
            .answers::<Value>(StatusCode::OK, "The response, or its events.")
            .answers_raw(EVENT_STREAM, "The response, or its events."),
            Route::new(
                Method::DELETE,
                "/v1/responses/{id}",
                act,
                "Hide a response",
                responses::remove_response,
            )
            .answers::<Value>(
                StatusCode::OK,
                "It can't be retrieved any more. Its turn stays in the session.",
            ),
            Route::new(
                Method::POST,
                "/v1/responses/{id}/cancel",
                act,
                "Cancel a response",
                responses::cancel_response,
            )
            .optional_body::<Map<String, Value>>()
            .answers::<Value>(StatusCode::OK, "The response, whose turn has ended."),
            Route::new(Method::GET, "/v1/models", read, "List models", models::list_models)
                .answers::<Value>(StatusCode::OK, "The configured model, and those that its servers offer."),
            Route::new(Method::GET, "/v1/models/{id}", read, "Get a model", models::show_model)
                .answers::<Value>(StatusCode::OK, "The model."),
        ];
    routes.into_iter().map(document_failures).collect()
}

fn document_failures(route: Route) -> Route {
    route
        .fails(StatusCode::BAD_REQUEST, "A parameter is wrong or not supported.")
        .fails(StatusCode::UNAUTHORIZED, "There is no valid token.")
        .fails(StatusCode::FORBIDDEN, "The token does not allow this.")
        .fails(StatusCode::NOT_FOUND, "There is no such model, response or conversation.")
        .fails(
            StatusCode::CONFLICT,
            "The session is in the trash, or the plan that the request accepts is not open any more.",
        )
        .fails(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large.")
        .fails(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not JSON.")
        .fails(StatusCode::UNPROCESSABLE_ENTITY, "The Idempotency-Key was used for another request.")
        .fails(StatusCode::TOO_MANY_REQUESTS, "Too many requests, or the model's provider throttles.")
        .fails(StatusCode::BAD_GATEWAY, "The model failed.")
        .fails(
            StatusCode::SERVICE_UNAVAILABLE,
            "The server stops, or the model or the journal can't be reached.",
        )
}
