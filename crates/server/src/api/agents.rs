//! Subagents: the trees of all sessions.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::{StatementItem, SubagentReport, list_subagents};
use longhaul_protocol::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::list::{List, ListQuery};
use crate::access::{Access, Scope};
use crate::body::Query;
use crate::problem::ApiResult;
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/agents", read, "List subagents", list_agents)
            .query::<AgentListQuery>()
            .answers::<List<ListedSubagent>>(
                StatusCode::OK,
                "The subagents, each after the session that started it. Each is a session and a task of its parent.",
            )
            .fails(StatusCode::NOT_FOUND, "There is no such session."),
    ]
}

/// A subagent with what it has spent.
#[derive(Debug, Serialize, JsonSchema)]
struct ListedSubagent {
    #[serde(flatten)]
    report: SubagentReport,
    /// US dollars, as far as prices are known; null if none is. What its own subagents spend is theirs.
    cost: Option<f64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentListQuery {
    /// The key or id of a session: only the subagents below it.
    session: Option<String>,
    #[schemars(range(min = 1, max = 1000))]
    /// The most subagents to return, up to 1,000; 100 if absent.
    limit: Option<usize>,
    /// The subagent after which the list goes on: `next` of the page before.
    after: Option<String>,
}

async fn list_agents(
    State(state): State<ServerState>,
    Query(query): Query<AgentListQuery>,
) -> ApiResult<Json<List<ListedSubagent>>> {
    let below = match &query.session {
        Some(key) => Some(state.session_entry(key).await?.id),
        None => None,
    };
    let mut reports = list_subagents(&*state.journal(), below).await?;
    // By their ids, so that pages can go on. A subagent is younger than its parent.
    reports.sort_by_key(|report| report.id);
    let redactor = state.runtime().redactor();
    for report in &mut reports {
        report.description = redactor.redact(&report.description).into_owned();
        report.message = report.message.as_deref().map(|message| redactor.redact(message).into_owned());
    }
    let page = ListQuery { limit: query.limit, after: query.after };
    let Json(List { items, next }) =
        List::page(reports, &page, |report: &SubagentReport| report.id.to_string())?;
    let ids: Vec<SessionId> = items.iter().map(|report| report.id).collect();
    let spent = state.runtime().spending_of_sessions(&ids).await?;
    let with_cost =
        |(report, spent): (SubagentReport, StatementItem)| ListedSubagent { report, cost: spent.cost };
    let listed = items.into_iter().zip(spent).map(with_cost).collect();
    Ok(Json(List { items: listed, next }))
}
