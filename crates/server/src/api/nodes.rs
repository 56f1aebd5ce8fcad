//! The nodes that share the journal.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_journal::{NodeReport, NodeState};
use schemars::JsonSchema;
use serde::Serialize;

use super::list::{List, ListQuery};
use crate::access::{Access, Scope};
use crate::body::Query;
use crate::problem::ApiResult;
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/nodes", read, "List the nodes", list_nodes)
            .query::<ListQuery>()
            .answers::<List<NodeForm>>(
                StatusCode::OK,
                "The machines that share the journal, by id; none if the journal is a file in the home.",
            ),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct NodeForm {
    id: String,
    state: NodeStateForm,
    /// How long ago it was last seen.
    seen_ago_ms: u64,
    /// How other nodes reach it.
    address: Option<String>,
    /// The machine.
    host: String,
    version: String,
    /// Sessions that it runs now.
    running: u64,
    /// Sessions whose work folder is there.
    bound: u64,
    /// Whether notifications of the database reach it. Otherwise it looks for work each second.
    hears_wakes: bool,
    /// How far its clock is ahead of the database's.
    clock_ahead_ms: i64,
    /// Whether it answers this request.
    is_this: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NodeStateForm {
    Live,
    /// It hands its sessions over.
    Draining,
    /// It was shut down.
    Stopped,
    /// It was silent for too long.
    Dead,
    /// It was removed.
    Gone,
}

impl From<NodeReport> for NodeForm {
    fn from(node: NodeReport) -> Self {
        let state = match node.state {
            NodeState::Live => NodeStateForm::Live,
            NodeState::Draining => NodeStateForm::Draining,
            NodeState::Stopped => NodeStateForm::Stopped,
            NodeState::Dead => NodeStateForm::Dead,
            NodeState::Gone => NodeStateForm::Gone,
        };
        let NodeReport { id, seen_ago_ms, address, host, version, running, bound, .. } = node;
        let NodeReport { hears_wakes, clock_ahead_ms, is_this, .. } = node;
        Self {
            id,
            state,
            seen_ago_ms,
            address,
            host,
            version,
            running,
            bound,
            hears_wakes,
            clock_ahead_ms,
            is_this,
        }
    }
}

async fn list_nodes(
    State(state): State<ServerState>,
    Query(query): Query<ListQuery>,
) -> ApiResult<Json<List<NodeForm>>> {
    let nodes = state.runtime().nodes().await?.unwrap_or_default();
    let forms = nodes.into_iter().map(NodeForm::from).collect();
    List::page(forms, &query, |node: &NodeForm| node.id.clone())
}
