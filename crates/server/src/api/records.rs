//! The records of a session, as they are in the journal.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_journal::Page;
use longhaul_protocol::{Record, StreamName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::{DEFAULT_ITEMS, MAX_ITEMS, check_limit};
use super::named_session::NamedSession;
use crate::access::{Access, Scope};
use crate::body::Query;
use crate::problem::ApiResult;
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(
            Method::GET,
            "/api/sessions/{key}/records",
            read,
            "The records of a session",
            read_records,
        )
        .query::<RecordQuery>()
        .answers::<RecordList>(StatusCode::OK, "Records in their order."),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecordQuery {
    /// The first record; 1 if absent.
    #[schemars(range(min = 1))]
    from: Option<u64>,
    /// The most records to return, up to 1,000; 100 if absent. A page also ends after 1 MiB.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RecordList {
    items: Vec<Record>,
    /// The value of `from` for the next page; null if there are no more records.
    next: Option<u64>,
}

async fn read_records(
    State(state): State<ServerState>,
    NamedSession(entry): NamedSession,
    Query(query): Query<RecordQuery>,
) -> ApiResult<Json<RecordList>> {
    let limit = check_limit(query.limit, DEFAULT_ITEMS, MAX_ITEMS)?;
    let page = Page { records: limit, ..Page::default() };
    let stream = StreamName::session(entry.id);
    // A position is a 64-bit integer with a sign in the journal's file.
    let from = query.from.unwrap_or(1).clamp(1, i64::MAX.unsigned_abs());
    let items = state.journal().read(&stream, from, page).await?;
    let next = items.last().map(|last| last.seq + 1).filter(|next| *next <= entry.head.seq);
    Ok(Json(RecordList { items, next }))
}
