//! The MCP servers of the process, with their states.

use axum::Json;
use axum::extract::State;
use hyper::{Method, StatusCode};
use longhaul_agent::mcp::ServerStatus;
use schemars::JsonSchema;
use serde::Serialize;

use super::list::List;
use crate::access::{Access, Scope};
use crate::problem::ApiResult;
use crate::route::Route;
use crate::state::ServerState;

pub(crate) fn routes() -> Vec<Route> {
    let read = Access::Token(Scope::Read);
    vec![
        Route::new(Method::GET, "/api/mcp", read, "List MCP servers", list_servers)
            .answers::<List<McpServer>>(
                StatusCode::OK,
                "The MCP servers of the server's work folder, by name.",
            ),
    ]
}

/// An MCP server.
#[derive(Debug, Serialize, JsonSchema)]
struct McpServer {
    name: String,
    /// `stopped`, `starting`, `ready` or `failed`.
    state: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The version of the protocol that was agreed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    /// The names of its tools, as far as they are known.
    tools: Vec<String>,
    /// What the user should know.
    warnings: Vec<String>,
}

impl From<ServerStatus> for McpServer {
    fn from(status: ServerStatus) -> Self {
        let ServerStatus { name, state, reason, protocol, tools, warnings, .. } = status;
        Self { name, state: state.word(), reason, protocol, tools, warnings }
    }
}

async fn list_servers(State(state): State<ServerState>) -> ApiResult<Json<List<McpServer>>> {
    let items = state.runtime().mcp_servers().into_iter().map(McpServer::from).collect();
    Ok(Json(List { items, next: None }))
}
