//! Who may call a route: tokens and their scopes.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::{ApiResult, Problem};
use crate::state::ServerState;

/// What a token allows. Each scope includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Every GET.
    Read,
    /// Inputs, orders, answers, forks, ending tasks, `/v1`, `/mcp`.
    Act,
    /// Everything else: folders, modes, models, deleting, importing, exporting, tokens, schedules, writing memory.
    Admin,
}

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// No token.
    Open,
    /// A token with at least this scope.
    Token(Scope),
}

/// The token behind a request. Handlers take it with `Extension<Caller>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The token's name. It stays the same for the life of the token.
    pub(crate) token: String,
    pub(crate) scope: Scope,
}

impl Caller {
    /// Refuses a caller whose token does not allow this.
    pub(crate) fn require(&self, scope: Scope, what: &str) -> ApiResult<()> {
        if self.scope >= scope {
            return Ok(());
        }
        let needed = match scope {
            Scope::Read => "read",
            Scope::Act => "act",
            Scope::Admin => "admin",
        };
        let detail = format!(
            "the token {:?} may not {what}; make one with `longhaul token new --scope {needed} --name NAME`",
            self.token
        );
        Err(Problem::new(StatusCode::FORBIDDEN, "scope", detail))
    }
}

/// Lets a request through to its handler if its token allows it.
pub(crate) async fn check_access(
    State((state, access)): State<(ServerState, Access)>,
    mut request: Request,
    next: Next,
) -> ApiResult<Response> {
    if let Access::Token(scope) = access {
        let caller = identify(&state, request.headers())?;
        caller.require(scope, &format!("{} {}", request.method(), request.uri().path()))?;
        request.extensions_mut().insert(caller);
    }
    Ok(next.run(request).await)
}

/// The caller, by the token in the `Authorization` header.
fn identify(state: &ServerState, headers: &HeaderMap) -> ApiResult<Caller> {
    let presented = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let token = presented.and_then(|value| value.strip_prefix("Bearer "));
    token.and_then(|token| state.tokens().find(token.trim())).ok_or_else(|| {
        let detail = "send a valid token as `Authorization: Bearer TOKEN`; `longhaul token new` makes one";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    })
}
