//! What was spent, and on what.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::{Statement, StatementBy, StatementQuery, statement_since};
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{ListOrder, ListQuery};
use crate::access::{Access, Scope};
use crate::body::Query;
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/statement", read, "What was spent, and on what", show_statement)
            .query::<StatementParameters>()
            .answers::<Statement>(
                StatusCode::OK,
                "Days in their order, or newest first; everything else the most expensive first.",
            )
            .fails(StatusCode::BAD_REQUEST, "`since` is neither a day nor a number of days."),
    ]
}

/// Which calls are added up, and by what.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatementParameters {
    /// Only calls since this day (UTC), such as `2026-11-17`, or this many days ago, such as `7d`.
    since: Option<String>,
    /// What to add up by; `cause` if absent.
    by: Option<StatementBy>,
    /// The most items to return, up to 1,000; 100 if absent.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Where the list goes on: `next` of the page before.
    after: Option<String>,
    /// `newest`: the newest day first. It changes nothing if `by` is not `day`.
    order: Option<ListOrder>,
}

async fn show_statement(
    State(state): State<ServerState>,
    Query(wanted): Query<StatementParameters>,
) -> ApiResult<Json<Statement>> {
    let since = match &wanted.since {
        Some(text) => Some(statement_since(text).ok_or_else(|| {
            let detail = format!("{text:?} is neither a day such as 2026-11-17 nor a time such as 7d");
            Problem::bad_request("invalid_since", detail)
        })?),
        None => None,
    };
    let page = ListQuery { limit: wanted.limit, after: wanted.after };
    let query = StatementQuery {
        since,
        by: wanted.by.unwrap_or_default(),
        newest_first: wanted.order == Some(ListOrder::Newest),
        limit: Some(page.item_count()?),
        after: page.after,
    };
    Ok(Json(state.runtime().statement(&query).await?))
}
