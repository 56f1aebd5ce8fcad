//! Signing in a page of this server, and the list of tokens.

use std::time::SystemTime;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{AppendHeaders, IntoResponse, Response};
use hyper::header::{HeaderValue, ORIGIN, SET_COOKIE};
use hyper::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::{Access, Scope, check_token, refuse_command, signed_in};
use crate::body::read_json;
use crate::connection::Connection;
use crate::problem::{ApiResult, Problem};
use crate::route::Route;
use crate::state::ServerState;
use crate::tokens::{TokenOrigin, clearing_cookies, cookie_values, seconds, setting_cookies};

/// The most bytes of a sign-in. Any client can send one.
const MAX_LOGIN_BYTES: usize = 4 << 10;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::POST, "/api/login", Access::Open, "Sign in a page of this server", login)
            .body::<Login>()
            .answers_empty(StatusCode::NO_CONTENT, "Signed in: the cookie stands for the token.")
            .fails(StatusCode::BAD_REQUEST, "The body can't be read.")
            .fails(StatusCode::UNAUTHORIZED, "The token is not valid.")
            .fails(StatusCode::PAYLOAD_TOO_LARGE, "The body is too large.")
            .fails(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body is not JSON.")
            .fails(StatusCode::TOO_MANY_REQUESTS, "Too many wrong tokens came from this address."),
        Route::new(
            Method::GET,
            "/api/login",
            Access::Open,
            "Whether a page of this server is signed in",
            show_login,
        )
        .answers::<LoginState>(StatusCode::OK, "What the cookie of the page stands for."),
        Route::new(Method::POST, "/api/logout", Access::Open, "Sign out a page of this server", logout)
            .answers_empty(StatusCode::NO_CONTENT, "The cookie is removed, and counts no more."),
        Route::new(Method::GET, "/api/tokens", Access::Token(Scope::Admin), "List tokens", list_tokens)
            .answers::<TokenList>(StatusCode::OK, "The tokens that the server accepts, without their texts.")
            .fails(StatusCode::UNAUTHORIZED, "There is no valid token.")
            .fails(StatusCode::FORBIDDEN, "The token's scope is not admin."),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The text of the token.
    token: String,
}

async fn login(State(state): State<ServerState>, request: Request) -> ApiResult<Response> {
    let is_tls = request.extensions().get::<Connection>().is_some_and(|connection| connection.is_tls);
    // A proxy may speak TLS for this server. The browser knows.
    let is_tls = is_tls || request.headers().get(ORIGIN).is_some_and(is_https);
    // Its extensions tell the address of the client.
    let (parts, body) = request.into_parts();
    let known = Request::from_parts(parts.clone(), axum::body::Body::empty());
    let login: Login = read_json(Request::from_parts(parts, body), &state, MAX_LOGIN_BYTES).await?;
    let token = check_token(&state, &known, login.token.trim())?;
    let cookies = setting_cookies(&state.cookie_key().sign(&token, SystemTime::now()), is_tls);
    Ok(empty_with_cookies(cookies))
}

fn is_https(origin: &HeaderValue) -> bool {
    origin.as_bytes().starts_with(b"https://")
}

fn empty_with_cookies(cookies: Vec<String>) -> Response {
    let headers = cookies.into_iter().map(|cookie| (SET_COOKIE, cookie)).collect::<Vec<_>>();
    (StatusCode::NO_CONTENT, AppendHeaders(headers)).into_response()
}

/// What the cookie of a page stands for. Token and scope are null if it counts for nothing.
#[derive(Debug, Serialize, JsonSchema)]
struct LoginState {
    /// The name of the token.
    token: Option<String>,
    /// `read`, `act` or `admin`.
    scope: Option<String>,
    /// The version of the page's files. A page that sees another one than at its start is older than the server: reload it.
    version: String,
}

/// The page asks this first, because a 401 would be an error on the browser's console.
async fn show_login(State(state): State<ServerState>, request: Request) -> ApiResult<Json<LoginState>> {
    let caller = signed_in(&state, &request).map(|token| token.caller());
    if let (Some(_), Some(connection)) = (&caller, request.extensions().get::<Connection>()) {
        refuse_command(connection).await?;
    }
    let version = longhaul_console::version().to_owned();
    let (token, scope) = caller.map(|caller| (caller.token, caller.scope.to_string())).unzip();
    Ok(Json(LoginState { token, scope, version }))
}

/// Ends every genuine cookie of the request.
async fn logout(State(state): State<ServerState>, request: Request) -> ApiResult<Response> {
    let now = SystemTime::now();
    let verify = |cookie| state.cookie_key().verify(cookie, state.tokens(), now);
    let genuine = cookie_values(request.headers()).filter_map(verify);
    let ended: Vec<(String, u64)> = genuine.map(|cookie| (cookie.id, cookie.expiry)).collect();
    if !ended.is_empty() {
        let signed_out = state.signed_out().clone();
        let written = tokio::task::spawn_blocking(move || signed_out.add(ended, seconds(now))).await;
        if !matches!(written, Ok(Ok(()))) {
            let detail = "the sign-out can't be stored, so the page would still be signed in after a restart; try again";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail));
        }
    }
    Ok(empty_with_cookies(clearing_cookies()))
}

#[derive(Debug, Serialize, JsonSchema)]
struct TokenList {
    items: Vec<ListedToken>,
    /// Always null: all tokens are on one page.
    next: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ListedToken {
    name: String,
    /// `read`, `act` or `admin`.
    scope: String,
    /// When it was made. Absent if it does not come from the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<String>,
    /// `journal` (made by `longhaul token new`), `file` (the first start) or `env`.
    origin: String,
}

async fn list_tokens(State(state): State<ServerState>) -> Json<TokenList> {
    let tokens = state.tokens().list();
    let items = tokens.iter().map(|token| ListedToken {
        name: token.name.clone(),
        scope: token.scope.to_string(),
        created: token.created.map(|at| at.to_string()),
        origin: match token.origin {
            TokenOrigin::Given => "env",
            TokenOrigin::Journal => "journal",
            TokenOrigin::File => "file",
        }
        .to_owned(),
    });
    Json(TokenList { items: items.collect(), next: None })
}
