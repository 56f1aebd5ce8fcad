//! Who may call a route: tokens and their scopes.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime};

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, StatusCode};

use crate::connection::Connection;
use crate::origin::is_same_origin;
use crate::problem::{ApiResult, Problem};
use crate::revocation::end_when_revoked;
use crate::state::ServerState;
use crate::tokens::{StoredToken, cookie_values};

pub use longhaul_protocol::TokenScope as Scope;

/// What a route asks of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// No token.
    Open,
    /// A token with at least this scope.
    Token(Scope),
    /// The token that the nodes of a cluster share. Without one, the route is not there.
    Cluster,
}

/// Who is behind a request. Handlers take it with `Extension<Caller>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    /// The token's name. It stays the same for the life of the token.
    pub(crate) token: String,
    /// What no other token has, also if it gets the same name later.
    pub(crate) token_id: String,
    pub(crate) scope: Scope,
    /// A program that the user has connected to standard input and output. It has no token.
    pub(crate) is_local: bool,
}

/// Where the name of the caller is left for the access log.
#[derive(Clone, Default)]
pub(crate) struct CallerSlot(pub(crate) Arc<OnceLock<String>>);

impl Caller {
    /// The program at standard input and output. It may do what a token with this scope may, and begin sessions in the work folder.
    pub(crate) fn local(scope: Scope) -> Self {
        Self { token: "stdio".to_owned(), token_id: "stdio".to_owned(), scope, is_local: true }
    }

    /// Refuses a caller whose token does not allow this.
    pub(crate) fn require(&self, scope: Scope, what: &str) -> ApiResult<()> {
        if self.scope >= scope {
            return Ok(());
        }
        if self.is_local {
            let detail = format!(
                "a program at standard input may not {what}; do that yourself, in the terminal or with `longhaul answer`"
            );
            return Err(Problem::new(StatusCode::FORBIDDEN, "scope", detail));
        }
        let detail = format!(
            "the token {:?} may not {what}; make one with `longhaul token new --scope {scope} --name NAME`",
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
) -> Response {
    let scope = match access {
        Access::Open => return next.run(request).await,
        Access::Token(scope) => scope,
        Access::Cluster => {
            return match check_cluster_token(&state, &request) {
                Ok(()) => next.run(request).await,
                Err(refused) => refused.into_response(),
            };
        }
    };
    let token = match identify(&state, &request) {
        Ok(token) => token,
        Err(refused) => return refused.into_response(),
    };
    let has_own_token = request.headers().contains_key(AUTHORIZATION);
    let of_cookie = request.extensions().get::<Connection>().filter(|_| !has_own_token).cloned();
    if let Some(connection) = of_cookie
        && let Err(problem) = refuse_command(&connection).await
    {
        return problem.into_response();
    }
    let caller = token.caller();
    if let Some(slot) = request.extensions().get::<CallerSlot>() {
        let _ = slot.0.set(caller.token.clone());
    }
    if let Err(wait) = token.take_request(state.limits().token_rate) {
        let detail = format!("the token {:?} makes too many requests; wait and try again", caller.token);
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail);
        return problem.retry_after(wait).into_response();
    }
    if let Err(problem) = caller.require(scope, &format!("{} {}", request.method(), request.uri().path())) {
        return problem.into_response();
    }
    request.extensions_mut().insert(caller);
    let response = next.run(request).await;
    // The request may have waited for a turn.
    if token.is_revoked() {
        return unauthorized().into_response();
    }
    end_when_revoked(response, &token)
}

/// The token of a request: in its `Authorization` header, or in the cookie of a page of this server.
fn identify(state: &ServerState, request: &Request) -> ApiResult<Arc<StoredToken>> {
    let headers = request.headers();
    if !headers.contains_key(AUTHORIZATION) {
        return signed_in(state, request).ok_or_else(unauthorized);
    }
    check_token(state, request, bearer_token(headers).unwrap_or_default())
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Refuses what does not have the cluster's token. Cookies and tokens of the API don't count.
fn check_cluster_token(state: &ServerState, request: &Request) -> ApiResult<()> {
    let Some(cluster) = state.cluster_access() else {
        let detail = "this server has no cluster token, so it is no node of a cluster";
        return Err(Problem::not_found("no_such_route", detail));
    };
    if cluster.has_token(bearer_token(request.headers()).unwrap_or_default()) {
        if let Some(slot) = request.extensions().get::<CallerSlot>() {
            let _ = slot.0.set("cluster".to_owned());
        }
        return Ok(());
    }
    // The cluster's token can't be guessed, so other nodes at this address are never locked out.
    if let Some(connection) = request.extensions().get::<Connection>() {
        let failed = state.failures().count_failure(connection.peer.ip(), Instant::now());
        failed.map_err(too_many_failures)?;
    }
    let detail =
        "send the cluster's token as `Authorization: Bearer TOKEN`; tokens of the API don't count here";
    Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail))
}

/// The token that the cookie of a page of this server stands for. None if there are cookies of several tokens: another server on
/// this host may have set all but one.
pub(crate) fn signed_in(state: &ServerState, request: &Request) -> Option<Arc<StoredToken>> {
    let cookies = cookie_values(request.headers()).filter(|_| is_same_origin(request));
    let now = SystemTime::now();
    let verified = cookies.filter_map(|cookie| state.cookie_key().verify(cookie, state.tokens(), now));
    let mut tokens =
        verified.filter(|cookie| !state.signed_out().contains(&cookie.id)).map(|cookie| cookie.token);
    let token = tokens.next()?;
    tokens.all(|other| Arc::ptr_eq(&other, &token)).then_some(token)
}

/// Refuses the cookie of a page to commands of an agent. A browser sends cookies to every port of a host, so a server that
/// such a command runs gets it from a person who opens a page there.
pub(crate) async fn refuse_command(connection: &Connection) -> ApiResult<()> {
    if !connection.is_of_command().await {
        return Ok(());
    }
    let detail = "a command of an agent sent this request with the cookie of a signed-in page, which is not meant for it; a \
                  program sends a token of its own as `Authorization: Bearer TOKEN`";
    Err(Problem::new(StatusCode::FORBIDDEN, "from_a_command", detail))
}

/// The accepted token with this text. Wrong ones are counted by address.
pub(crate) fn check_token(
    state: &ServerState,
    request: &Request,
    presented: &str,
) -> ApiResult<Arc<StoredToken>> {
    let address = request.extensions().get::<Connection>().map(|connection| connection.peer.ip());
    let (now, failures) = (Instant::now(), state.failures());
    // A person may have given the cluster's token as one of the API, too. Nodes must not have what that would permit.
    let is_of_cluster = state.cluster_access().is_some_and(|cluster| cluster.has_token(presented));
    let found = state.tokens().find(presented).filter(|_| !is_of_cluster);
    let checked = match (&found, address) {
        // A token that could be guessed does not count while its address is guessing. Others can't be guessed, so their
        // owners are never locked out.
        (Some(token), Some(address)) if token.is_guessable() => failures.blocked(address, now),
        (None, Some(address)) => failures.count_failure(address, now),
        _ => Ok(()),
    };
    checked.map_err(too_many_failures)?;
    found.ok_or_else(unauthorized)
}

fn too_many_failures(wait: Duration) -> Problem {
    let detail = "too many requests with a wrong token came from this address; wait and try again";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_failures", detail).retry_after(wait)
}

fn unauthorized() -> Problem {
    let detail = "send a valid token as `Authorization: Bearer TOKEN`; `longhaul token new` makes one";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
}
