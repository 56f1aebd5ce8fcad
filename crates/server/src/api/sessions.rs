//! Sessions: list, create, change, delete.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{Access, Scope};
use crate::body::Query;
use crate::problem::ApiResult;
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/api/sessions", Access::Token(Scope::Read), "List sessions", list_sessions)
            .query::<ListQuery>()
            .answers::<SessionList>(StatusCode::OK, "Sessions in the order of their keys.")
            .fails(StatusCode::BAD_REQUEST, "The query can't be read.")
            .fails(StatusCode::UNAUTHORIZED, "There is no valid token."),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// The most sessions to return; 100 if absent.
    limit: Option<usize>,
    /// The key after which the list goes on: `next` of the page before.
    after: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SessionList {
    items: Vec<SessionSummary>,
    /// The value of `after` for the next page. Absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SessionSummary {
    key: String,
    id: String,
    pinned: bool,
}

async fn list_sessions(
    State(state): State<ServerState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<SessionList>> {
    let limit = query.limit.unwrap_or(100).clamp(1, 1_000);
    let entries = state.journal().sessions(query.after.as_deref(), limit).await?;
    let next = (entries.len() == limit).then(|| entries.last().map(|entry| entry.key.clone())).flatten();
    let of = |entry: longhaul_journal::SessionEntry| SessionSummary {
        key: entry.key,
        id: entry.id.to_string(),
        pinned: entry.pinned,
    };
    Ok(Json(SessionList { items: entries.into_iter().map(of).collect(), next }))
}
